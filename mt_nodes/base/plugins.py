# SPDX-License-Identifier: Apache-2.0
"""Plugins (mutations, conditions, checks, adapters …) from the package, entry points and directories."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mt_nodes.base.entry_points import entry_points_of
from mt_nodes.base.errors import MtError, NotApplicable, PluginError, UsageError, suggest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "mt_nodes.plugins"

#: kind -> (module and name of the base class, package that is walked)
KINDS = {
    "mutations": ("mt_nodes.relations.mutations.base:Mutation", "mt_nodes.relations.mutations"),
    "conditions": ("mt_nodes.relations.conditions.base:Condition", "mt_nodes.relations.conditions"),
    "checks": ("mt_nodes.relations.checks.base:Check", "mt_nodes.relations.checks"),
    "stream_checks": ("mt_nodes.relations.stream_checks.base:StreamCheck", "mt_nodes.relations.stream_checks"),
    "adapters": ("mt_nodes.stacks.message_adapter:Adapter", "mt_nodes.nodes.adapters"),
    "faults": ("mt_nodes.stacks.reference.faults.base:Fault", "mt_nodes.stacks.reference.faults"),
    "scenario_changes": ("mt_nodes.relations.world_changes.base:ScenarioChange", "mt_nodes.relations.world_changes"),
    "expectations": ("mt_nodes.runs.moral.base:Expectation", "mt_nodes.runs.moral.expectations"),
}

#: Loads the relations of traffic rules, by id.
RELATION_SOURCE = "mt_nodes.rules.shipped_rules:load_rule_relation"

_directories: list[Path] = []


def add_directory(path: Path) -> None:
    """Search every ``*.py`` of a directory but tests for plugins, too (``--plugins DIR``)."""
    if not path.is_dir():
        raise UsageError(f"--plugins {path}: no such directory")
    _directories.append(path.resolve())
    catalogue.cache_clear()


def add_directories(paths: Iterable[Path]) -> None:
    """Add each directory that is not yet searched. Raises UsageError: one does not exist."""
    for path in paths:
        if path.resolve() not in _directories:
            add_directory(path)


def directories() -> tuple[Path, ...]:
    """The directories that are searched."""
    return tuple(_directories)


@lru_cache
def catalogue(kind: str) -> dict[str, type]:
    """Return every plugin class of a kind by name, sorted. Raises UsageError: a name is used twice."""
    base_path, package = KINDS[kind]
    base = load(base_path)
    found: dict[str, type] = {}
    for module in (*_walk(package), *_entry_points(), *_files()):
        for _, cls in inspect.getmembers(module, inspect.isclass):
            if cls.__module__ == module.__name__ and issubclass(cls, base) and not inspect.isabstract(cls):
                name = name_of(cls)
                if found.setdefault(name, cls) is not cls:
                    raise UsageError(f"two {kind} are named '{name}': {found[name].__module__} and {cls.__module__}")
    return dict(sorted(found.items()))


def find(kind: str, name: str, where: str) -> type:
    """Return the plugin class of a name. Raises UsageError: there is none; the error suggests the nearest name."""
    cls = get(kind, name)
    if cls is None:
        raise UsageError(f"{where}: no {kind.rstrip('s')} '{name}'{suggest(name, catalogue(kind))}")
    return cls


def get(kind: str, name: str) -> type | None:
    """Return the plugin class of a name, or None if there is none.

    Without other sources of plugins than the package, only the module that defines the class is imported: importing all
    takes half a second.
    """
    return _shipped(kind, name) if only_shipped() else catalogue(kind).get(name)


def only_shipped() -> bool:
    """Return whether there are no other sources of plugins than the package."""
    return not _directories and not _points()


@lru_cache
def _shipped(kind: str, name: str) -> type | None:
    base_path, package = KINDS[kind]
    base = load(base_path)
    for module_name, class_name in _definitions(package).get(name, ()):
        cls = getattr(importlib.import_module(module_name), class_name)
        if issubclass(cls, base) and not inspect.isabstract(cls):
            return cls  # type: ignore[no-any-return]
    return None


@lru_cache
def _definitions(package: str) -> dict[str, list[tuple[str, str]]]:
    """Return where the classes of a package are defined, read from the source: plugin name -> (module, class name)."""
    found: dict[str, list[tuple[str, str]]] = {}
    for info in modules(package):
        for class_name in re.findall(r"^class (\w+)", source(info.name), re.MULTILINE):
            found.setdefault(snake_case(class_name), []).append((info.name, class_name))
    return found


def source(module: str) -> str:
    """Return the source text of a module, without importing it; empty where there is none."""
    spec = importlib.util.find_spec(module)
    # The file itself: the loader of pytest, which rewrites assertions of packages with a plugin for it, has no source.
    file = Path(spec.origin) if spec is not None and spec.origin else None
    return file.read_text(encoding="utf-8") if file is not None and file.is_file() else ""


def name_of(cls: type) -> str:
    """``NoiseOutsideRoi`` -> ``noise_outside_roi``."""
    return snake_case(cls.__name__)


def snake_case(name: str) -> str:
    """``NoiseOutsideRoi`` -> ``noise_outside_roi``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def summary_of(cls: type) -> str:
    """First line of a class's docstring."""
    return (inspect.getdoc(cls) or "").split("\n", 1)[0]


def kind_of(cls: type) -> str:
    """Return what a plugin class is, such as ``mutation`` or ``scenario change``; ``plugin`` if unknown."""
    bases = {path.partition(":")[2]: kind for kind, (path, _) in KINDS.items()}
    kind = next((bases[parent.__name__] for parent in cls.__mro__ if parent.__name__ in bases), "plugins")
    return kind.removesuffix("s").replace("_", " ")


def is_plugin(cls: type) -> bool:
    """Return whether a class is a plugin of any kind."""
    return kind_of(cls) != "plugin"


@contextmanager
def name_errors(plugin: object, method: str) -> Iterator[None]:
    """Raise a :class:`PluginError` in place of what a method of a plugin raises, even ``SystemExit``.

    Known errors, and :class:`NotApplicable`, are raised as they are: a plugin may raise those.
    """
    try:
        yield
    except (MtError, NotApplicable):
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(describe_failure(plugin, method, error)) from error


def describe_failure(plugin: object, method: str, error: BaseException) -> str:
    """Say which plugin (or its class) failed, in which method, file and line, and how.

    The line is the last one of the plugin's own file; where no line of that was reached, the last one of all.
    """
    cls = plugin if isinstance(plugin, type) else type(plugin)
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f.filename == getattr(sys.modules.get(cls.__module__), "__file__", None)]
    method = own[0].name if own and hasattr(cls, own[0].name) else method
    place = "".join(f" ({Path(f.filename).name}:{f.lineno})" for f in (own or frames)[-1:])
    return f"{kind_of(cls)} '{name_of(cls)}' failed in {method}{place}: {type(error).__name__}: {error}"


def refuse_return(plugin: object, method: str, value: object, *expected: type) -> None:
    """Refuse a return value of another type. Raises PluginError."""
    if not isinstance(value, expected):
        names = " or ".join("None" if one is type(None) else one.__name__ for one in expected)
        cls = type(plugin)
        raise PluginError(
            f"{kind_of(cls)} '{name_of(cls)}' failed in {method}: it returned {type(value).__name__} {value!r:.100}, "
            f"expected {names}"
        )


def load(path: str) -> Any:
    """Import ``package.module:name``."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def modules(package: str) -> Iterator[pkgutil.ModuleInfo]:
    """Yield every module of a package and of those in it, without importing it."""
    root = importlib.import_module(package)
    return (info for info in pkgutil.walk_packages(root.__path__, f"{package}.") if not info.ispkg)


def _walk(package: str) -> Iterator[ModuleType]:
    for info in modules(package):
        yield importlib.import_module(info.name)


@lru_cache
def _points() -> tuple[EntryPoint, ...]:
    return entry_points_of(ENTRY_POINT_GROUP)


def _entry_points() -> Iterator[ModuleType]:
    for point in _points():
        loaded = point.load()
        yield loaded if inspect.ismodule(loaded) else sys.modules[loaded.__module__]


def _files() -> Iterator[ModuleType]:
    for directory in _directories:
        for path in sorted(directory.glob("*.py")):
            if not path.name.startswith(("test_", "conftest.")):  # which lie beside plugins, and need pytest
                yield _import_file(path)


def _import_file(path: Path) -> ModuleType:
    name = f"mt_plugins_{path.stem}"
    if name in sys.modules and sys.modules[name].__file__ == str(path):
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"--plugins: cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UsageError(f"--plugins: {path} fails to import: {type(error).__name__}: {error}") from error
    return module
