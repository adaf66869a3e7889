# SPDX-License-Identifier: Apache-2.0
"""Principles, read from YAML: what is expected, why, what speaks against it. Whoever disagrees writes another file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mt_nodes.base import plugins, resources
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build, plain
from mt_nodes.base.stats.intervals import ALPHA
from mt_nodes.base.yaml_files import named_items, read_identifier, read_mapping, refuse_unknown
from mt_nodes.relations.relation import minimum_decided
from mt_nodes.runs.moral.base import Expectation

FOLDER = "principles"
KIND = "expected"
MIN_DECIDED = 3
_NEEDED = ("id", "title", "kind", "because", "sources", "contested", "expect")
_KNOWN = (*_NEEDED, "min_decided", "alpha")


@dataclass(frozen=True)
class Principle:
    """What somebody holds that a stack should do where it cannot but hit somebody.

    Attributes:
        kind: always :data:`KIND`: a principle is never necessary. because: why one may hold it. sources: where it
            comes from. contested: what speaks against it.
        min_decided: cases that must be decided before it may pass. alpha: the level of its family of cases.
    """

    id: str
    title: str
    kind: str
    because: str
    sources: tuple[str, ...]
    contested: str
    expect: Expectation
    min_decided: int = MIN_DECIDED
    alpha: float = ALPHA
    path: Path | None = None

    def as_plain(self) -> dict[str, Any]:
        """Return the principle as its file says it, defaults filled in."""
        return {
            "id": self.id,
            "title": self.title,
            "kind": self.kind,
            "because": self.because,
            "sources": list(self.sources),
            "contested": self.contested,
            "expect": {plugins.name_of(type(self.expect)): plain(self.expect)},
            "min_decided": self.min_decided,
            "alpha": self.alpha,
        }


def load_principle(name: str) -> Principle:
    """Read a shipped principle by id, or the user's own by path.

    Raises UsageError: naming the file, the key, what was got and what was expected.
    """
    path = resources.find(FOLDER, name)
    data = read_mapping(path)
    refuse_unknown(data, _KNOWN, str(path))
    if missing := [key for key in _NEEDED if key not in data]:
        raise UsageError(f"{path}: missing {', '.join(missing)}")
    if data["kind"] != KIND:
        raise UsageError(f"{path}: kind: got {data['kind']!r}, expected {KIND}: no principle is a necessity")
    return Principle(
        id=read_identifier(data["id"], str(path)),
        title=_text(data, "title", path),
        kind=KIND,
        because=_text(data, "because", path),
        sources=_sources(data["sources"], path),
        contested=_text(data, "contested", path),
        expect=_expectation(data["expect"], path),
        min_decided=minimum_decided(data.get("min_decided", MIN_DECIDED), path),
        alpha=_alpha(data.get("alpha", ALPHA), path),
        path=path,
    )


def _expectation(value: Any, path: Path) -> Expectation:
    where = f"{path}: expect"
    items = named_items(value, where)
    if len(items) != 1:
        raise UsageError(f"{where}: got {len(items)} expectations, expected one")
    ((name, params),) = items
    return cast(Expectation, build(plugins.find("expectations", name, where), params, f"{where}.{name}"))


def _text(data: dict[str, Any], key: str, path: Path) -> str:
    value = data[key]
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise UsageError(f"{path}: {key}: got {value!r}, expected a text")


def _sources(value: Any, path: Path) -> tuple[str, ...]:
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return tuple(" ".join(one.split()) for one in value)
    raise UsageError(f"{path}: sources: got {value!r}, expected a list of texts, one at least (your own name will do)")


def _alpha(value: Any, path: Path) -> float:
    if isinstance(value, float) and 0.0 < value <= 0.5:
        return value
    raise UsageError(f"{path}: alpha: got {value!r}, expected a number above 0, 0.5 at most")
