# SPDX-License-Identifier: Apache-2.0
"""The callable of a stack: imported, and with faults planted in it."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import inspect
import sys
import sysconfig
import traceback
from collections.abc import Callable, Collection
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

import mt_nodes
from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build
from mt_nodes.stacks.stack import Stack

#: ``callable`` of a stack that is passed as an object; see :mod:`mt_nodes.stacks.pickled_callable`.
PICKLED = "mt_nodes.stacks.pickled_callable:load_callable_file"
#: Where code lies that is not the user's: ours, Python's and that of installed packages.
_NOT_THE_USERS = (Path(mt_nodes.__file__).parent, *map(Path, map(sysconfig.get_path, ("stdlib", "purelib", "platlib"))))


def with_faults(stack: Stack, faults: tuple[str, ...]) -> Stack:
    """Return the stack with faults planted; only the package's own reference stacks take them.

    ``faults``: names, or ``name:parameter=value,…``.
    Raises UsageError: it takes no faults, there is no such fault, or it is for stacks with another sensor.
    """
    if not faults:
        return stack
    if not stack.callable.startswith("mt_nodes.stacks.reference."):
        raise UsageError(f"--fault: stack '{stack.name}' is not a reference stack; see `mt list stacks`")
    for name in (text.partition(":")[0] for text in faults):
        fits = kind_of_fault(name)
        if fits not in stack.fault_kinds:
            known = ", ".join(n for n, c in plugins.catalogue("faults").items() if c.stack in stack.fault_kinds)  # type: ignore[attr-defined]
            raise UsageError(
                f"--fault: '{name}' is a fault of {fits} stacks; stack '{stack.name}' takes those of "
                f"{' and '.join(stack.fault_kinds)} stacks, which are {known}"
            )
    planted = [*stack.params.get("faults", ()), *map(_fault_with_parameters, faults)]
    return dataclasses.replace(stack, params={**stack.params, "faults": planted})


def kind_of_fault(text: str) -> str:
    """Return which kind of stack a fault, by its name or with parameters, can be planted in.

    Raises UsageError: there is no such fault.
    """
    fits: str = plugins.find("faults", text.partition(":")[0], "--fault").stack  # type: ignore[attr-defined]
    return fits


def _fault_with_parameters(text: str) -> str | dict[str, dict[str, Any]]:
    """Return what a stack file has for a fault: its name, or that with its parameters."""
    name, colon, given = text.partition(":")
    if not colon:
        return name
    pairs = [part.partition("=") for part in given.split(",")]
    if not all(key and equals and value for key, equals, value in pairs):
        raise UsageError(f"--fault {text}: expected a name, or a name and its parameters as in name:parameter=value")
    return {name: {key.strip(): yaml.safe_load(value) for key, _, value in pairs}}


def load_callable(stack: Stack) -> Callable[..., Any]:
    """Import a stack's callable; classes, and functions if the stack has params, are called to make it.

    The working directory and that of the stack file are on the module path.
    Raises UsageError: it cannot be imported, is not callable, or refuses its params.
    """
    module_name, _, attribute = stack.callable.partition(":")
    for directory in (stack.directory, str(Path.cwd())):
        if directory and directory not in sys.path:
            sys.path.insert(0, directory)
    try:
        module = importlib.import_module(module_name)
        target = getattr(module, attribute)
    except Exception as error:
        more = raised_at(error) or _callables_of(sys.modules.get(module_name)) or _searched(error, stack)
        what = f"{type(error).__name__}: {error}{more}"
        raise UsageError(f"stack '{stack.name}': callable {stack.callable} cannot be imported: {what}") from error
    if not callable(target):
        raise UsageError(f"stack '{stack.name}': {stack.callable} is a {type(target).__name__}, not callable")
    if dataclasses.is_dataclass(target):
        return build(target, stack.params, f"stack '{stack.name}': params")  # type: ignore[arg-type, return-value]
    if not (inspect.isclass(target) or stack.params):
        return target  # type: ignore[no-any-return]
    try:
        return target(**stack.params)  # type: ignore[no-any-return]
    except Exception as error:
        where = raised_at(error)
        kind = f"{type(error).__name__}: " if where else ""
        called, params = _as_written(stack)
        raise UsageError(f"stack '{stack.name}': {called}({params}): {kind}{error}{where}") from error


def refuse_signature(stack: Stack, signature: inspect.Signature, by_name: Collection[str]) -> None:
    """Refuse a callable that cannot be called with one input, and with ``by_name`` as far as it takes that.

    Raises UsageError: saying what it takes, and what it gets.
    """
    try:
        signature.bind(None, **dict.fromkeys(by_name))
    except TypeError as error:
        inputs = ", ".join(role for role in stack.inputs)
        given = f"one dict with the inputs {inputs}" if stack.joins else f"one argument ({inputs})"
        called, _ = _as_written(stack)
        raise UsageError(
            f"stack '{stack.name}': {called}{signature} cannot be called: {error}; it is called with {given}"
        ) from error


def _as_written(stack: Stack) -> tuple[str, dict[str, Any]]:
    """Return callable and params as the user wrote them: one that was passed itself has neither loader nor file."""
    if stack.callable != PICKLED:
        return stack.callable, stack.params
    return stack.name, {name: value for name, value in stack.params.items() if name != "file"}


def describe_raise(name: str, error: BaseException) -> str:
    """Say what a stack of that name raised, and where in the user's code."""
    return f"stack '{name}' raised {type(error).__name__}: {error}{raised_at(error)}"


def raised_at(error: BaseException) -> str:
    """Return file and line of the user's code that an exception came through last; nothing if it came through none."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_file()]
    own = [f for f in frames if not any(Path(f.filename).is_relative_to(place) for place in _NOT_THE_USERS)]
    return f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""


def _searched(error: Exception, stack: Stack) -> str:
    """Return where a module was searched for, and a similar one there, if it is the module itself that is missing."""
    name = stack.callable.partition(":")[0].partition(".")[0]
    if not (isinstance(error, ModuleNotFoundError) and error.name == name):
        return ""
    places = dict.fromkeys(str(Path(p)) for p in (stack.directory, Path.cwd()) if str(p))
    modules = [file.stem for place in places for file in Path(place).glob("*.py")]
    similar = difflib.get_close_matches(name, modules, n=1)
    hint = f"did you mean '{similar[0]}'?" if similar else f"expected {name}.py there"
    return f"; searched {', '.join(places)} and the installed packages; {hint}"


def _callables_of(module: ModuleType | None) -> str:
    """Return what a module that was imported has of its own to call, for one who named nothing of it."""
    known = vars(module).items() if module else ()
    mine = [
        name
        for name, value in known
        if callable(value) and getattr(value, "__module__", "") == getattr(module, "__name__", None)
    ]
    return f"; it has {', '.join(mine)}" if mine else ""
