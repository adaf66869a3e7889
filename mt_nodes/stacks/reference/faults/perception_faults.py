# SPDX-License-Identifier: Apache-2.0
"""Faults in tracks, predicted paths, free space and traffic lights."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.base import Points
from mt_nodes.stacks.reference.faults.perception_base import Counts, PerceptionFault, PerceptionSteps


@dataclass(frozen=True)
class TimeFromPointCount(PerceptionFault):
    """The tracker takes the time between clouds from the number of points that came, at a fixed rate.

    A cloud with fewer points seems shorter, so that everything in it seems faster.
    """

    points_per_s: float = param(1.08e6, low=1e3, high=1e8, unit="1/s", help="rate at which points are taken to come")

    def plant(self, steps: PerceptionSteps) -> PerceptionSteps:
        """Count points from the first cloud on."""
        counted = [0]

        def stamp_ns(points: Points, stamp_ns: int | None) -> int | None:
            counted[0] += len(points)
            return round(counted[0] / self.points_per_s * 1e9)

        return replace(steps, stamp_ns=stamp_ns)


@dataclass(frozen=True)
class TrackIdsHashed(PerceptionFault):
    """Ids are made of the number and a checksum of the cloud's size: another cloud, other ids."""

    def plant(self, steps: PerceptionSteps) -> PerceptionSteps:
        """Put the checksum before every id."""

        def named(points: Points, tracks: Detections) -> Detections:
            tracks = steps.named(points, tracks)
            prefix = zlib.crc32(str(len(points)).encode()) % 1000
            return replace(tracks, track_id=np.array([f"{prefix}-{own}" for own in tracks.track_id], dtype=np.str_))

        return replace(steps, named=named)


@dataclass(frozen=True)
class PredictedAlongYaw(PerceptionFault):
    """Paths are predicted along the box, not along the velocity: a box of fewer points turns, and the path with it."""

    def plant(self, steps: PerceptionSteps) -> PerceptionSteps:
        """Take the speed from the velocity and the direction from the yaw."""

        def motion(tracks: Detections) -> Floats:
            speed = np.hypot(*steps.motion(tracks).T)
            return np.column_stack([speed * np.cos(tracks.yaw_rad), speed * np.sin(tracks.yaw_rad)])

        return replace(steps, motion=motion)


@dataclass(frozen=True)
class CellsClearedByFarReturns(PerceptionFault):
    """A return from far behind a cell, outside of the region, outvotes the hits in the cell: what is there is freed."""

    weight: float = param(3.0, low=0.1, high=100.0, help="hits that one return from behind outvotes")

    def plant(self, steps: PerceptionSteps) -> PerceptionSteps:
        """Free the cells that are outvoted."""

        def occupied(hits: Counts, behind: Counts) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
            return np.asarray(steps.occupied(hits, behind) & (hits >= self.weight * behind))

        return replace(steps, occupied=occupied)


@dataclass(frozen=True)
class LampBrightnessFixed(PerceptionFault):
    """A lamp shines from a fixed brightness on: in a darker picture it is off."""

    least: float = param(200.0, low=1.0, high=255.0, help="brightness, in steps of 8 bits")

    def plant(self, steps: PerceptionSteps) -> PerceptionSteps:
        """Fix the threshold."""
        return replace(steps, lit=lambda rgb: self.least)
