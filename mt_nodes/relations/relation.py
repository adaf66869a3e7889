# SPDX-License-Identifier: Apache-2.0
"""Metamorphic relations, read from YAML: given, scenario, mutate, check, because."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from mt_nodes.base import plugins, resources
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build, plain
from mt_nodes.base.plugins import name_errors
from mt_nodes.base.yaml_files import named_items, read_identifier, read_mapping, refuse_unknown
from mt_nodes.data.output_traits import OutputTraits
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.trace_check import TraceCheck
from mt_nodes.relations.conditions.base import Condition
from mt_nodes.relations.manipulations import mutations_named
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.relations.world_changes.base import ScenarioChange

KINDS = ("necessary", "expected")
REQUIRABLE = (
    *("lidar", "lidar_only", "camera", "radar", "radar_only", "objects"),
    *("full_360", "map_free", "stateless", "tracks"),
)
#: In addition: inputs of which one suffices.
ALTERNATIVES = ("lidar or camera", "signals or camera", "route or camera")
CONTROL = "identity"
SHAM = "points_permuted"
#: Sham for stacks with a camera alone.
CAMERA_SHAM = "pixels_dithered"
#: Sham for stacks with a camera and LiDARs or radars.
JOINT_SHAM = "points_permuted_pixels_dithered"
SHAMS = (SHAM, CAMERA_SHAM, JOINT_SHAM)
#: Sham of the closed loop.
LOOP_SHAM = "sensors_resampled"
#: Folders of relations: for bags and live input, and for the closed loop.
FOLDER, LOOP_FOLDER = "relations", "loop_relations"
#: Id prefix of relations from traffic rules, which have no file of their own.
RULE_BORN = "rule_"


@dataclass(frozen=True)
class Relation:
    """A statement of how the output may change when the input changes so.

    ``check`` is None for control and sham, which are judged by the checks of all other relations. With a ``baseline``,
    the source arm gets the bundle changed by the baseline, with the same draw: the check compares more of a change with
    less of it. ``tolerated_rate`` is the share of violated pairs that an expected relation tolerates if neither control
    nor sham could be decided.
    """

    id: str
    kind: str
    because: str
    mutate: tuple[Mutation, ...]
    check: Check | None
    given: tuple[Condition, ...] = ()
    requirement: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    min_decided: int = 20
    tolerated_rate: float | None = None
    path: Path | None = None
    baseline: tuple[Mutation, ...] = ()
    scenario: tuple[ScenarioChange, ...] = ()

    @property
    def loop(self) -> bool:
        """Whether it belongs to the closed loop: it judges the drive, not single answers."""
        return bool(self.scenario) or isinstance(self.check, TraceCheck)

    @property
    def role(self) -> str:
        """``relation``, ``control`` or ``sham``."""
        roles = {change.role for change in self.scenario} | {m.role for m in self.mutate}
        return roles.pop() if len(roles) == 1 else "relation"

    def as_plain(self) -> dict[str, Any]:
        """Return the relation as in its file, with defaults."""
        return {
            "id": self.id,
            "kind": self.kind,
            "because": self.because,
            "requirement": list(self.requirement),
            "requires": list(self.requires),
            "given": [_named(c) for c in self.given],
            **({"baseline": [_named(m) for m in self.baseline]} if self.baseline else {}),
            **({"scenario": [_named(c) for c in self.scenario]} if self.scenario else {}),
            "mutate": [_named(m) for m in self.mutate],
            "check": None if self.check is None else _named(self.check),
            "min_decided": self.min_decided,
            **({} if self.tolerated_rate is None else {"tolerated_rate": self.tolerated_rate}),
        }


@dataclass(frozen=True)
class Suite:
    """What one run offers: relations, and always a control and a sham."""

    relations: tuple[Relation, ...]
    control: Relation
    sham: Relation

    @property
    def all(self) -> tuple[Relation, ...]:
        """All of them; the control comes first, so that flicker is known early."""
        return (self.control, self.sham, *self.relations)


def load_relation(name: str, loop: bool = False) -> Relation:
    """Read a shipped relation by id, or a user's by path; ``loop``: the closed-loop form of a rule's relation.

    Raises UsageError: naming the file, the key, what was got and what was expected.
    """
    if name.startswith(RULE_BORN) and not name.endswith((".yaml", ".yml")):
        return cast(Relation, plugins.load(plugins.RELATION_SOURCE)(name, loop))
    path = resources.find(FOLDER, name, also=LOOP_FOLDER)
    data = read_mapping(path)
    known = ("id", "kind", "because", "requirement", "requires", "given", "baseline", "scenario", "mutate", "check")
    refuse_unknown(data, (*known, "min_decided", "tolerated_rate"), str(path))
    _need(data, ("id", "kind", "because", *(() if "scenario" in data else ("mutate",))), path)
    if data["kind"] not in KINDS:
        raise UsageError(f"{path}: kind: got {data['kind']!r}, expected {' or '.join(KINDS)}")
    refuse_unknown(dict.fromkeys(_texts(data, "requires", path)), (*REQUIRABLE, *ALTERNATIVES), f"{path}: requires")
    relation = Relation(
        id=read_identifier(data["id"], str(path)),
        kind=data["kind"],
        because=str(data["because"]).strip(),
        mutate=_mutations(data.get("mutate") or [], f"{path}: mutate"),
        check=_check(data.get("check"), path),
        given=cast("tuple[Condition, ...]", _plugins("conditions", data.get("given") or [], f"{path}: given")),
        requirement=_texts(data, "requirement", path),
        requires=_texts(data, "requires", path),
        min_decided=minimum_decided(data.get("min_decided", 20), path),
        tolerated_rate=_rate(data.get("tolerated_rate"), path),
        path=path,
        baseline=_mutations(data.get("baseline") or [], f"{path}: baseline"),
        scenario=cast(
            "tuple[ScenarioChange, ...]", _plugins("scenario_changes", data.get("scenario") or [], f"{path}: scenario")
        ),
    )
    _refuse_discord(relation, path)
    return relation


def _refuse_discord(relation: Relation, path: Path) -> None:
    """Refuse parts of a relation that do not fit together. Raises UsageError."""
    if not relation.mutate and not relation.scenario:
        raise UsageError(f"{path}: mutate: got an empty list, expected at least one mutation")
    if relation.role == "relation" and relation.check is None:
        raise UsageError(f"{path}: missing check (only control and sham go without)")
    if late := [plugins.name_of(type(m)) for m in relation.mutate[1:] if m.needs_history]:
        raise UsageError(f"{path}: mutate: {late[0]} looks back at former bundles of the source; make it the first")
    if relation.tolerated_rate is not None and relation.kind != "expected":
        raise UsageError(f"{path}: tolerated_rate: a {relation.kind} relation tolerates no violated pair")
    if relation.baseline and relation.role != "relation":
        raise UsageError(f"{path}: baseline: a {relation.role} has none, it is compared with the source itself")
    if relation.loop and relation.check is not None and not isinstance(relation.check, TraceCheck):
        raise UsageError(
            f"{path}: check: {plugins.name_of(type(relation.check))} judges answers to one input, which two worlds do "
            "not give; a change of the scenario needs a check of drives, such as same_trace"
        )
    looks = [name for one in relation.given for name in _named(one) if not one.by_facts]
    if relation.loop and (key := "given" if looks else "baseline" if relation.baseline else ""):
        raise UsageError(f"{path}: {key}: is for single inputs; of a drive the change itself says where it applies")


def sham_for(sensors: Collection[str]) -> str:
    """Return the sham for a stack with these sensors: one that changes all of them."""
    if "camera" not in sensors:
        return SHAM
    return JOINT_SHAM if {"lidar", "radar"} & {*sensors} else CAMERA_SHAM


def load_suite(names: Sequence[str], sham: str = SHAM, traits: OutputTraits | None = None) -> Suite:
    """Load the named relations and the control and sham that every run has; see :func:`sham_for`.

    With the sham of the closed loop, relations of rules have their closed-loop form. ``traits``: settings of the stack
    file for checks that lack them.
    Raises UsageError: a name is unknown or repeated, or there is nothing to judge.
    """
    relations = [r for r in (load_relation(n, sham == LOOP_SHAM) for n in names) if r.role == "relation"]
    if not relations:
        raise UsageError(f"got no relation to judge in '{','.join(names)}'; see `mt list relations`")
    ids = [r.id for r in relations]
    for identifier in ids:
        if ids.count(identifier) > 1:
            raise UsageError(f"relation '{identifier}' is named twice")
    return Suite(
        tuple(of_stack(r, traits or OutputTraits()) for r in relations), load_relation(CONTROL), load_relation(sham)
    )


Part = TypeVar("Part", Check, Condition)


def of_stack(relation: Relation, traits: OutputTraits) -> Relation:
    """Return a relation whose check and conditions have missing settings from the stack file."""

    def complete(part: Part) -> Part:
        with name_errors(part, "of_stack"):
            return part.of_stack(traits)

    given = tuple(map(complete, relation.given))
    return replace(relation, check=relation.check and complete(relation.check), given=given)


def refuse_baseline(relation: Relation, owner: str) -> None:
    """Refuse a relation with a baseline if the source arm's input cannot be changed, and one of the closed loop.

    One that changes transforms or messages of navigation sensors is refused, too: they are sent as they are.
    Raises UsageError: it has one, or is one.
    """
    if relation.loop:
        raise UsageError(f"{owner}: relation '{relation.id}' is of the closed loop; use `mt scenario`")
    if any(mutation.about_transforms or mutation.about_wires for mutation in relation.mutate):
        raise UsageError(
            f"{owner}: relation '{relation.id}' changes transforms or messages of a navigation sensor, which topics "
            "carry as they are; use `mt replay` (of transforms: with --transport inprocess) or `mt mutate`"
        )
    if relation.baseline:
        raise UsageError(
            f"{owner}: relation '{relation.id}' has a baseline, so both arms are given a changed input, and the source "
            "arm of a node alone is given what is there; use `mt replay`"
        )


@cache
def shipped_relations(folder: str = FOLDER) -> tuple[Relation, ...]:
    """Return every relation of the package, read once: for bags and live input, or of :data:`LOOP_FOLDER`."""
    return tuple(load_relation(name) for name in resources.shipped(folder))


def _check(value: Any, path: Path) -> Check | None:
    if value is None:
        return None
    checks = _plugins("checks", value, f"{path}: check")
    if len(checks) != 1:
        raise UsageError(f"{path}: check: got {len(checks)} checks, expected one")
    return cast(Check, checks[0])


def _mutations(value: Any, where: str) -> tuple[Mutation, ...]:
    """Read mutations; the name of a manipulation stands for its mutations."""
    return tuple(
        mutation for name, params in named_items(value, where) for mutation in mutations_named(name, params, where)
    )


def _plugins(kind: str, value: Any, where: str) -> tuple[Any, ...]:
    return tuple(
        build(plugins.find(kind, name, where), params, f"{where}.{name}") for name, params in named_items(value, where)
    )


def _named(plugin: Any) -> dict[str, Any]:
    return {plugins.name_of(type(plugin)): plain(plugin)}


def _need(data: dict[str, Any], keys: Iterable[str], path: Path) -> None:
    missing = [k for k in keys if k not in data]
    if missing:
        raise UsageError(f"{path}: missing {', '.join(missing)}")


def _texts(data: dict[str, Any], key: str, path: Path) -> tuple[str, ...]:
    value = data.get(key) or []
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return tuple(value)
    raise UsageError(f"{path}: {key}: got {value!r}, expected a list of texts")


def minimum_decided(value: Any, path: Path) -> int:
    """Return ``min_decided`` of a file. Raises UsageError: it is none."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise UsageError(f"{path}: min_decided: got {value!r}, expected a whole number of at least 1")


def _rate(value: Any, path: Path) -> float | None:
    if value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0.0 <= value < 1.0:
        return float(value)
    raise UsageError(f"{path}: tolerated_rate: got {value!r}, expected a number of at least 0 and below 1")
