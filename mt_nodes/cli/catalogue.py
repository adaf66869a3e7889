# SPDX-License-Identifier: Apache-2.0
"""What ``mt list`` and ``mt show`` print, as plain data."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from mt_nodes.base import plugins, resources
from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.params import describe, plain
from mt_nodes.base.plugin_sources import shipped_rows

Row = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class _Kind:
    """One kind of thing: its names, and the row of each, which is read only when it is needed."""

    names: Callable[[], Iterable[str]]
    row: Callable[[str], Row]


def rows(kind: str) -> list[Row]:
    """Return one object for each thing of a kind, sorted by name. Raises UsageError: there is no such kind."""
    return [row(kind, name) for name in names(kind)]


def brief_rows(kind: str, keys: Sequence[str]) -> list[Row]:
    """Return name, summary and ``keys`` of each thing of a kind; may have more. Raises UsageError: no such kind.

    Of shipped plugins they are read from the source.
    """
    if kind in plugins.KINDS and kind != "adapters" and plugins.only_shipped():
        return [{key: plain(value) for key, value in row.items()} for row in shipped_rows(kind, keys)]
    if kind == "manipulations" and plugins.only_shipped():
        return list(_brief_manipulations())
    if kind == "experiments":
        return [_brief_experiment(name) for name in names(kind)]
    return rows(kind)


def names(kind: str) -> list[str]:
    """Return the names of a kind, sorted. Raises UsageError: there is no such kind."""
    return sorted(_known(kind).names())


def row(kind: str, name: str) -> Row:
    """Return the object of one thing."""
    return _known(kind).row(name)


def kinds() -> list[str]:
    """Return all kinds that can be listed."""
    return list(_KINDS)


def find(name: str) -> tuple[str, Row]:
    """Return the kind and the row of a name. Raises UsageError: nothing has that name; names a similar one."""
    everything: list[str] = []
    for kind, known in _KINDS.items():
        names = set(known.names())
        if name in names:
            return kind, known.row(name)
        everything += sorted(names)
    hint = suggest(name, everything, "`mt list KIND` lists the names, `mt list --help` the kinds")
    raise UsageError(f"mt show: nothing is called '{name}'{hint}")


def _known(kind: str) -> _Kind:
    if kind not in _KINDS:
        raise UsageError(f"mt list: no kind '{kind}'{suggest(kind, _KINDS)}")
    return _KINDS[kind]


def _plugins(kind: str) -> _Kind:
    return _Kind(lambda: plugins.catalogue(kind), lambda name: _plugin_row(kind, name, plugins.catalogue(kind)[name]))


def _shipped(folder: str, row: Callable[[str], Row]) -> _Kind:
    return _Kind(lambda: resources.shipped(folder), row)


def _plugin_row(kind: str, name: str, cls: type) -> Row:
    row: Row = {"name": name, "summary": plugins.summary_of(cls), "doc": inspect.getdoc(cls) or ""}
    row |= {
        key: plain(getattr(cls, key))
        for key in ("sensors", "role", "needs", "type", "stack", "extra")
        if hasattr(cls, key)
    }
    if kind == "mutations":
        row["guarantee"] = _guarantee(row["doc"])
    if kind == "adapters":
        row |= cls.properties()  # type: ignore[attr-defined]
    row["parameters"] = describe(cls) if dataclasses.is_dataclass(cls) else []
    return {**row, "module": cls.__module__}


def _guarantee(doc: str) -> str:
    """Return what a mutation guarantees for every frame: the sentence of its docstring that begins "Guaranteed:"."""
    found = re.search(r"Guaranteed: (.+?\.)(?=\s|$)", " ".join(doc.split()))
    return found[1] if found else ""


def _relation_row(name: str) -> Row:
    from mt_nodes.relations.relation import load_relation
    from mt_nodes.rules.shipped_rules import in_loop, section_of
    from mt_nodes.runs.relation_choice import suites_with, tags_of

    relation = load_relation(name)
    row = {"name": relation.id, "summary": relation.because, "role": relation.role, "section": section_of(name)}
    tags = {"suites": list(suites_with(name)), "tags": sorted(tags_of(name))}
    return {**row, "drives": relation.loop or name in in_loop(), **relation.as_plain(), **tags}


def _relations() -> Iterable[str]:
    from mt_nodes.relations.relation import FOLDER, LOOP_FOLDER
    from mt_nodes.rules.shipped_rules import in_store

    return [*resources.shipped(FOLDER), *resources.shipped(LOOP_FOLDER), *in_store()]


def _principle_row(name: str) -> Row:
    from mt_nodes.runs.moral.principle import load_principle

    principle = load_principle(name)
    return {"name": principle.id, "summary": principle.title, **principle.as_plain()}


def _stack_row(name: str) -> Row:
    from mt_nodes.stacks.stack import load_stack

    return dict(plain(load_stack(name)))


def _suite_row(name: str) -> Row:
    from mt_nodes.relations.named_suites import suites
    from mt_nodes.runs.relation_choice import suite_members

    members = list(suite_members(name))
    return {"name": name, "summary": _comment(suites()[name]), "count": len(members), "relations": members}


def _region_row(name: str) -> Row:
    from mt_nodes.base.yaml_files import read_mapping

    path = resources.find("regions", name)
    return {"name": name, "summary": _comment(path), **read_mapping(path)}


def _scenario_row(name: str) -> Row:
    path = resources.shipped("scenarios", ".scenario")[name]
    return {"name": name, "summary": _comment(path), "script": path.read_text(encoding="utf-8").splitlines()}


def _manipulation_row(name: str) -> Row:
    from mt_nodes.relations.manipulations import find as find_manipulation

    return find_manipulation(name).as_plain()


def _brief_manipulations() -> Iterator[Row]:
    from mt_nodes.relations.manipulations import manipulations

    sensors = {row["name"]: row["sensors"] for row in shipped_rows("mutations", ("sensors",))}
    for name, one in sorted(manipulations().items()):
        changed = dict.fromkeys(sensor for mutation, _ in one.mutate for sensor in sensors[mutation])
        yield {"name": name, "summary": one.summary, "sensors": list(changed)}


def _manipulations() -> Iterable[str]:
    from mt_nodes.relations.manipulations import manipulations

    return manipulations()


def _experiment_row(name: str) -> Row:
    return {**_brief_experiment(name), **_EXPERIMENT_DETAILS[name]()}


def _brief_experiment(name: str) -> Row:
    from mt_nodes.cli.verbs import VERBS

    shipped = resources.shipped("experiments") if name == "noise-outside-roi" else {}
    return {
        "name": name,
        "summary": VERBS["experiment"][name][1],
        "configs": {one: _comment(path) for one, path in shipped.items()},
    }


def _experiments() -> Iterable[str]:
    from mt_nodes.cli.verbs import VERBS

    return VERBS["experiment"]


def _noise_details() -> Row:
    from mt_nodes.report import published_tables

    published = {
        n: dict(zip(published_tables.SIGNS, pairs, strict=True)) for n, pairs in published_tables.PUBLISHED.items()
    }
    return {"published": published}


def _automt_details() -> Row:
    from mt_nodes.rules.published_figures import published

    figures = published()
    return {"published": {"validation": figures.validation, "violation": figures.violation}}


def _moral_details() -> Row:
    return {"principles": list(resources.shipped("principles"))}


def _routes_details() -> Row:
    from mt_nodes.runs.routes.route_planner import FAULTS
    from mt_nodes.runs.routes.route_relations import RELATIONS

    relations = [{"name": r.name, "kind": r.kind, "because": r.because} for r in RELATIONS]
    return {"relations": relations, "faults": list(FAULTS)}


_EXPERIMENT_DETAILS: dict[str, Callable[[], Row]] = {
    "noise-outside-roi": _noise_details,
    **dict.fromkeys(("moral", "moral-search", "moral-levels"), _moral_details),
    "automt": _automt_details,
    "routes": _routes_details,
}


def _comment(path: Any) -> str:
    first = path.read_text(encoding="utf-8").split("\n", 1)[0]
    return first.lstrip("#/ ") if first.startswith(("#", "//")) else ""


#: kind -> what its things are, in one line
SUMMARIES = {
    "relations": "how the output may change when the input changes so: what a run tests",
    "suites": "named lists of relations, for `--relations NAME`",
    "stacks": "driving stacks and templates, for `--stack NAME`",
    "scenarios": "streets and traffic for the closed loop, for `mt scenario NAME`",
    "faults": "planted errors of the reference stacks, for `--fault NAME`",
    "mutations": "changes of point clouds, images and streams",
    "manipulations": "changes in words of traffic rules, and the mutations that show them",
    "scenario_changes": "changes of the world of a scenario",
    "checks": "comparisons of two outputs",
    "stream_checks": "demands on one stream of outputs, for `mt live --watch-only`",
    "conditions": "requirements of a relation on the source input or output",
    "regions": "boxes that relations refer to",
    "adapters": "message types that can be read",
    "principles": "principles of moral tests, for `mt experiment moral`",
    "expectations": "what principles expect of a stack",
    "experiments": "published experiments, for `mt experiment NAME`",
}
_KINDS: dict[str, _Kind] = {
    "mutations": _plugins("mutations"),
    "conditions": _plugins("conditions"),
    "checks": _plugins("checks"),
    "stream_checks": _plugins("stream_checks"),
    "scenario_changes": _plugins("scenario_changes"),
    "relations": _Kind(_relations, _relation_row),
    "suites": _shipped("suites", _suite_row),
    "adapters": _plugins("adapters"),
    "stacks": _shipped("stacks", _stack_row),
    "faults": _plugins("faults"),
    "regions": _shipped("regions", _region_row),
    "experiments": _Kind(_experiments, _experiment_row),
    "manipulations": _Kind(_manipulations, _manipulation_row),
    "principles": _shipped("principles", _principle_row),
    "expectations": _plugins("expectations"),
    "scenarios": _Kind(lambda: resources.shipped("scenarios", ".scenario"), _scenario_row),
}
