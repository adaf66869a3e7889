# SPDX-License-Identifier: Apache-2.0
"""Makes relations from statements: the element's mutations, the behaviour's check, the condition as given."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.relations.conditions.base import Condition
from mt_nodes.relations.conditions.source_conditions import KnownToBe
from mt_nodes.relations.facts.condition import ConditionNode, Facts, known, parse, written
from mt_nodes.relations.manipulations import find
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.relations.relation import Relation
from mt_nodes.relations.world_changes.sign_changes import SPEEDS_KMH
from mt_nodes.rules.ontology import Ontology
from mt_nodes.rules.rule_sets import Rule, RuleSet
from mt_nodes.rules.statement import ON_ROAD, ON_ROADSIDE, Statement

#: Places of objects, if the rule gives one: in the ego's way, or in a sector to the right of it.
_PLACES: dict[str, dict[str, Any]] = {
    ON_ROAD: {"where": "path"},
    ON_ROADSIDE: {"where": "bearing", "bearing_rad": (-0.45, -0.1)},
}
#: A limit on visibility is met by a mutation with this share of it.
CLEARLY_BELOW = 0.8
_ROUND_MPH = 5


def gap(statement: Statement, ontology: Ontology, region: str) -> str:
    """Return why a statement cannot be run in a region, empty if it can."""
    return ontology.elements[statement.element].gap(region)


def relation_id(region: str, rule: str, nth: int = 1) -> str:
    """Return ``rule_<region>_<n>`` by the number in a rule's id; plus ``nth`` for later statements."""
    digits = re.search(r"\d+$", rule)
    number = str(int(digits[0])) if digits else re.sub(r"\W+", "_", rule.lower())
    return f"rule_{region}_{number}" + (f"_{nth}" if nth > 1 else "")


def bind(
    statement: Statement, ontology: Ontology, rules: RuleSet, nth: int = 1, facts: Facts | None = None
) -> Relation:
    """Return a statement as a relation.

    ``nth``: index of the statement within its rule. ``facts``: known facts of the case; only the rest of the condition
    is asked of each source.
    Raises UsageError: a word is unknown, nothing shows the element, no rule has it, or the condition is known to be
    false.
    """
    rule = rule_of(statement, ontology, rules)
    if why := gap(statement, ontology, rules.region):
        raise UsageError(f"rule {rule.id}: {statement.element} cannot be shown: {why}")
    limits = limits_of(parse(statement.condition))
    mutations = _mutations(statement, ontology, rules.region, limits)
    return Relation(
        id=relation_id(rules.region, rule.id, nth),
        kind="expected",
        because=f"{rule.text} ({rules.title}, {rule.reference})",
        mutate=mutations,
        check=ontology.behaviours[statement.behaviour].make_check(),
        given=given_of(statement, rule, {**_own_facts(mutations, limits), **(facts or {})}),
        requires=_requires(mutations),
    )


def rule_of(statement: Statement, ontology: Ontology, rules: RuleSet) -> Rule:
    """Return the rule of a statement. Raises UsageError: a word is unknown, or no rule has it."""
    where = f"statement '{statement.element}'"
    ontology.refuse_unknown(statement, where)
    if not statement.rules or statement.rules[0] not in rules.rules:
        raise UsageError(f"{where}: got rules {', '.join(statement.rules) or 'none'}, expected one of {rules.path}")
    return rules.rules[statement.rules[0]]


def given_of(statement: Statement, rule: Rule, facts: Facts) -> tuple[Condition, ...]:
    """Return the rest of a statement's condition after known facts.

    Raises UsageError: the condition is known to be false.
    """
    condition = known(parse(statement.condition), facts)
    if condition.kind == "false":
        raise UsageError(f"rule {rule.id}: it is known not to be so that {statement.condition}")
    return (KnownToBe(text),) if (text := written(condition)) else ()


def bind_all(
    statements: Sequence[Statement], ontology: Ontology, rules: RuleSet, make: Callable[..., Relation] = bind
) -> tuple[tuple[Relation, ...], tuple[tuple[Statement, str], ...]]:
    """Return the relations of all statements that can be run, and the others with their reasons.

    ``make``: binds one statement, as :func:`bind` does.
    """
    bound: list[Relation] = []
    unbound: list[tuple[Statement, str]] = []
    count: dict[str, int] = {}
    for statement in statements:
        first = statement.rules[0] if statement.rules else ""
        count[first] = count.get(first, 0) + 1
        try:
            bound.append(make(statement, ontology, rules, count[first]))
        except UsageError as error:
            unbound.append((statement, str(error)))
    return tuple(bound), tuple(unbound)


def edit_facts(statement: Statement, ontology: Ontology, region: str) -> dict[str, float]:
    """Return known facts of the change itself: the number on the added sign, and the visibility in its air.

    Raises UsageError: nothing shows the element.
    """
    limits = limits_of(parse(statement.condition))
    return _own_facts(_mutations(statement, ontology, region, limits), limits)


def _mutations(statement: Statement, ontology: Ontology, region: str, limits: Facts) -> tuple[Mutation, ...]:
    element = ontology.elements[statement.element]
    mutations = find(element.manipulation_for(region)).mutations()
    # A group keeps its arrangement; signs and lights stand at their usual places.
    place = statement.place if len(mutations) == 1 and element.category == "objects" else ""
    return tuple(_fitted(_placed(one, place), limits) for one in mutations)


def _placed(mutation: Mutation, place: str) -> Mutation:
    """Return a mutation with the given place, if it places anything and a place is given."""
    changed = {key: value for key, value in _PLACES.get(place, {}).items() if hasattr(mutation, key)}
    return _replaced(mutation, changed)


def _fitted(mutation: Mutation, limits: Facts) -> Mutation:
    """Return a mutation with the rule's number on its sign, or with the rule's visibility."""
    visibility = limits.get("visibility_m")
    changed: dict[str, Any] = {}
    if "value" in _names(mutation) and (number := number_on(getattr(mutation, "kind", ""), limits)):
        changed["value"] = number
    if isinstance(visibility, float) and "visibility_m" in _names(mutation):
        changed["visibility_m"] = CLEARLY_BELOW * visibility
    return _replaced(mutation, changed)


def number_on(face: str, limits: Facts) -> int:
    """Return a sign's number by a rule, in the sign's own unit; 0 if the rule has none, or the sign has no number."""
    unit, speed = SPEEDS_KMH.get(face), limits.get("speed_kmh")
    if unit is None or not isinstance(speed, float):
        return 0
    return round(speed) if unit == 1.0 else _ROUND_MPH * round(speed / unit / _ROUND_MPH)


def _own_facts(mutations: Sequence[Mutation], limits: Facts) -> dict[str, float]:
    """Return the follow-up's own facts: the number on a sign, and the visibility."""
    facts: dict[str, float] = {}
    for one in mutations:
        values: dict[str, Any] = {name: getattr(one, name) for name in _names(one)}
        if (unit := SPEEDS_KMH.get(values.get("kind", ""))) and "value" in values:
            facts["sign_value_kmh"] = values["value"] * unit
        if "visibility_m" in limits and "visibility_m" in values:
            facts["visibility_m"] = values["visibility_m"]
    return facts


def limits_of(condition: ConditionNode) -> dict[str, float]:
    """Return the numbers that speed and visibility are compared with in a condition."""
    if condition.kind == "compare":
        left, _, right = condition.parts
        return {left.parts[0]: right.parts[0]} if (left.kind, right.kind) == ("name", "number") else {}
    limits: dict[str, float] = {}
    for part in condition.parts if condition.kind == "both" else ():
        limits |= limits_of(part)
    return limits


def _requires(mutations: Sequence[Mutation]) -> tuple[str, ...]:
    """Return the only sensor that sees any of it; a change of both leaves the choice."""
    sensors = {sensor for one in mutations for sensor in one.changes}
    return tuple(sensors) if len(sensors) == 1 else ()


def _names(mutation: Mutation) -> frozenset[str]:
    return frozenset(field.name for field in fields(mutation))  # type: ignore[arg-type]


def _replaced(mutation: Mutation, changed: dict[str, Any]) -> Mutation:
    return replace(mutation, **changed) if changed else mutation  # type: ignore[type-var]
