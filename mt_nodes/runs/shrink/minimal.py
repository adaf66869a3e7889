# SPDX-License-Identifier: Apache-2.0
"""Searches for the least that still fails; each asks nothing but a function that says whether something fails."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mt_nodes.base.arrays import Rows
from mt_nodes.relations.strength import Strength

#: How close to the threshold the fraction of a strength that is no whole number is brought.
TOLERANCE = 1 / 128


def fewest(atoms: Rows, fails: Callable[[Rows], bool]) -> Rows:
    """Return a smallest part of the atoms that still fails: none of it can be left out alone.

    Delta debugging: parts, then what is left without each, of ever finer partitions (Zeller and Hildebrandt,
    Simplifying and Isolating Failure-Inducing Input, IEEE TSE 28(2), 2002). No part is asked about twice.
    ``atoms``: (N,) numbers; all of them together fail, none of them does not. ``fails``: whether a part does, in the
    order of ``atoms``.
    """
    known: set[bytes] = set()

    def fresh(part: Rows) -> bool:
        name = part.tobytes()
        if name in known:  # what failed became the new whole, so what is known held
            return False
        known.add(name)
        return fails(part)

    parts = 2
    while len(atoms) > 1:
        cut = np.array_split(np.arange(len(atoms)), parts)
        smaller = next((atoms[rows] for rows in cut if fresh(atoms[rows])), None)
        if smaller is not None:
            atoms, parts = smaller, 2
            continue
        rests = (np.delete(atoms, rows) for rows in cut) if parts > 2 else ()
        rest = next((left for left in rests if fresh(left)), None)
        if rest is not None:
            atoms, parts = rest, max(parts - 1, 2)
        elif parts >= len(atoms):
            break
        else:
            parts = min(2 * parts, len(atoms))
    return atoms


def shortest(longest: int, fails: Callable[[int], bool]) -> int:
    """Return a length that fails while the one below it does not; ``longest`` is known to fail, and the last resort.

    Short ones are tried first, each twice as long as the one before: one play of a long drive costs more than many of
    a short one.
    """
    holds, length = -1, 0
    while length < longest and not fails(length):
        holds, length = length, max(1, 2 * length)
    length = min(length, longest)
    while length - holds > 1:
        middle = (holds + length) // 2
        if fails(middle):
            length = middle
        else:
            holds = middle
    return length


def weakest(axis: Strength, fails: Callable[[float], bool]) -> float:
    """Return the value of a strength nearest its weak end that fails; the strong end is known to fail.

    Bisection: a neighbour below it holds (whole numbers), or one that is :data:`TOLERANCE` of the way weaker. Of a
    stack that fails in islands it is the edge of one of them.
    """
    if fails(axis.value(0.0)):
        return axis.value(0.0)
    holds, weak = 0.0, 1.0
    while abs(axis.value(weak) - axis.value(holds)) > 1 if axis.whole else weak - holds > TOLERANCE:
        middle = (holds + weak) / 2
        value = axis.value(middle)
        if value == axis.value(holds):
            holds = middle
        elif value == axis.value(weak) or fails(value):
            weak = middle
        else:
            holds = middle
    return axis.value(weak)
