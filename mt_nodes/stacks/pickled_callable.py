# SPDX-License-Identifier: Apache-2.0
"""A stack that is passed as a Python object: pickled to a file, and loaded in each process that hosts it.

So each arm has an instance of its own, a restart makes a fresh one, and ``mt reproduce`` finds it again.
"""

from __future__ import annotations

import inspect
import pickle
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.stacks.callables import PICKLED, raised_at

FILE = "callable.pkl"


def stack_rows(function: Callable[..., Any], file: Path) -> dict[str, Any]:
    """Write a callable to a file, and return the stack file's content for it.

    A class is called to make the stack. A function of a module that another process can import is stored by its name,
    any other (of a script, of a notebook, a lambda, a closure) with its code.
    Raises UsageError: it cannot be stored, such as one that holds a lock or an open file.
    """
    name = name_of_callable(function)
    file.write_bytes(_pickled(function, name))
    return {"name": name, "callable": PICKLED, "params": {"file": str(file)}}


def name_of_callable(function: Callable[..., Any]) -> str:
    """Return the name of a callable in results: that of the function or class, of an object that of its class."""
    name = getattr(function, "__name__", "") or type(function).__name__
    return "lambda" if name == "<lambda>" else str(name)


def load_callable_file(file: str, **params: Any) -> Any:
    """Load a callable; a class is called with ``params``.

    Raises UsageError: the file cannot be loaded, or params are given to what is no class.
    """
    try:
        function = pickle.loads(Path(file).read_bytes())
    except Exception as error:
        raise UsageError(f"{file}: cannot be loaded: {type(error).__name__}: {error}{raised_at(error)}") from error
    if inspect.isclass(function):
        return function(**params)
    if params:
        names = ", ".join(params)
        raise UsageError(f"params: got {names} for {name_of_callable(function)}, expected a class that takes them")
    return function


def _pickled(function: Callable[..., Any], name: str) -> bytes:
    try:
        import cloudpickle
    except ImportError as error:
        raise UsageError(
            f"stack {name}: a callable that is passed as an object needs cloudpickle, which is not installed; type: "
            "pip install cloudpickle; or name it in a stack file as callable: module:name"
        ) from error
    home = sys.modules.get(getattr(function, "__module__", "") or type(function).__module__)
    alone = home is not None and not _importable(home)
    try:
        if not alone:
            return bytes(cloudpickle.dumps(function))
        cloudpickle.register_pickle_by_value(home)
        try:
            return bytes(cloudpickle.dumps(function))
        finally:
            cloudpickle.unregister_pickle_by_value(home)
    except Exception as error:
        raise UsageError(
            f"stack {name}: the callable runs in a process of its own, and cannot be sent there: "
            f"{type(error).__name__}: {error}; make what it needs inside it, or pass a class, which is called there"
        ) from error


def _importable(module: ModuleType) -> bool:
    """Return whether another process finds a module by its name, too; of ``__main__`` that need not be known."""
    name = module.__name__
    if name == "__main__" or name in sys.builtin_module_names:
        return True
    top = name.partition(".")[0]
    return top in sys.stdlib_module_names or PathFinder.find_spec(top, sys.path) is not None
