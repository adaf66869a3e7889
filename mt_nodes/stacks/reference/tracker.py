# SPDX-License-Identifier: Apache-2.0
"""Detectors with a memory: tracks of constant velocity."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.assignment import linear_sum_assignment
from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.detector import Detector
from mt_nodes.stacks.reference.faults.base import Points
from mt_nodes.stacks.reference.lidar_detector import LidarDetector

NOMINAL_PERIOD_S = 0.1
#: Gains of the alpha-beta filter on position and velocity.
ALPHA, BETA = 0.6, 0.3


@dataclass(frozen=True, eq=False)
class Track:
    """One tracked obstacle: its number, latest box, velocity (3,) in m/s, updates, and updates missed in a row."""

    number: int
    box: Detections
    velocity_mps: Floats
    hits: int = 1
    misses: int = 0

    def predicted(self, dt_s: float) -> Floats:
        """Return the centre (3,) after a time at constant velocity."""
        return np.asarray(self.box.center_m[0] + self.velocity_mps * dt_s)

    def updated(self, detection: Detections, dt_s: float) -> Track:
        """Return the track after a matching detection."""
        expected = self.predicted(dt_s)
        surprise = detection.center_m[0] - expected
        velocity = self.velocity_mps + (BETA / dt_s * surprise if dt_s > 0 else 0.0)
        box = replace(detection, center_m=(expected + ALPHA * surprise)[None])
        return Track(self.number, box, velocity, self.hits + 1)

    def coasted(self, dt_s: float, confidence: float) -> Track:
        """Return the track after an update without a detection: moved on, with a lower score."""
        box = replace(self.box, center_m=self.predicted(dt_s)[None], score=self.box.score * confidence)
        return replace(self, box=box, misses=self.misses + 1)


@dataclass
class _Memory:
    tracks: list[Track] = field(default_factory=list)
    stamp_ns: int | None = None
    next_number: int = 1


@dataclass(frozen=True, eq=False)
class Tracking(LidarDetector):
    """Tracks a detector's obstacles from cloud to cloud and publishes those it has detected often enough.

    Positions and velocities are relative to the moving vehicle. The same clouds in the same order give the same
    answers; after a jump of time (backwards, or ahead by more than ``max_gap_s``) it starts anew.
    """

    gate_m: float = param(2.5, low=0.1, high=20.0, unit="m", help="farthest from its prediction")
    confirm_hits: int = param(3, low=1, high=20, help="updates after which a track is published")
    sure_score: float = param(1.0, low=0.0, high=1.0, help="score from which a track is published at once; 1: never")
    max_misses: int = param(3, low=0, high=50, help="updates a track survives unseen")
    coasting_confidence: float = param(0.8, low=0.0, high=1.0, help="factor on the score for each update unseen")
    max_gap_s: float = param(1.0, low=0.1, high=60.0, unit="s", help="longest pause between clouds")

    def answer(self, points: Points, stamp_ns: int | None = None) -> Detections:
        """Update the tracks with one cloud and return the confirmed ones.

        ``points`` is as for the detector. Without a stamp the cloud is taken to follow 0.1 s after the one before.
        """
        return self.follow_detections(self.detect(points, stamp_ns), stamp_ns)

    def follow_detections(self, found: Detections, stamp_ns: int | None = None) -> Detections:
        """Update the tracks with what was detected in one cloud and return the confirmed ones."""
        self._update(found, self._elapsed_s(stamp_ns))
        confirmed = [track for track in self._memory.tracks if self._confirmed(track)]
        return self._published(confirmed, stamp_ns)

    def reset(self) -> None:
        """Forget everything."""
        self._memory.tracks, self._memory.stamp_ns, self._memory.next_number = [], None, 1

    def _confirmed(self, track: Track) -> bool:
        return track.hits >= self.confirm_hits or bool(track.box.score[0] >= self.sure_score)

    @cached_property
    def _memory(self) -> _Memory:
        return _Memory()

    def _elapsed_s(self, stamp_ns: int | None) -> float:
        last = self._memory.stamp_ns
        elapsed = NOMINAL_PERIOD_S if stamp_ns is None or last is None else (stamp_ns - last) * 1e-9
        if not 0.0 <= elapsed <= self.max_gap_s:
            self.reset()
        self._memory.stamp_ns = stamp_ns
        return self._steps.elapsed_s(elapsed)

    def _update(self, detections: Detections, dt_s: float) -> None:
        tracks = self._memory.tracks
        match = self._assign(np.array([t.predicted(dt_s) for t in tracks]).reshape(-1, 3), detections.center_m)
        updated = [
            track.updated(detections.take(np.array([match[i]])), dt_s)
            if i in match
            else track.coasted(dt_s, self.coasting_confidence)
            for i, track in enumerate(tracks)
        ]
        # An unconfirmed track gets no second chance: clutter seldom appears twice in a row.
        allowed = [self.max_misses if track.hits >= self.confirm_hits else 0 for track in updated]
        self._memory.tracks = [track for track, most in zip(updated, allowed, strict=True) if track.misses <= most]
        for row in sorted(set(range(len(detections))) - set(match.values())):
            self._memory.tracks.append(Track(self._memory.next_number, detections.take(np.array([row])), np.zeros(3)))
            self._memory.next_number += 1

    def _assign(self, expected: Floats, detected: Floats) -> dict[int, int]:
        """Return detection by track: the assignment of least total distance within the gate."""
        distance = np.linalg.norm(expected[:, None, :2] - detected[None, :, :2], axis=2)
        rows, columns = linear_sum_assignment(np.minimum(distance, self.gate_m))
        return {int(i): int(j) for i, j in zip(rows, columns, strict=True) if distance[i, j] < self.gate_m}

    def _published(self, tracks: list[Track], stamp_ns: int | None) -> Detections:
        if not tracks:
            return Detections.none(self.frame_id, stamp_ns)
        return Detections.make(
            self.frame_id,
            stamp_ns,
            np.concatenate([t.box.center_m for t in tracks]),
            np.concatenate([t.box.size_m for t in tracks]),
            np.concatenate([t.box.yaw_rad for t in tracks]),
            [str(t.box.label[0]) for t in tracks],
            np.concatenate([t.box.score for t in tracks]),
            [str(t.number) for t in tracks],
            np.stack([t.velocity_mps for t in tracks]),
        )


@dataclass(frozen=True, eq=False)
class Tracker(Tracking, Detector):
    """The reference detector with a memory."""
