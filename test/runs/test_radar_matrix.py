# SPDX-License-Identifier: Apache-2.0
"""Radar relation x fault: honest stacks hold every relation, each relation and each fault has its match."""

from __future__ import annotations

from contextlib import suppress
from functools import cache

import pytest
from radar_drives import drive

from mt_nodes.base import plugins
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.outputs import Output
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.relations.checks.sequence import SequenceCheck
from mt_nodes.relations.mutations.stream.whole_stream import WholeStream
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.relations.relation import Relation, of_stack, shipped_relations
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.stack import load_stack

BUNDLES = 8
RELATIONS = {r.id: r for r in shipped_relations() if r.role == "relation" and "radar" in r.requires}
FAULTS = tuple(name for name, cls in plugins.catalogue("faults").items() if cls.stack == "radar")  # type: ignore[attr-defined]
HONEST = ("reference_radar", "reference_fused")
#: An object is a model, and a radar misses by chance: the relation tolerates some.
TOLERATED = {"radar_object_found_car": 0.2}


@cache
def followups(relation: str) -> list[tuple[int, object]]:
    """The follow-ups of a relation on the drive, by bundle; those that are not applicable are left out."""
    pipeline, found = MutationPipeline(RELATIONS[relation].mutate, 0, relation), []
    for number, bundle in enumerate(drive(BUNDLES)):
        try:
            made = pipeline.derive(bundle)
        except NotApplicable:
            continue
        assert made.broken is None, made.broken
        found.append((number, made))
    assert found, f"{relation} applies to no bundle"
    return found


@cache
def host(stack: str, fault: str) -> CallableHost:
    settings = {"params": {"faults": [fault]}} if fault else {}
    return CallableHost.make(load_stack(stack, settings))


@cache
def source(stack: str, fault: str, number: int) -> Output:
    return answer(stack, fault, drive(BUNDLES)[number])


def answer(stack: str, fault: str, bundle: object) -> Output:
    of = host(stack, fault)
    messages = {m.topic: m for m in bundle.messages}  # type: ignore[attr-defined]
    taken = {topic: messages[topic] for topics in of.stack.topics.values() for topic in topics}
    given = taken if of.stack.joins else next(iter(taken.values()))
    return of(given, bundle.transforms)  # type: ignore[attr-defined]


@cache
def violated(relation: str, stack: str, fault: str = "") -> tuple[int, int]:
    """Return how many pairs are violated, and of how many that could be judged."""
    judge: Relation = of_stack(RELATIONS[relation], load_stack(stack).traits)
    outcomes = []
    for number, made in followups(relation):
        before = source(stack, fault, number)
        after = answer(stack, fault, made.followup.first)  # type: ignore[attr-defined]
        assert judge.check is not None
        outcomes.append(judge.check.judge(before, after, made.effects, drive(BUNDLES)[number]).outcome)  # type: ignore[attr-defined]
    assert Outcome.ERROR not in outcomes
    return outcomes.count(Outcome.VIOLATED), outcomes.count(Outcome.HOLDS) + outcomes.count(Outcome.VIOLATED)


@pytest.mark.parametrize("stack", HONEST)
@pytest.mark.parametrize("relation", RELATIONS)
def test_honest_stacks_hold_every_relation(relation: str, stack: str) -> None:
    assert incompatibility(RELATIONS[relation], load_stack(stack)) is None
    wrong, judged = violated(relation, stack)
    assert judged > 0 and wrong <= TOLERATED.get(relation, 0.0) * judged, f"{wrong} of {judged}"


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_relation_is_violated_by_a_fault(relation: str) -> None:
    bound = TOLERATED.get(relation, 0.0)
    found = {fault: violated(relation, "reference_radar", fault) for fault in FAULTS}
    assert any(wrong > bound * judged for wrong, judged in found.values()), found


#: Relations of clouds that judge one frame by another, of those that fit the stack with both sensors.
OF_CLOUDS = tuple(
    r
    for r in shipped_relations()
    if r.role == "relation"
    and "lidar" in r.requires
    and not isinstance(r.check, SequenceCheck)
    and not any(isinstance(mutation, WholeStream) for mutation in r.mutate)
    and incompatibility(r, load_stack("reference_fused")) is None
)


@pytest.mark.parametrize("relation", OF_CLOUDS, ids=lambda r: r.id)
def test_relations_of_clouds_fit_the_fused_stack_or_are_refused(relation: Relation) -> None:
    """None of those that are not refused is NOT_APPLICABLE throughout, and the stack holds it where it applies."""
    judge, made = of_stack(relation, load_stack("reference_fused").traits), None
    pipeline = MutationPipeline(relation.mutate, 0, relation.id, relation.baseline, relation.requires)
    bundles = iter(drive(BUNDLES))
    while made is None and (bundle := next(bundles, None)) is not None:
        with suppress(NotApplicable):
            made = pipeline.derive(bundle)
    assert made is not None and bundle is not None, "it applies to no bundle, so it must not fit"
    assert made.broken is None and judge.check is not None
    before, after = source("reference_fused", "", bundle.index), answer("reference_fused", "", made.followup.first)
    if made.baseline is not None:
        before = answer("reference_fused", "", made.baseline.followup.first)
    judged = judge.check.judge(before, after, made.effects, bundle)
    assert judged.outcome in (Outcome.HOLDS, Outcome.NOT_APPLICABLE), judged.reason


def test_what_moves_clouds_alone_is_refused_beside_a_radar() -> None:
    fused, names = load_stack("reference_fused"), {r.id for r in OF_CLOUDS}
    alone = {r.id: str(incompatibility(r, fused)) for r in shipped_relations() if r.id.startswith("cloud_")}
    assert len(alone) >= 13 and not names & set(alone) and len(names) >= 60
    assert all("the radar would go on to show it" in why or "requires" in why for why in alone.values()), alone


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_told_by_a_relation(fault: str) -> None:
    found = {relation: violated(relation, "reference_radar", fault) for relation in RELATIONS}
    assert any(wrong > TOLERATED.get(relation, 0.0) * judged for relation, (wrong, judged) in found.items()), found
