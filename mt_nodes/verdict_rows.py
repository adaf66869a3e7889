# SPDX-License-Identifier: Apache-2.0
"""From verdict lines of a journal to rows that can be counted: by relation, apart from its control and sham."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mt_nodes.errors import InfrastructureError
from mt_nodes.measured import Measured, measured_of
from mt_nodes.outcomes import Tally
from mt_nodes.recall import about_objects
from mt_nodes.relations import CONTROL, LOOP_SHAM, SHAMS
from mt_nodes.statistics import Unit
from mt_nodes.verdict import Outcome, Pair

Line = Mapping[str, Any]


class Row(NamedTuple):
    """What of one verdict counts in a summary."""

    unit: Unit
    outcome: Outcome
    lost: int
    gained: int
    counts: Mapping[str, Sequence[int]]
    objects: Line
    measured: Measured | None
    #: What is compared with control and sham: of live input a round, in which none shares a bundle with them.
    case: Unit
    by_arrival: bool = False


@dataclass(frozen=True)
class RelationArms:
    """The rows of one relation, and those of control and sham that its check judged."""

    relation: list[Row] = field(default_factory=list)
    control: list[Row] = field(default_factory=list)
    sham: list[Row] = field(default_factory=list)

    @property
    def all(self) -> list[Row]:
        """Every row."""
        return [*self.relation, *self.control, *self.sham]


def sorted_by_arm(verdicts: Iterable[Line], relations: Iterable[str]) -> tuple[dict[str, RelationArms], dict[str, int]]:
    """Return the rows of each relation, by its id, and how often each outcome came over all of them.

    Raises:
        InfrastructureError: a pair belongs to none of the relations.
    """
    arms = {name: RelationArms() for name in relations}
    total: Counter[str] = Counter()
    drives: dict[int, int] = {}
    for line in verdicts:
        if line.get("type") == "condition":
            drives = dict(enumerate(line["drives"])) if "drives" in line else _drives(line)
        if line.get("type") != "verdict":
            continue
        pair = Pair.parse(line["pair"])
        if pair.judged_for not in arms:
            known = ", ".join(arms) or "(none)"
            raise InfrastructureError(f"pair {pair}: '{pair.judged_for}' is none of the run's relations: {known}")
        own = arms[pair.judged_for]
        rows = (
            own.relation
            if "@" not in pair.draw
            else {CONTROL: own.control, **dict.fromkeys((*SHAMS, LOOP_SHAM), own.sham)}.get(pair.relation)
        )
        if rows is None:
            raise InfrastructureError(
                f"pair {pair}: got '{pair.relation}' with '@', expected {' or '.join((CONTROL, *SHAMS, LOOP_SHAM))}"
            )
        rows.append(_row(pair, drives.get(pair.episode, pair.episode), line))
        total[line["outcome"]] += 1
    return arms, in_order(total)


def _drives(condition: Line) -> dict[int, int]:
    """Episode -> the first one of the same bag: a drive that is played again is no further drive."""
    first = condition.get("first_episode", 0)
    names = [posixpath.normpath(bag) for bag in condition.get("bags", ())]
    return {episode: first + names.index(name) for episode, name in enumerate(names, first)}


def _row(pair: Pair, drive: int, line: Line) -> Row:
    detail = line.get("detail", {})
    counts, objects = detail.get("counts", {}), about_objects(detail)
    outcome = Outcome(line["outcome"])
    measured = measured_of(line) if outcome.decided else None
    unit = (drive, pair.bundle)
    case = (line["round"], None) if "round" in line else unit
    return Row(unit, outcome, line["lost"], line["gained"], counts, objects, measured, case, "paired_by" in line)


def tally(rows: Sequence[Row]) -> Tally:
    """Count what was decided and violated."""
    decided = [row.outcome for row in rows if row.outcome.decided]
    return Tally(len(decided), decided.count(Outcome.VIOLATED))


def in_order(total: Mapping[str, int]) -> dict[str, int]:
    """Return counts of outcomes in the order in which outcomes are always told, without those that never came."""
    return {outcome.value: total[outcome.value] for outcome in Outcome if outcome.value in total}
