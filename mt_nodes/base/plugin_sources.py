# SPDX-License-Identifier: Apache-2.0
"""What shipped plugins are, read from their source: importing all mutations takes most of a second."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mt_nodes.base import plugins

#: A class with its body, which ends where a line begins with something else than a space.
_CLASS = re.compile(r"^class (\w+)(?:\(([^()]*)\))?:[^\n]*\n((?:[ \t][^\n]*\n|\n)*)", re.MULTILINE)
_IMPORT = re.compile(r"^from (mt_nodes[\w.]*) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)
_SUMMARY = re.compile(r'\s*r?"""(.*?)(?:"""|\n)')
_MEMBER = re.compile(r"^    (?:(?:async )?def (\w+)|(\w+)(?::[^=\n]*)? = (.*)$)", re.MULTILINE)
_ABSTRACT = re.compile(r"^    @abstractmethod\n    (?:async )?def (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class _Source:
    """One class: its bases as written, its first line of documentation, its members with their values as written."""

    module: str
    name: str
    bases: tuple[str, ...]
    summary: str
    members: Mapping[str, str]
    abstract: frozenset[str]


def shipped_rows(kind: str, keys: Sequence[str]) -> list[dict[str, Any]]:
    """Return name, summary and the class attributes ``keys`` of every shipped plugin of a kind, sorted by name.

    An attribute that is neither a literal nor a constant of its module is read from the imported class; one that there
    is not is left out.
    """
    base_path, package = plugins.KINDS[kind]
    base = base_path.partition(":")[2]
    rows = []
    for info in plugins.modules(package):
        for name in _classes(info.name):
            line = _line_of(info.name, name)
            if any(one.name == base for one in line) and not _is_abstract(line):
                rows.append({"name": plugins.snake_case(name), "summary": _summary(line), **_values(line, keys)})
    return sorted(rows, key=lambda row: str(row["name"]))


@lru_cache
def _classes(module: str) -> dict[str, _Source]:
    found = {}
    for name, bases, body in _CLASS.findall(plugins.source(module)):
        summary = _SUMMARY.match(body)
        members = {method or attribute: value for method, attribute, value in _MEMBER.findall(body)}
        parents = tuple(re.sub(r"\[.*", "", base).strip() for base in bases.split(",") if base.strip())
        found[name] = _Source(
            module, name, parents, summary[1] if summary else "", members, frozenset(_ABSTRACT.findall(body))
        )
    return found


@lru_cache
def _imports(module: str) -> dict[str, str]:
    """Return where each name comes from that a module imports from this package."""
    found = _IMPORT.findall(plugins.source(module))
    return {
        name.strip(): origin for origin, several, one in found for name in (several or one).split(",") if name.strip()
    }


@lru_cache
def _line_of(module: str, name: str) -> tuple[_Source, ...]:
    """Return a class and its parents of this package in the order in which Python looks for attributes."""
    own = _classes(module).get(name)
    if own is None:
        origin = _imports(module).get(name)
        return _line_of(origin, name) if origin else ()
    parents = [one for base in own.bases for one in _line_of(module, base)]
    return (own, *(one for at, one in enumerate(parents) if one not in parents[at + 1 :]))


def _is_abstract(line: Sequence[_Source]) -> bool:
    """Return whether a method is abstract where Python finds it first."""
    names = {name for one in line for name in one.abstract}
    return any(name in next(one for one in line if name in one.members).abstract for name in names)


def _summary(line: Sequence[_Source]) -> str:
    return next((one.summary for one in line if one.summary), "")


def _values(line: Sequence[_Source], keys: Sequence[str]) -> dict[str, Any]:
    owners = {key: next((one for one in line if key in one.members), None) for key in keys}
    return {key: _value(line[0], owner, key) for key, owner in owners.items() if owner is not None}


def _value(cls: _Source, owner: _Source, key: str) -> Any:
    written = owner.members[key]
    if written.isidentifier():  # a constant of its module
        constant = re.search(rf"^{written} = (.*)$", plugins.source(owner.module), re.MULTILINE)
        written = constant[1] if constant else written
    try:
        return ast.literal_eval(written)
    except (SyntaxError, ValueError):
        return getattr(plugins.load(f"{cls.module}:{cls.name}"), key)
