# SPDX-License-Identifier: Apache-2.0
"""Perception with a LiDAR behind detection: tracks, predicted paths and free space."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections, Output
from mt_nodes.data.perception import UNKNOWN_CELL, FreeSpace, PredictedObjects, PredictedPath
from mt_nodes.stacks.reference.faults.base import Points, named_faults
from mt_nodes.stacks.reference.faults.perception_base import Counts, PerceptionSteps, sorted_faults
from mt_nodes.stacks.reference.tracker import Tracker

_KINDS = ("lidar", "perception")


@dataclass(frozen=True, eq=False)
class LidarPerception:
    """Tracks obstacles, predicts each at constant velocity, and tells occupied from free cells of the region ahead.

    A cell is occupied by two or more points above ground. Along each bearing, cells are free up to the nearest occupied
    one or, without one, up to the farthest return from the ground; what lies behind is unknown.
    """

    frame_id: str = param("base_link", help="frame of the points given: on the road, x forward, y left, z up")
    horizon_s: float = param(3.0, low=0.5, high=10.0, unit="s", help="how far ahead paths are predicted")
    step_s: float = param(0.5, low=0.1, high=2.0, unit="s", help="between the places of a path")
    cell_m: float = param(0.25, low=0.05, high=2.0, unit="m", help="side of a cell")
    bearing_deg: float = param(0.5, low=0.1, high=5.0, unit="deg", help="width of a bearing along which one sees")
    least_hits: int = param(2, low=1, high=100, help="points above ground in an occupied cell")
    area_m: tuple[float, float, float, float] = param(
        (0.0, 40.0, -10.0, 10.0), unit="m", help="x from, to, y from, to: the grid"
    )
    faults: tuple[Any, ...] = param(
        (),
        convert=lambda value, where: named_faults(value, where, *_KINDS),
        help="names of faults to plant, or {name: {parameter: value}}",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "faults", named_faults(self.faults, "faults", *_KINDS))

    def __call__(self, points: Points, stamp_ns: int | None = None) -> Output:
        """Return ``tracks``, ``predictions`` and ``free_space`` of a cloud.

        ``points``: (N, C ≥ 4) x, y, z, intensity, … in ``frame_id``. ``stamp_ns``: of the cloud.
        """
        tracks = self._tracker(points, self._steps.stamp_ns(points, stamp_ns))
        assert isinstance(tracks, Detections), "no fault of the detector makes it silent"
        tracks = self._steps.named(points, tracks)
        return Output(tracks=tracks, predictions=self._predicted(tracks), free_space=self._grid(points, stamp_ns))

    @cached_property
    def _tracker(self) -> Tracker:
        return Tracker(frame_id=self.frame_id, faults=sorted_faults(self.faults)[0])

    @cached_property
    def _steps(self) -> PerceptionSteps:
        honest = PerceptionSteps(occupied=lambda hits, behind: np.asarray(hits >= self.least_hits))
        return reduce(lambda steps, fault: fault.plant(steps), sorted_faults(self.faults)[1], honest)

    def _predicted(self, tracks: Detections) -> PredictedObjects:
        time_s = np.arange(0.0, self.horizon_s + self.step_s / 2.0, self.step_s)
        places = tracks.center_m[:, None, :2] + self._steps.motion(tracks)[:, None] * time_s[:, None]
        paths = tuple((PredictedPath(1.0, time_s, own),) for own in places)
        return PredictedObjects(tracks.frame_id, tracks.stamp_ns, tracks, paths)

    def _grid(self, points: Points, stamp_ns: int | None) -> FreeSpace:
        x_from, x_to, y_from, y_to = self.area_m
        shape = round((y_to - y_from) / self.cell_m), round((x_to - x_from) / self.cell_m)
        empty = FreeSpace(self.frame_id, stamp_ns, self.cell_m, (x_from, y_from, 0.0), np.zeros(shape, np.int8))
        cloud = self._tracker.admitted(points)
        standing_mm, _ = self._tracker.above_ground(cloud)
        hits = self._counted(standing_mm[:, :2] / 1000.0, shape)
        centers = empty.centers_m(np.ones(shape, dtype=bool))
        bearing, range_m = self._bearings(centers), np.hypot(*centers.T)
        occupied = self._steps.occupied(hits, self._behind(cloud, bearing, shape))
        seen_m = self._seen_m(cloud, bearing, range_m, occupied.reshape(-1))
        free = (range_m < seen_m[bearing]).reshape(shape)
        cells = np.where(occupied, 100, np.where(free, 0, UNKNOWN_CELL)).astype(np.int8)
        return FreeSpace(self.frame_id, stamp_ns, self.cell_m, (x_from, y_from, 0.0), cells)

    def _seen_m(self, cloud: Points, bearing: Counts, range_m: Floats, occupied: Mask) -> Floats:
        """Return the range by bearing up to which cells are free: half a cell before the nearest occupied one."""
        count = round(360.0 / self.bearing_deg) + 1
        ground = cloud.compress(self._tracker.watched(cloud), axis=0)[:, :2].astype(np.float64)
        seen = np.zeros(count)
        np.maximum.at(seen, self._bearings(ground), np.hypot(*ground.T))
        near = np.full(count, np.inf)
        np.minimum.at(near, bearing[occupied], range_m[occupied] - self.cell_m / 2.0)
        return np.asarray(np.minimum(seen, near))

    def _behind(self, cloud: Points, bearing: Counts, shape: tuple[int, int]) -> Counts:
        """Return for each cell (H, W) the returns outside of the region, at most as high as a car, in its direction."""
        outside = ~self._tracker.watched(cloud) & (cloud[:, 0] > 0.0) & (np.abs(cloud[:, 2]) < 2.0)
        far = cloud.compress(outside, axis=0)[:, :2].astype(np.float64)
        counts = np.bincount(self._bearings(far), minlength=int(bearing.max()) + 1)
        return np.asarray(counts[bearing].reshape(shape))

    def _counted(self, xy_m: Floats, shape: tuple[int, int]) -> Counts:
        """Return the number of places (N, 2) in each cell (H, W)."""
        x_from, _, y_from, _ = self.area_m
        column, row = np.floor((xy_m - (x_from, y_from)) / self.cell_m).astype(np.int64).T
        inside = (row >= 0) & (row < shape[0]) & (column >= 0) & (column < shape[1])
        address = row[inside] * shape[1] + column[inside]
        return np.bincount(address, minlength=shape[0] * shape[1]).reshape(shape)

    def _bearings(self, xy_m: Floats) -> Counts:
        """Return the number (N,) of the bearing of each place."""
        azimuth = np.degrees(np.arctan2(xy_m[:, 1], xy_m[:, 0])) + 180.0
        return np.asarray(np.floor(azimuth / self.bearing_deg), dtype=np.int64)
