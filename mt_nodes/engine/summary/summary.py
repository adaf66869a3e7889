# SPDX-License-Identifier: Apache-2.0
"""From verdict lines to ``summary.json``: tallies, tests and what they come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mt_nodes.base import plugins
from mt_nodes.base.errors import ExitCode
from mt_nodes.base.stats.exceedance import Exceedance
from mt_nodes.base.stats.intervals import at_least, holm
from mt_nodes.data.verdict import SCHEMA, Pair, RelationOutcome
from mt_nodes.engine.summary.arm_sums import ArmSums, RelationSums, digits
from mt_nodes.engine.summary.claim_sums import CLAIMS, ClaimSums
from mt_nodes.engine.summary.deaths import Deaths, describe_deaths
from mt_nodes.engine.summary.explored import Explored
from mt_nodes.engine.summary.noise_floor import floor_of
from mt_nodes.engine.summary.outcomes import CHOSEN, RelationEvidence, exit_code, missing_input, relation_outcome
from mt_nodes.engine.summary.score_range import ScoreRange
from mt_nodes.engine.summary.verdict_rows import Line, in_order, rows_by_arm
from mt_nodes.engine.summary.worst_pairs import WorstPairs
from mt_nodes.relations.change_words import describe_change

#: What is said of a run whose inputs bear none.
WARNING = (
    "all inputs bear the stamp 0: which messages are of one instant is told by their order alone, and no answer by its "
    "stamp; have the recording stamped"
)


class Unstamped:
    """Looks at verdict lines while they are read for something else."""

    def __init__(self) -> None:
        self._first: tuple[int, int | None] | None = None
        self._several = self._stamped = False

    def passing(self, lines: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """Yield lines, and look at the stamps among them."""
        for line in lines:
            if not self._stamped and line.get("type") == "verdict" and "stamp_ns" in line:
                self._take(line)
            yield line

    def _take(self, line: Mapping[str, Any]) -> None:
        self._stamped = line["stamp_ns"] != 0
        pair = Pair.parse(line["pair"])
        place = pair.episode, pair.bundle
        self._first = self._first or place
        self._several = self._several or place != self._first

    @property
    def plain(self) -> bool:
        """Whether there are several inputs, and none bears a stamp."""
        return self._several and not self._stamped


#: A PASS whose interval ends above this share of violated pairs says how much more input would bring it down.
VAGUE = 0.2
_Tests = tuple[Exceedance | None, Exceedance | None]


@dataclass(frozen=True)
class RelationInfo:
    """What must be known of a relation to sum up its verdicts."""

    id: str
    kind: str
    min_decided: int = 20
    because: str = ""
    requirement: tuple[str, ...] = ()
    tolerated_rate: float | None = None
    demands_of_itself: bool = False
    change: str = ""

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> RelationInfo:
        """Read the plain form of a relation; a journal that was copied without its record tells the id alone."""
        kind = plain.get("kind", "necessary")
        return cls(
            id=plain["id"],
            kind=kind,
            min_decided=plain.get("min_decided", cls.min_decided),
            because=plain.get("because", ""),
            requirement=tuple(plain.get("requirement", ())),
            tolerated_rate=plain.get("tolerated_rate"),
            demands_of_itself=kind == "necessary" and _demands_of_itself(plain.get("check")),
            change=plain.get("change") or describe_change(plain),
        )


def summarise(
    verdicts: Iterable[Line],
    relations: Sequence[RelationInfo],
    *,
    latency_ms: Mapping[str, Any] | None = None,
    work_s: Mapping[str, float] | None = None,
    cpu_s: Mapping[str, float] | None = None,
    ego_motion: Sequence[str] = (),
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
    ``ego_motion``: where mutations took the ego's motion from. ``work_s``: what each relation's follow-ups took.
    ``cpu_s``: processor time that went into them, control and sham by their own names.
    ``topics``: what is told of each that an instance beside a live stack is given, its added latency for one.
    ``drive_by_drive``: the lines come so, and no drive twice; then nothing is kept of one that is over.
    Raises InfrastructureError: a pair belongs to none of the relations, so the totals would not reconcile.
    """
    deaths, scores, unstamped, worst, claims = Deaths(), ScoreRange(), Unstamped(), WorstPairs(), ClaimSums()
    explored = Explored()
    lines = explored.passing(claims.passing(worst.passing(unstamped.passing(scores.passing(deaths.passing(verdicts))))))
    sums = _added_up(lines, [r.id for r in relations], drive_by_drive)
    arms = [arm for each in sums.values() for arm in each.arms]
    outcomes = in_order(sum((arm.outcomes for arm in arms), Counter()))
    by_arrival = sum(arm.by_arrival for arm in arms)
    evidence = _evidence(sums, relations)
    if explored.biased:
        untested: dict[str, Any] = {"biased": True, "more": "", "p": None, "p_adjusted": None, "test": CHOSEN}
        evidence = {name: replace(e, **untested) for name, e in evidence.items()}
    ended = {r.id: deaths.weighed(r.id, *relation_outcome(evidence[r.id])) for r in relations}
    trouble = {
        **{"infrastructure": infrastructure, "interrupted": interrupted, "isolation": isolation, "usage": usage},
        **({"deaths": deaths.plain} if deaths.plain else {}),
        **({CLAIMS: claimed} if (claimed := claims.plain) else {}),
    }
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
        **({"ego_motion": list(ego_motion)} if ego_motion else {}),
        **({"safety": dict(safety)} if safety else {}),
        **({"topics": dict(topics)} if topics else {}),
        "relations": {
            r.id: {
                **_relation_plain(r, sums[r.id], evidence[r.id], ended[r.id], scores.least),
                **({"worst": pair} if (pair := worst.of(r.id)) else {}),
            }
            for r in relations
        },
        "latency_ms": dict(latency_ms or {}),
        **({"work_s": dict(work_s)} if work_s else {}),
        **({"cpu_s": dict(cpu_s)} if cpu_s else {}),
        **({"scores": score_rows} if (score_rows := scores.plain()) else {}),
        **({"unstamped": True} if unstamped.plain else {}),
        **({"explored": found} if (found := explored.plain) else {}),
    }


def _demands_of_itself(check: Any) -> bool:
    """Tell it of a check by its name or {name: parameters}; False of one that is a plugin of somebody else's."""
    name = next(iter(check), "") if isinstance(check, Mapping) else check
    return bool(getattr(plugins.get("checks", name or ""), "demands_of_itself", False))


def run_exit(
    outcomes: Mapping[str, int],
    relations: Mapping[str, RelationOutcome],
    trouble: Mapping[str, Any],
    waived: Collection[str] = (),
) -> tuple[ExitCode, str]:
    """Return the exit code of a run and why; ``trouble`` is the summary's, as far as it has any, claims included."""
    others = {name: trouble.get(name) for name in ("infrastructure", "isolation")}
    if others["infrastructure"] is None and trouble.get("deaths"):
        others["infrastructure"] = describe_deaths(trouble["deaths"])
    claims = {f"claim {name}": RelationOutcome(row["outcome"]) for name, row in trouble.get(CLAIMS, {}).items()}
    judged = {**relations, **claims} if relations else {}
    code, why = exit_code(outcomes, judged, interrupted=trouble["interrupted"], **others, waived=waived)
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


def _evidence(sums: Mapping[str, RelationSums], relations: Sequence[RelationInfo]) -> dict[str, RelationEvidence]:
    alone = {r.id: _tests(sums[r.id], r, 1) for r in relations}
    among = {r.id: _tests(sums[r.id], r, len(relations)) for r in relations}
    tested = {name: found.p for name, (_, found) in among.items() if found}
    adjusted = dict(zip(tested, holm(list(tested.values())), strict=True))
    return {r.id: _evidence_of(r, sums[r.id], alone[r.id], among[r.id][1], adjusted.get(r.id)) for r in relations}


def _evidence_of(
    info: RelationInfo, sums: RelationSums, alone: _Tests, among: Exceedance | None, adjusted: float | None
) -> RelationEvidence:
    background, found = alone
    return RelationEvidence(
        kind=info.kind,
        min_decided=info.min_decided,
        frames=sums.relation.frames,
        pairs=sums.relation.tally,
        control=sums.control.tally,
        sham=sums.sham.tally,
        p_background=background and background.p,
        p=found and found.p,
        p_adjusted=at_least(adjusted, found and found.p),
        test=among.test if among else "no frame decided in both",
        test_background=background.test if background else "",
        test_alone=found.test if found else "",
        more=among.more if among else "",
        demands_of_itself=info.demands_of_itself,
        unit="drive" if sums.relation.unit == "drive" else "frame",
        tolerated_rate=info.tolerated_rate,
        upper=sums.relation.upper if info.tolerated_rate is not None else None,
    )


def _tests(sums: RelationSums, info: RelationInfo, family: int) -> _Tests:
    """Return the test against control and sham, and that of standing out.

    A relation that tolerates a rate stands out where it exceeds that. Control and sham that are clean add nothing:
    they may be decided on few of the frames, as where they are asked for objects like the one that was added.
    """
    background = sums.exceedance(family)
    if info.tolerated_rate is None or not sums.relation.tally.decided:
        return background, background
    rate = sums.relation.excess_over(info.tolerated_rate, family)
    noisy = sums.control.tally.violated + sums.sham.tally.violated > 0
    return background, max(background, rate, key=lambda found: found.p) if background and noisy else rate


def _relation_plain(
    info: RelationInfo,
    sums: RelationSums,
    evidence: RelationEvidence,
    ended: tuple[RelationOutcome, str],
    least_score: float,
) -> dict[str, Any]:
    outcome, why = ended
    floor = floor_of(*(arm.numbers for arm in sums.arms))
    found, undecided = sums.relation.recall.plain(), sums.relation.undecided.plain()
    oracle = sums.relation.oracle.plain()
    return {
        "outcome": outcome.value,
        "why": why,
        **_more_input(sums.relation, evidence, outcome),
        "kind": info.kind,
        "unit_of_input": evidence.unit,
        **sums.relation.plain(least_score),
        **({"ci95": None, "ci95_method": None} if evidence.biased else {}),
        "control": sums.control.plain(),
        "sham": sums.sham.plain(),
        "p": digits(evidence.p),
        "p_adjusted": digits(evidence.p_adjusted),
        "test": evidence.test,
        "min_decided": info.min_decided,
        **({"tolerated_rate": info.tolerated_rate} if info.tolerated_rate is not None else {}),
        "because": info.because,
        "change": info.change,
        "requirement": list(info.requirement),
        **({"undecided": undecided} if undecided else {}),
        **({"recall": found} if found else {}),
        **({"ground_truth": oracle} if oracle else {}),
        **({"measured": floor} if floor else {}),
    }


def _more_input(relation: ArmSums, evidence: RelationEvidence, outcome: RelationOutcome) -> dict[str, str]:
    """Return ``more``: what would decide; ``more_until_20_percent``: what would make a vague PASS less so."""
    if outcome is RelationOutcome.PASS:
        more = relation.more_for_upper(VAGUE)
        return {"more_until_20_percent": more} if more else {}
    more = missing_input(evidence, outcome)
    return {"more": more} if more else {}
