# SPDX-License-Identifier: Apache-2.0
"""When one uninterrupted stretch of live input ends and the next begins."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Start(str, Enum):
    """Why an episode begins with an instant; GOES_ON: it does not."""

    CONTINUES = ""
    FIRST = "the first input"
    BACK = "stamps went back: a bag's loop, or a clock that was set"
    JUMP = "stamps jumped ahead"
    GAP = "input came again after a pause"

    @property
    def breaks(self) -> bool:
        """Whether what came before is no memory of what comes now."""
        return self not in (Start.CONTINUES, Start.FIRST)


@dataclass(frozen=True)
class EpisodePlace:
    """Where an instant belongs: episode, number within it, and why an episode begins here."""

    episode: int
    index: int
    start: Start


class Episodes:
    """Numbers instants as they come. ``gap_s``: after a longer pause, by stamps or by arrival, an episode ends."""

    def __init__(self, gap_s: float) -> None:
        self._gap_s = gap_s
        self._last: tuple[int, float] | None = None
        self._episode, self._index = 0, -1

    def place(self, stamp_ns: int, arrived_s: float) -> EpisodePlace:
        """Return where an instant belongs that came at process time ``arrived_s``."""
        start = self._start(stamp_ns, arrived_s)
        if start.breaks:
            self._episode, self._index = self._episode + 1, -1
        self._index += 1
        self._last = (stamp_ns, arrived_s)
        return EpisodePlace(self._episode, self._index, start)

    def _start(self, stamp_ns: int, arrived_s: float) -> Start:
        if self._last is None:
            return Start.FIRST
        last_ns, last_s = self._last
        if stamp_ns < last_ns:
            return Start.BACK
        if arrived_s - last_s > self._gap_s:
            return Start.GAP
        return Start.JUMP if stamp_ns - last_ns > self._gap_s * 1e9 else Start.CONTINUES
