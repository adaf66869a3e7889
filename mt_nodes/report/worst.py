# SPDX-License-Identifier: Apache-2.0
"""Which violated pairs are shown first, and which are worth a picture."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any, TypeVar

from mt_nodes.verdict import Pair

#: Violated pairs that a report shows with pictures.
PICTURED = 6
Key = tuple[Any, ...]
Line = TypeVar("Line", bound=Mapping[str, Any])


def worst_first(line: Mapping[str, Any]) -> Key:
    """Return the place of a violated verdict line among others: most lost, then deepest margin, then the pair.

    The relations' own pairs come before those of control and sham, and what could not be measured at all before what
    missed its bound.
    """
    pair = Pair.parse(line["pair"])
    margin = -math.inf if line["margin"] is None else line["margin"]
    bundle = -1 if pair.bundle is None else pair.bundle
    return "@" in pair.draw, -line["lost"], margin, pair.episode, bundle, pair.relation, pair.draw


def in_turn(lines: Iterable[Line]) -> list[Line]:
    """Return violated verdict lines worst first, but one of every relation before the second of any.

    Few pictures then show what is wrong in many relations, and not one relation many times.
    """
    met: Counter[tuple[bool, str]] = Counter()
    placed = []
    for line in sorted(lines, key=worst_first):
        pair = Pair.parse(line["pair"])
        of_its_own = "@" not in pair.draw
        met[of_its_own, pair.relation] += 1
        placed.append((not of_its_own, met[of_its_own, pair.relation], line))
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
        return any(kept is line for kept in self._lines)
