# SPDX-License-Identifier: Apache-2.0
"""How many violated pairs of each relation keep their evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from mt_nodes.data.verdict import Pair


class EvidenceLimit:
    """Counts pairs with evidence by relation.

    Args:
        most: of each relation; None: all.
        known: pairs that a run that is resumed has kept the evidence of.
    """

    def __init__(self, most: int | None, known: Iterable[Pair]) -> None:
        self._most = most
        self._count = Counter() if most is None else Counter(pair.relation for pair in known)

    def has_room(self, pair: Pair) -> bool:
        """Return whether another pair of this relation may keep its evidence."""
        return self._most is None or self._count[pair.relation] < self._most

    def take(self, pair: Pair) -> bool:
        """Return whether a pair keeps its evidence, and count it if so."""
        taken = self.has_room(pair)
        self._count[pair.relation] += taken
        return taken
