# SPDX-License-Identifier: Apache-2.0
"""Which violated pairs are shown first, and which are worth a picture."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from mt_nodes.data.verdict import Pair
from mt_nodes.engine.summary.verdict_rows import PairRow

#: Violated pairs that a report shows with pictures.
PICTURED = 6
Line = TypeVar("Line")


class WorstRank(NamedTuple):
    """Where a violated pair comes among others: most lost, then deepest margin, then the pair.

    The relations' own pairs come before those of control and sham, and what could not be measured at all before what
    missed its bound.
    """

    of_background: bool
    minus_lost: int
    margin: float
    episode: int
    bundle: int
    relation: str
    draw: str


def worst_first(line: Mapping[str, Any]) -> WorstRank:
    """Return the place of a violated verdict line."""
    pair = Pair.parse(line["pair"])
    return _place("@" in pair.draw, line["lost"], line.get("margin"), pair)


def worst_row(row: PairRow) -> WorstRank:
    """Return the place of a violated pair, the same as that of its verdict line."""
    return _place(row.of_background, row.lost, row.margin, row)


def in_turn(lines: Iterable[Line], place: Callable[[Line], WorstRank] = worst_first) -> list[Line]:  # type: ignore[assignment]
    """Return violated verdict lines worst first, but one of every relation before the second of any.

    Few pictures then show what is wrong in many relations, and not one relation many times.
    """
    counts: Counter[tuple[bool, str]] = Counter()
    placed = []
    for at, line in sorted(((place(line), line) for line in lines), key=itemgetter(0)):
        counts[at.of_background, at.relation] += 1
        placed.append((at.of_background, counts[at.of_background, at.relation], line))
    return [line for *_, line in sorted(placed, key=itemgetter(0, 1))]


class WorstSoFar:
    """The violated pairs of a run that goes on which its report would picture if it ended now.

    None that is not among them now will be at the end: what comes later only moves a line back.
    """

    def __init__(self, most: int = PICTURED) -> None:
        self._most = most
        self._lines: list[Mapping[str, Any]] = []

    def takes(self, line: Mapping[str, Any]) -> bool:
        """Count a violated verdict line in; say whether it is among the worst so far."""
        self._lines = in_turn([*self._lines, line])[: self._most]
        return any(shown is line for shown in self._lines)


def _place(of_background: bool, lost: int, margin: float | None, pair: Pair | PairRow) -> WorstRank:
    deep, bundle = -math.inf if margin is None else margin, -1 if pair.bundle is None else pair.bundle
    return WorstRank(of_background, -lost, deep, pair.episode, bundle, pair.relation, pair.draw)
