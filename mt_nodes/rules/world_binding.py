# SPDX-License-Identifier: Apache-2.0
"""Makes closed-loop relations from statements: the element's changes of a world, and the behaviour's check there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.relations.checks.trace_check import PLACE, WAY
from mt_nodes.relations.facts.condition import Facts, parse
from mt_nodes.relations.manipulations import find
from mt_nodes.relations.relation import Relation
from mt_nodes.relations.world_changes.base import ScenarioChange
from mt_nodes.relations.world_changes.environment_changes import EnvironmentChanged, fog_of, visibility_of
from mt_nodes.relations.world_changes.free_places import ROADS
from mt_nodes.relations.world_changes.sign_changes import SPEEDS_KMH, SignalShows, SignPutUp
from mt_nodes.rules.ontology import ANY_ROAD, Ontology
from mt_nodes.rules.rule_sets import RuleSet
from mt_nodes.rules.statement import ON_ROAD, ON_ROADSIDE, Statement
from mt_nodes.rules.statement_binding import CLEARLY_BELOW, gap, given_of, limits_of, number_on, relation_id, rule_of
from mt_nodes.world.scene.faces import SIGNS

_PLACES = {ON_ROAD: "way", ON_ROADSIDE: "roadside"}
#: Range ahead for a particular kind of road, of which there are few places.
_AHEAD_M = (20.0, 250.0)


def gap_in_world(statement: Statement, ontology: Ontology, region: str) -> str:
    """Return why a statement cannot be run in the closed loop in a region, empty if it can."""
    if why := gap(statement, ontology, region):
        return why
    if statement.road not in ROADS:
        return f"no map has a {statement.road}"
    manipulation = find(ontology.elements[statement.element].manipulation_for(region))
    if not manipulation.in_world:
        return manipulation.not_in_world
    if statement.road != ANY_ROAD and not all("at" in _names(change) for change in manipulation.changes()):
        return f"it is everywhere, and not at one {statement.road}"
    return "" if ontology.behaviours[statement.behaviour].in_world[0] else f"nothing judges {statement.behaviour} there"


def bind_in_world(statement: Statement, ontology: Ontology, rules: RuleSet, nth: int = 1) -> Relation:
    """Return a statement as a closed-loop relation; ``nth``: index of the statement within its rule.

    Raises UsageError: a word is unknown, no world shows it, no rule has it, or the condition is known to be false.
    """
    rule = rule_of(statement, ontology, rules)
    if why := gap_in_world(statement, ontology, rules.region):
        raise UsageError(f"rule {rule.id}: {statement.element} is none of the closed loop: {why}")
    limits = limits_of(parse(statement.condition))
    manipulation = find(ontology.elements[statement.element].manipulation_for(rules.region))
    changes = tuple(_fitted(change, statement, limits) for change in manipulation.changes())
    check: Any = ontology.behaviours[statement.behaviour].make_check_in_world()
    everywhere = all(isinstance(change, EnvironmentChanged) for change in changes)
    if "along" in _names(check):
        check = replace(check, along=WAY if everywhere else PLACE)
    return Relation(
        id=relation_id(rules.region, rule.id, nth),
        kind="expected",
        because=f"{rule.text} ({rules.title}, {rule.reference})",
        mutate=(),
        check=check,
        given=given_of(statement, rule, _change_facts(changes)),
        requires=_requires(changes),
        scenario=changes,
    )


def _fitted(change: ScenarioChange, statement: Statement, limits: Facts) -> ScenarioChange:
    """Return a change at the rule's road and place, with its number on the sign, or with its visibility."""
    params: dict[str, Any] = {}
    if "at" in _names(change) and statement.road != ANY_ROAD:
        params |= {"at": statement.road, "ahead_m": _AHEAD_M}
    if "where" in _names(change) and (where := _PLACES.get(statement.place)):
        params |= {"where": where, "speed_mps": 0.0}
    if isinstance(change, SignPutUp) and (number := number_on(change.face, limits)):
        params["value"] = number
    visibility = limits.get("visibility_m")
    if isinstance(change, EnvironmentChanged) and change.what == "fog" and isinstance(visibility, float):
        params["to"] = fog_of(CLEARLY_BELOW * visibility)
    return replace(change, **params) if params else change  # type: ignore[type-var]


def _change_facts(changes: Sequence[ScenarioChange]) -> dict[str, Any]:
    """Return known facts of the changes: a sign's number, that it faces the way, the visibility."""
    facts: dict[str, Any] = {}
    for change in changes:
        if isinstance(change, SignPutUp):
            facts["sign_faces_ego_path"] = True
            if change.face in SPEEDS_KMH:
                facts["sign_value_kmh"] = (change.value or SIGNS[change.face].value) * SPEEDS_KMH[change.face]
        if isinstance(change, EnvironmentChanged) and change.what == "fog":
            facts["visibility_m"] = visibility_of(change.to)
    return facts


def _requires(changes: Sequence[ScenarioChange]) -> tuple[str, ...]:
    """Return the inputs that show a stack the changes; all inputs show an added actor."""
    needs: dict[str, None] = {}
    for change in changes:
        if isinstance(change, SignPutUp):
            needs["camera" if change.limit_kmh is None else "route or camera"] = None
        elif isinstance(change, SignalShows):
            needs["signals or camera"] = None
        elif isinstance(change, EnvironmentChanged):
            needs["camera" if change.what in ("hour", "cloudiness") else "lidar or camera"] = None
    return tuple(needs)


def _names(value: object) -> frozenset[str]:
    return frozenset(field.name for field in fields(value))  # type: ignore[arg-type]
