# SPDX-License-Identifier: Apache-2.0
"""What ``mt list`` and ``mt show`` tell, as plain data."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable
from typing import Any

from mt_nodes import plugins, resources
from mt_nodes.errors import UsageError, suggest
from mt_nodes.params import describe, plain

Row = dict[str, Any]


def rows(kind: str) -> list[Row]:
    """Return one object for each thing of a kind, sorted by name.

    Raises:
        UsageError: there is no such kind.
    """
    if kind not in _KINDS:
        raise UsageError(f"mt list: no kind '{kind}'{suggest(kind, _KINDS)}")
    return sorted(_KINDS[kind](), key=lambda row: str(row["name"]))


def kinds() -> list[str]:
    """Everything that can be listed."""
    return list(_KINDS)


def find(name: str) -> tuple[str, Row]:
    """Return the kind and the row of a name, whatever kind it is of.

    Raises:
        UsageError: nothing has that name; suggests the nearest.
    """
    everything = {kind: rows(kind) for kind in _KINDS}
    for kind, listed in everything.items():
        for row in listed:
            if row["name"] == name:
                return kind, row
    names = [str(row["name"]) for listed in everything.values() for row in listed]
    raise UsageError(f"mt show: nothing is called '{name}'{suggest(name, names)}")


def _plugin_rows(kind: str) -> Callable[[], list[Row]]:
    def listed() -> list[Row]:
        return [_plugin_row(kind, name, cls) for name, cls in plugins.catalogue(kind).items()]

    return listed


def _plugin_row(kind: str, name: str, cls: type) -> Row:
    row: Row = {"name": name, "summary": plugins.summary_of(cls), "doc": inspect.getdoc(cls) or ""}
    row |= {key: plain(getattr(cls, key)) for key in ("sensors", "role", "needs", "type") if hasattr(cls, key)}
    if kind == "mutations":
        row["guarantee"] = _guarantee(row["doc"])
    row["parameters"] = describe(cls) if dataclasses.is_dataclass(cls) else []
    return {**row, "module": cls.__module__}


def _guarantee(doc: str) -> str:
    """Return what a mutation's docstring promises of every frame: the sentence that begins with "Guaranteed:"."""
    found = re.search(r"Guaranteed: (.+?\.)(?=\s|$)", " ".join(doc.split()))
    return found[1] if found else ""


def _relation_rows() -> list[Row]:
    from mt_nodes.relations import shipped_relations

    return [{"name": r.id, "summary": r.because, "role": r.role, **r.as_plain()} for r in shipped_relations()]


def _stack_rows() -> list[Row]:
    from mt_nodes.stacks import load_stack

    return [plain(load_stack(name)) for name in resources.shipped("stacks")]


def _region_rows() -> list[Row]:
    from mt_nodes.yaml_files import read_mapping

    return [{"name": n, "summary": _comment(p), **read_mapping(p)} for n, p in resources.shipped("regions").items()]


def _experiment_rows() -> list[Row]:
    from mt_nodes import experiment

    configs = {name: _comment(path) for name, path in resources.shipped("experiments").items()}
    published = {n: dict(zip(experiment.SIGNS, pairs, strict=True)) for n, pairs in experiment.PUBLISHED.items()}
    return [{"name": experiment.NAME, "summary": experiment.SUMMARY, "configs": configs, "published": published}]


def _comment(path: Any) -> str:
    first = path.read_text(encoding="utf-8").split("\n", 1)[0]
    return first.lstrip("# ") if first.startswith("#") else ""


_KINDS: dict[str, Callable[[], list[Row]]] = {
    "mutations": _plugin_rows("mutations"),
    "conditions": _plugin_rows("conditions"),
    "checks": _plugin_rows("checks"),
    "relations": _relation_rows,
    "adapters": _plugin_rows("adapters"),
    "stacks": _stack_rows,
    "faults": _plugin_rows("faults"),
    "regions": _region_rows,
    "experiments": _experiment_rows,
}
