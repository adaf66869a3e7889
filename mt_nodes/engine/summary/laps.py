# SPDX-License-Identifier: Apache-2.0
"""Drives, frames and rounds of live input: each lap of a looped bag shows the same again, which is nothing new."""

from __future__ import annotations

from dataclasses import dataclass, field

from mt_nodes.base.stats.cluster_sums import Unit
from mt_nodes.data.verdict import Pair


@dataclass
class _Drive:
    """One drive, named by its first episode: the stamps between which it lies, and the number of each frame."""

    episode: int
    low_ns: int
    high_ns: int
    frames: dict[int, int] = field(default_factory=dict)
    most: int = -1

    def frame(self, pair: Pair, bundle: int, stamp_ns: int) -> int:
        """Return the number of the frame that bears a stamp: in the first episode that of its bundle."""
        self.low_ns, self.high_ns = min(self.low_ns, stamp_ns), max(self.high_ns, stamp_ns)
        if stamp_ns not in self.frames:
            self.frames[stamp_ns] = bundle if pair.episode == self.episode else self.most + 1
            self.most = max(self.most, self.frames[stamp_ns])
        return self.frames[stamp_ns]


class Laps:
    """Follows the lines of a live run's journal.

    An episode that begins between stamps which a drive had before, or goes back behind the episode before it, is
    another lap of that drive, and what bears the same stamp there is the same frame. A round that begins in another
    lap, less than a turn away from where a round began before, tests the same frames: for the comparison with control
    and sham the two are one case.
    """

    def __init__(self) -> None:
        self._drives: list[_Drive] = []
        self._by_episode: dict[int, _Drive] = {}
        self._last_ns: dict[int, int] = {}
        self._first_turn = ""
        self._turn_units: set[Unit] = set()
        self._turn_frames = 0
        self._begun: dict[int, Unit] = {}
        self._cases: dict[int, int] = {}
        #: By frame the first frame of its scene.
        self._scenes: dict[Unit, Unit] = {}
        #: Of the last scene of another lap: episode, the bundle with which it began, and the first frame seen of it.
        self._last_scene: tuple[int, int, Unit] = (-1, -1, (-1, None))

    def unit(self, pair: Pair, stamp_ns: int) -> Unit:
        """Return drive and frame of a pair."""
        if pair.episode not in self._by_episode:
            self._by_episode[pair.episode] = self._drive(pair.episode, stamp_ns)
        drive = self._by_episode[pair.episode]
        self._last_ns[pair.episode] = max(stamp_ns, self._last_ns.get(pair.episode, stamp_ns))
        return drive.episode, None if pair.bundle is None else drive.frame(pair, pair.bundle, stamp_ns)

    def case(self, pair: Pair, unit: Unit, number: int) -> Unit:
        """Return what a pair of a round is compared as with control and sham."""
        self._measure_turn(pair.relation, unit)
        if number not in self._cases:
            known = self._same_frames(unit) if pair.episode != unit[0] else None
            self._cases[number] = number if known is None else known
            self._begun.setdefault(self._cases[number], unit)
        return self._cases[number], None

    def scene(self, pair: Pair, frame: Unit, began: int) -> Unit:
        """Return the first frame of the scene that a frame shows, which began with a bundle of the pair's episode.

        A lap may miss frames, so that its bundles are no measure of how far back that is: what was said of a frame
        first holds, and what a lap shows for the first time is of the scene of the frames beside it.
        """
        anchor: Unit = (frame[0], began)
        if pair.episode != frame[0]:
            if self._last_scene[:2] != (pair.episode, began):
                self._last_scene = pair.episode, began, frame
            anchor = self._last_scene[2]
        return self._scenes.setdefault(frame, self._scenes.get(anchor, anchor))

    def _drive(self, episode: int, stamp_ns: int) -> _Drive:
        for drive in self._drives:
            if drive.low_ns <= stamp_ns <= drive.high_ns:
                return drive
        before = max((known for known in self._by_episode if known < episode), default=None)
        if before is not None and stamp_ns < self._last_ns[before]:
            return self._by_episode[before]
        self._drives.append(_Drive(episode, stamp_ns, stamp_ns))
        return self._drives[-1]

    def _measure_turn(self, relation: str, unit: Unit) -> None:
        """Count the frames of the first turn; the others are about as long."""
        self._first_turn = self._first_turn or relation
        if relation == self._first_turn and not self._turn_frames:
            self._turn_units.add(unit)
        elif not self._turn_frames:
            self._turn_frames = len(self._turn_units)

    def _same_frames(self, unit: Unit) -> int | None:
        drive, frame = unit
        frames = len(self._by_episode[drive].frames)
        for number, (other, begun) in self._begun.items():
            if other == drive and begun is not None and frame is not None:
                apart = abs(frame - begun) % frames
                if min(apart, frames - apart) < self._turn_frames:
                    return number
        return None
