# SPDX-License-Identifier: Apache-2.0
"""From verdict lines of a journal to rows that can be counted: by relation, apart from its control and sham."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.stats.cluster_sums import Unit
from mt_nodes.data.verdict import SCORE_FALLS, Outcome, Pair
from mt_nodes.engine.summary.laps import Laps
from mt_nodes.engine.summary.noise_floor import PairMeasure, measured_of
from mt_nodes.engine.summary.outcomes import PairTally
from mt_nodes.engine.summary.recall import about_objects
from mt_nodes.relations.relation import CONTROL, LOOP_SHAM, SHAMS

Line = Mapping[str, Any]
_BACKGROUND = {CONTROL: "control", **dict.fromkeys((*SHAMS, LOOP_SHAM), "sham")}


class VerdictRow(NamedTuple):
    """What of one verdict counts in a summary."""

    #: Drive and scene: bundles that show one scene are one observation.
    unit: Unit
    outcome: Outcome
    lost: int
    gained: int
    counts: Mapping[str, Sequence[int]]
    objects: Line
    measured: PairMeasure | None
    #: What is compared with control and sham: of live input a round, in which none shares a bundle with them.
    case: Unit
    #: Drive and bundle.
    frame: Unit
    by_arrival: bool = False
    #: Why it was not decided, where it was not.
    reason: str = ""
    #: Scores of what was lost, before and after.
    falls: Sequence[Sequence[float]] = ()
    #: What the labels say of it, where there are any.
    truth: Line | None = None


class PairRow(NamedTuple):
    """One pair. A run has many: of a verdict line nothing else is kept."""

    pair: str
    episode: int
    bundle: int | None
    relation: str
    draw: str
    judged_for: str
    requirement: str
    outcome: str
    measured: float | None
    bound: float | None
    margin: float | None
    unit: str
    lost: int
    gained: int
    reason: str
    #: Classes of the obstacles that the verdict is about, joined by ``;``, and the range of the nearest.
    object_class: str
    range_m: float | None
    #: What the labels say of both outputs, empty without labels.
    truth: str = ""
    #: What source (as it is expected of the follow-up) and follow-up commanded; not in the tables.
    commanded: tuple[float, float] | None = None

    @property
    def of_background(self) -> bool:
        """Whether it is of control or sham."""
        return "@" in self.draw


@dataclass(frozen=True)
class RelationArms:
    """The rows of one relation, and those of control and sham that its check judged."""

    relation: list[VerdictRow] = field(default_factory=list)
    control: list[VerdictRow] = field(default_factory=list)
    sham: list[VerdictRow] = field(default_factory=list)

    @property
    def all(self) -> list[VerdictRow]:
        """Every row."""
        return [*self.relation, *self.control, *self.sham]


def sorted_by_arm(verdicts: Iterable[Line], relations: Iterable[str]) -> tuple[dict[str, RelationArms], dict[str, int]]:
    """Return the rows of each relation, by its id, and how often each outcome came over all of them.

    Raises InfrastructureError: a pair belongs to none of the relations.
    """
    arms = {name: RelationArms() for name in relations}
    for name, arm, row in rows_by_arm(verdicts, tuple(arms)):
        getattr(arms[name], arm).append(row)
    return arms, in_order(Counter(row.outcome.value for each in arms.values() for row in each.all))


def rows_by_arm(verdicts: Iterable[Line], relations: Collection[str]) -> Iterator[tuple[str, str, VerdictRow]]:
    """Yield relation, arm (``relation``, ``control`` or ``sham``) and row of each verdict line.

    Raises InfrastructureError: a pair belongs to none of the relations.
    """
    drives: dict[int, int] = {}
    laps = Laps()
    for line in verdicts:
        if line.get("type") == "condition":
            drives = dict(enumerate(line["drives"])) if "drives" in line else _drives(line)
        if line.get("type") != "verdict":
            continue
        pair = Pair.parse(line["pair"])
        if pair.judged_for not in relations:
            known = ", ".join(relations) or "(none)"
            raise InfrastructureError(f"pair {pair}: '{pair.judged_for}' is none of the run's relations: {known}")
        arm = _BACKGROUND.get(pair.relation) if "@" in pair.draw else "relation"
        if arm is None:
            raise InfrastructureError(
                f"pair {pair}: got '{pair.relation}' with '@', expected {' or '.join((CONTROL, *SHAMS, LOOP_SHAM))}"
            )
        if "round" in line:
            frame = laps.unit(pair, line["stamp_ns"])
            case, began = laps.case(pair, frame, line["round"]), line.get("scene", pair.bundle)
            scene = frame if began is None else laps.scene(pair, frame, began)
        else:
            case = frame = (drives.get(pair.episode, pair.episode), pair.bundle)
            scene = (frame[0], line.get("scene", pair.bundle))
        yield pair.judged_for, arm, _row(frame, case, line, scene)


def _drives(condition: Line) -> dict[int, int]:
    """Episode -> the first one of the same bag: a drive that is played again is no further drive."""
    first = condition.get("first_episode", 0)
    names = [posixpath.normpath(bag) for bag in condition.get("bags", ())]
    return {episode: first + names.index(name) for episode, name in enumerate(names, first)}


def _row(frame: Unit, case: Unit, line: Line, unit: Unit) -> VerdictRow:
    detail = line.get("detail", {})
    counts, objects = detail.get("counts", {}), about_objects(detail)
    outcome = Outcome(line["outcome"])
    measured = measured_of(line) if outcome.decided else None
    by_arrival, reason = "paired_by" in line, line.get("reason", "")
    return VerdictRow(
        *(unit, outcome, line["lost"], line["gained"], counts, objects, measured, case, frame, by_arrival, reason),
        falls=detail.get(SCORE_FALLS, ()),
        truth=line.get("truth"),
    )


def tally(rows: Sequence[VerdictRow]) -> PairTally:
    """Count what was decided and violated."""
    decided = [row.outcome for row in rows if row.outcome.decided]
    return PairTally(len(decided), decided.count(Outcome.VIOLATED))


def in_order(total: Mapping[str, int]) -> dict[str, int]:
    """Return counts of outcomes in the order in which outcomes are always told, without those that never came."""
    return {outcome.value: total[outcome.value] for outcome in Outcome if outcome.value in total}
