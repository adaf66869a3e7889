# SPDX-License-Identifier: Apache-2.0
"""Whether the inputs of a run bear stamps at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mt_nodes.data.verdict import Pair

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
