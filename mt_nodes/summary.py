# SPDX-License-Identifier: Apache-2.0
"""From verdict lines to ``summary.json``: tallies, tests and what they come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mt_nodes.arm_sums import RelationSums, digits
from mt_nodes.errors import ExitCode
from mt_nodes.measured import floor_of
from mt_nodes.outcomes import Evidence, exit_code, relation_outcome
from mt_nodes.statistics import holm
from mt_nodes.verdict import SCHEMA, RelationOutcome
from mt_nodes.verdict_rows import Line, in_order, rows_by_arm


@dataclass(frozen=True)
class RelationInfo:
    """What must be known of a relation to sum up its verdicts."""

    id: str
    kind: str
    min_decided: int = 20
    because: str = ""
    requirement: tuple[str, ...] = ()


def summarise(
    verdicts: Iterable[Line],
    relations: Sequence[RelationInfo],
    *,
    latency_ms: Mapping[str, Any] | None = None,
    infrastructure: str | None = None,
    interrupted: bool = False,
    isolation: str | None = None,
    usage: str | None = None,
    clocks: Mapping[str, Any] | None = None,
    safety: Mapping[str, Any] | None = None,
    topics: Mapping[str, Any] | None = None,
    drive_by_drive: bool = False,
) -> dict[str, Any]:
    """Return ``summary.json`` from the verdict lines of a journal (other lines are passed over).

    ``infrastructure``, ``isolation`` and ``usage`` tell what went wrong with the run itself, None when nothing did;
    ``clocks`` how far those of other computers are off, by computer. ``safety``: what kept a run off the vehicle.
    ``topics``: what is told of each that an instance beside a live stack is given, its added latency for one.
    ``drive_by_drive``: the lines come so, and no drive twice; then nothing is kept of one that is over.

    Raises:
        InfrastructureError: a pair belongs to none of the relations, so the totals would not reconcile.
    """
    sums = _added_up(verdicts, [r.id for r in relations], drive_by_drive)
    arms = [arm for each in sums.values() for arm in each.arms]
    outcomes = in_order(sum((arm.outcomes for arm in arms), Counter()))
    by_arrival = sum(arm.by_arrival for arm in arms)
    evidence = _evidence(sums, relations)
    ended = {r.id: relation_outcome(evidence[r.id]) for r in relations}
    trouble = {"infrastructure": infrastructure, "interrupted": interrupted, "isolation": isolation, "usage": usage}
    code, why = run_exit(outcomes, {name: outcome for name, (outcome, _) in ended.items()}, trouble)
    return {
        "schema": SCHEMA,
        "offered": sum(outcomes.values()),
        "outcomes": outcomes,
        "exit_code": int(code),
        "exit_why": why,
        **trouble,
        **({"by_arrival": by_arrival} if by_arrival else {}),
        **({"clocks": dict(clocks)} if clocks else {}),
        **({"safety": dict(safety)} if safety else {}),
        **({"topics": dict(topics)} if topics else {}),
        "relations": {r.id: _relation_plain(r, sums[r.id], evidence[r.id], ended[r.id]) for r in relations},
        "latency_ms": dict(latency_ms or {}),
    }


def run_exit(
    outcomes: Mapping[str, int],
    relations: Mapping[str, RelationOutcome],
    trouble: Mapping[str, Any],
    waived: Collection[str] = (),
) -> tuple[ExitCode, str]:
    """Return the exit code of a run and why; ``trouble`` is the summary's, as far as it has any."""
    others = {name: trouble.get(name) for name in ("infrastructure", "isolation")}
    code, why = exit_code(outcomes, relations, interrupted=trouble["interrupted"], **others, waived=waived)
    usage = trouble.get("usage")
    # What the user asked for cannot be done: told before what came of it, after that the run was cut short or refused.
    if usage is None or code in (ExitCode.INTERRUPTED, ExitCode.ISOLATION):
        return code, why
    return ExitCode.USAGE, f"cannot go on: {usage}"


def _added_up(verdicts: Iterable[Line], relations: Sequence[str], drive_by_drive: bool) -> dict[str, RelationSums]:
    sums = {name: RelationSums(len(relations)) for name in relations}
    drive = None
    for name, arm, row in rows_by_arm(verdicts, relations):
        if drive_by_drive and row.unit[0] != drive:
            _settle(sums)
            drive = row.unit[0]
        getattr(sums[name], arm).take(row)
    _settle(sums)
    return sums


def _settle(sums: Mapping[str, RelationSums]) -> None:
    for each in sums.values():
        each.settle()


def _evidence(sums: Mapping[str, RelationSums], relations: Sequence[RelationInfo]) -> dict[str, Evidence]:
    violations = {r.id: sums[r.id].p_violations() for r in relations}
    adjusted = _adjusted({name: p for name, (p, _) in violations.items()})
    adjusted_directions = _adjusted({r.id: sums[r.id].relation.p_directions for r in relations})
    return {
        r.id: Evidence(
            kind=r.kind,
            min_decided=r.min_decided,
            pairs=sums[r.id].relation.tally,
            control=sums[r.id].control.tally,
            sham=sums[r.id].sham.tally,
            p_violations=adjusted[r.id],
            p_directions=adjusted_directions[r.id],
            test=violations[r.id][1],
        )
        for r in relations
    }


def _adjusted(p_values: Mapping[str, float | None]) -> dict[str, float | None]:
    tested = {name: p for name, p in p_values.items() if p is not None}
    return {**p_values, **dict(zip(tested, holm(list(tested.values())), strict=True))}


def _relation_plain(
    info: RelationInfo, sums: RelationSums, evidence: Evidence, ended: tuple[RelationOutcome, str]
) -> dict[str, Any]:
    outcome, why = ended
    floor = floor_of(*(arm.numbers for arm in sums.arms))
    found, undecided = sums.relation.recall.plain(), sums.relation.undecided.plain()
    return {
        "outcome": outcome.value,
        "why": why,
        "kind": info.kind,
        **sums.relation.plain(),
        "control": sums.control.plain(),
        "sham": sums.sham.plain(),
        "p_adjusted": digits(evidence.p_violations),
        "p_directions_adjusted": digits(evidence.p_directions),
        "test": evidence.test,
        "min_decided": info.min_decided,
        "because": info.because,
        "requirement": list(info.requirement),
        **({"undecided": undecided} if undecided else {}),
        **({"recall": found} if found else {}),
        **({"measured": floor} if floor else {}),
    }
