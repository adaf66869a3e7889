# SPDX-License-Identifier: Apache-2.0
"""From verdict lines to ``summary.json``: tallies, tests and what they come to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mt_nodes.errors import ExitCode
from mt_nodes.measured import noise_floor
from mt_nodes.outcomes import Evidence, Tally, exit_code, relation_outcome
from mt_nodes.recall import recall
from mt_nodes.statistics import Unit, cluster_sums, holm, proportion_interval, sign_flip_p
from mt_nodes.verdict import SCHEMA, RelationOutcome
from mt_nodes.verdict_rows import Line, RelationArms, Row, in_order, sorted_by_arm, tally


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
) -> dict[str, Any]:
    """Return ``summary.json`` from the verdict lines of a journal (other lines are passed over).

    ``infrastructure``, ``isolation`` and ``usage`` tell what went wrong with the run itself, None when nothing did;
    ``clocks`` how far those of other computers are off, by computer. ``safety``: what kept a run off the vehicle.
    ``topics``: what is told of each that an instance beside a live stack is given, its added latency for one.

    Raises:
        InfrastructureError: a pair belongs to none of the relations, so the totals would not reconcile.
    """
    arms, outcomes = sorted_by_arm(verdicts, (r.id for r in relations))
    by_arrival = sum(row.by_arrival for each in arms.values() for row in each.all)
    evidence = _evidence(arms, relations)
    ended = {r.id: relation_outcome(evidence[r.id]) for r in relations}
    trouble = {"infrastructure": infrastructure, "interrupted": interrupted, "isolation": isolation, "usage": usage}
    code, why = run_exit(outcomes, {name: outcome for name, (outcome, _) in ended.items()}, trouble)
    return {
        "schema": SCHEMA,
        "offered": sum(outcomes.values()),
        "outcomes": dict(outcomes),
        "exit_code": int(code),
        "exit_why": why,
        **trouble,
        **({"by_arrival": by_arrival} if by_arrival else {}),
        **({"clocks": dict(clocks)} if clocks else {}),
        **({"safety": dict(safety)} if safety else {}),
        **({"topics": dict(topics)} if topics else {}),
        "relations": {r.id: _relation_plain(r, arms[r.id], evidence[r.id], ended[r.id]) for r in relations},
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


def _evidence(arms: Mapping[str, RelationArms], relations: Sequence[RelationInfo]) -> dict[str, Evidence]:
    family = len(relations)
    violations = {r.id: _p_violations(arms[r.id], family) for r in relations}
    directions = {r.id: _p_directions(arms[r.id].relation, family) for r in relations}
    adjusted = _adjusted({name: p for name, (p, _) in violations.items()})
    adjusted_directions = _adjusted(directions)
    return {
        r.id: Evidence(
            kind=r.kind,
            min_decided=r.min_decided,
            pairs=tally(arms[r.id].relation),
            control=tally(arms[r.id].control),
            sham=tally(arms[r.id].sham),
            p_violations=adjusted[r.id],
            p_directions=adjusted_directions[r.id],
            test=violations[r.id][1],
        )
        for r in relations
    }


def _p_violations(arms: RelationArms, family: int) -> tuple[float | None, str]:
    """To stand out is to exceed control and sham both: the larger p-value counts (an intersection-union test)."""
    tests = []
    for background in (arms.control, arms.sham):
        differences = _violation_differences(arms.relation, background)
        if differences:
            sums, test = cluster_sums(differences, family)
            if any(row.case != row.unit for row in arms.relation):
                test = f"sign-flip test over {len(differences)} rounds"
            tests.append((sign_flip_p(sums), test))
    return max(tests, key=lambda t: t[0]) if tests else (None, "no frame decided in both")


def _violation_differences(relation: Sequence[Row], background: Sequence[Row]) -> dict[Unit, int]:
    """By bundle decided in both: violated here less violated there, weighed for unequal numbers of draws."""
    here, there = (_violated_by(rows, lambda row: row.case) for rows in (relation, background))
    return {
        unit: here[unit].violated * there[unit].decided - there[unit].violated * here[unit].decided
        for unit in here
        if unit in there
    }


def _violated_by(rows: Sequence[Row], key: Callable[[Row], Unit]) -> dict[Unit, Tally]:
    by_unit: dict[Unit, list[Row]] = defaultdict(list)
    for row in rows:
        if row.outcome.decided:
            by_unit[key(row)].append(row)
    return {unit: tally(group) for unit, group in by_unit.items()}


def _p_directions(rows: Sequence[Row], family: int, direction: Callable[[Row], int] | None = None) -> float | None:
    """That one direction prevails (the sign test, where no two pairs share a cluster)."""
    differences: Counter[Unit] = Counter()
    for row in rows:
        if row.outcome.decided:
            differences[row.unit] += (direction or _direction)(row)
    return sign_flip_p(cluster_sums(differences, family)[0], two_sided=True) if differences else None


def _direction(row: Row) -> int:
    """1 for a pair that lost more than it gained, -1 for the opposite, 0 for neither."""
    return (row.lost > row.gained) - (row.lost < row.gained)


def _count_direction(row: Row) -> int:
    """1 for a pair with |O| > |O'|, -1 for the opposite, 0 for neither or when nothing was counted."""
    source, followup = row.counts.get("all", (0, 0))
    return (source > followup) - (source < followup)


def _adjusted(p_values: Mapping[str, float | None]) -> dict[str, float | None]:
    tested = {name: p for name, p in p_values.items() if p is not None}
    return {**p_values, **dict(zip(tested, holm(list(tested.values())), strict=True))}


def _relation_plain(
    info: RelationInfo, arms: RelationArms, evidence: Evidence, ended: tuple[RelationOutcome, str]
) -> dict[str, Any]:
    outcome, why = ended
    floor = noise_floor(
        *([r.measured for r in rows if r.measured] for rows in (arms.relation, arms.control, arms.sham))
    )
    found = recall((row.unit, row.objects) for row in arms.relation if row.outcome.decided)
    return {
        "outcome": outcome.value,
        "why": why,
        "kind": info.kind,
        **_arm_plain(arms.relation),
        "control": _arm_plain(arms.control),
        "sham": _arm_plain(arms.sham),
        "p_adjusted": _digits(evidence.p_violations),
        "p_directions_adjusted": _digits(evidence.p_directions),
        "test": evidence.test,
        "min_decided": info.min_decided,
        "because": info.because,
        "requirement": list(info.requirement),
        **({"recall": found} if found else {}),
        **({"measured": floor} if floor else {}),
    }


def _arm_plain(rows: Sequence[Row]) -> dict[str, Any]:
    decided = [row for row in rows if row.outcome.decided]
    counted, directions = tally(rows), Counter(_direction(row) for row in decided)
    by_unit = _violated_by(rows, lambda row: row.unit)
    interval = proportion_interval({unit: (t.violated, t.decided) for unit, t in by_unit.items()})
    return {
        "decided": counted.decided,
        "violated": counted.violated,
        "rate": _digits(counted.violated / counted.decided) if counted.decided else None,
        "ci95": [_digits(interval.low), _digits(interval.high)] if interval else None,
        "ci95_method": interval.method if interval else None,
        "lost": sum(row.lost for row in decided),
        "gained": sum(row.gained for row in decided),
        "pairs_lost": directions[1],
        "pairs_gained": directions[-1],
        "p_sign": _digits(_p_directions(decided, family=1)),
        "p_counts": _digits(_p_directions(decided, 1, _count_direction)) if any(r.counts for r in decided) else None,
        "frames": len({row.unit for row in decided}),
        "drives": len({row.unit[0] for row in decided}),
        "outcomes": in_order(Counter(row.outcome.value for row in rows)),
        "counts": _counts(decided),
        **({"by_arrival": by_arrival} if (by_arrival := _by_arrival(decided)) else {}),
    }


def _by_arrival(decided: Sequence[Row]) -> dict[str, int]:
    """Count apart what rests on answers found by their arrival; nothing where nothing does."""
    counted = tally([row for row in decided if row.by_arrival])
    return {"decided": counted.decided, "violated": counted.violated} if counted.decided else {}


def _counts(decided: Sequence[Row]) -> dict[str, dict[str, int]]:
    """The paper's table, overall and per category: pairs with |O| > |O'| (``>``), equal (``=``) and fewer (``<``)."""
    table: dict[str, dict[str, int]] = {}
    for row in decided:
        for category, (source, followup) in row.counts.items():
            cells = table.setdefault(category, {">": 0, "=": 0, "<": 0})
            cells["=" if source == followup else ">" if source > followup else "<"] += 1
    return dict(sorted(table.items()))


def _digits(value: float | None) -> float | None:
    """Four significant digits: what people read and diffs can bear."""
    return None if value is None else float(f"{value:.4g}")
