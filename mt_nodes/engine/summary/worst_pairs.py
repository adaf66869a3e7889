# SPDX-License-Identifier: Apache-2.0
"""The worst violated pair of each relation, found while the lines of a journal are read for something else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mt_nodes.data.verdict import Outcome, Pair
from mt_nodes.engine.worst import WorstRank, worst_first

Line = Mapping[str, Any]
_NUMBERS = ("measured", "bound", "margin", "unit")


class WorstPairs:
    """Keeps one verdict line of each relation: of its violated pairs (not of control and sham) the worst."""

    def __init__(self) -> None:
        self._worst: dict[str, tuple[WorstRank, Line]] = {}

    def passing(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield lines, and take in the violated pairs among them."""
        for line in lines:
            if line.get("outcome") == Outcome.VIOLATED.value:
                self._take(line)
            yield line

    def of(self, relation: str) -> dict[str, Any] | None:
        """Return what a summary says of the worst pair of a relation, None where none is violated.

        Returns:
            ``pair``, ``reason``, ``lost``, ``gained``, ``measured``, ``bound``, ``margin``, ``unit``; and where the
            check says which obstacles it demands, ``lost_of``: by class [lost, demanded], most lost first.
        """
        if relation not in self._worst:
            return None
        line = self._worst[relation][1]
        lost_of = _lost_of(line.get("detail", {}))
        return {
            **{key: line.get(key) for key in ("pair", "reason", "lost", "gained", *_NUMBERS)},
            **({"lost_of": lost_of} if lost_of else {}),
        }

    def _take(self, line: Line) -> None:
        pair = Pair.parse(line["pair"])
        if "@" in pair.draw:
            return
        rank = worst_first(line)
        if pair.relation not in self._worst or rank < self._worst[pair.relation][0]:
            self._worst[pair.relation] = rank, line


def _lost_of(detail: Line) -> dict[str, list[int]]:
    lost = Counter(row[2] for row in detail.get("lost_at", ()))
    demanded = {name: sum(row[-1] for row in rows) for name, rows in detail.get("judged_in", {}).items()}
    if any(count > demanded.get(name, 0) for name, count in lost.items()):
        return {}
    return {name: [count, demanded[name]] for name, count in lost.most_common()}
