# SPDX-License-Identifier: Apache-2.0
"""Which violated pairs are shown first, and which are worth a picture."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping
from typing import Any

from mt_nodes.verdict import Pair

#: Violated pairs that a report shows with pictures.
PICTURED = 6
Key = tuple[Any, ...]


def worst_first(line: Mapping[str, Any]) -> Key:
    """Return the place of a violated verdict line among others: most lost, then deepest margin, then the pair.

    The relations' own pairs come before those of control and sham, and what could not be measured at all before what
    missed its bound.
    """
    pair = Pair.parse(line["pair"])
    margin = -math.inf if line["margin"] is None else line["margin"]
    bundle = -1 if pair.bundle is None else pair.bundle
    return "@" in pair.draw, -line["lost"], margin, pair.episode, bundle, pair.relation, pair.draw


class WorstSoFar:
    """The places of the worst violated pairs of a run that goes on."""

    def __init__(self, most: int = PICTURED) -> None:
        self._most = most
        self._places: list[Key] = []

    def takes(self, line: Mapping[str, Any]) -> bool:
        """Count a violated verdict line in; say whether it is among the worst so far."""
        place = worst_first(line)
        bisect.insort(self._places, place)
        del self._places[self._most :]
        return place in self._places
