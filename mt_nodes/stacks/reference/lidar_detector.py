# SPDX-License-Identifier: Apache-2.0
"""The common part of LiDAR detectors: the points of interest, and the steps in which faults can be planted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Ints, Mask
from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections, Output
from mt_nodes.stacks.reference.faults.base import Fault, Points, Steps, named_faults

_HALF = 1 << 20


@dataclass(frozen=True, eq=False)
class LidarDetector(ABC):
    """Finds obstacles in a single cloud; it has no memory."""

    frame_id: str = param("base_link", help="frame of the points given: on the road, x forward, y left, z up")
    region_m: tuple[tuple[float, float], ...] = param(
        ((0.0, -10.0), (40.0, -10.0), (40.0, 10.0), (0.0, 10.0)), unit="m", help="corners (x, y) of what is watched"
    )
    use_region: bool = param(True, help="drop what lies outside the region first; else only what is out of range")
    max_range_m: float = param(70.0, low=5.0, high=200.0, unit="m", help="range without the region filter")
    ego_box_m: tuple[float, float, float, float] = param(
        (-2.8, 2.5, -1.2, 1.2), unit="m", help="x from, to, y from, to: the vehicle itself"
    )
    min_points: int = param(6, low=2, high=1000, help="a cluster with fewer points is noise")
    min_height_m: float = param(0.4, low=0.0, high=2.0, unit="m", help="a lower cluster is kerb or grass")
    faults: tuple[Any, ...] = param(
        (), convert=named_faults, help="names of faults to plant, or {name: {parameter: value}}"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "faults", named_faults(self.faults, "faults"))

    def __call__(self, points: Points, stamp_ns: int | None = None, now_ns: int | None = None) -> Detections | Output:
        """Return the obstacles in a cloud, as :meth:`detect` finds them; an empty output where a fault makes it silent.

        ``now_ns`` is the stack's time when the cloud came; nothing but faults looks at it.
        """
        in_time = self._steps.in_time(stamp_ns, now_ns)
        found = self.answer(points, stamp_ns) if in_time else Detections.none(self.frame_id, stamp_ns)
        report = self._steps.report(found)
        return Output() if report is None else report

    def answer(self, points: Points, stamp_ns: int | None = None) -> Detections:
        """Return the output for a cloud: here the obstacles in it."""
        return self.detect(points, stamp_ns)

    def detect(self, points: Points, stamp_ns: int | None = None) -> Detections:
        """Find the obstacles in a cloud. Raises ValueError: the points have another shape.

        Args:
            points: (N, C ≥ 4) x, y, z, intensity, … in ``frame_id``; rows whose x, y, z are not finite are ignored.
            stamp_ns: stamp of the cloud; the detector only passes it on.
        """
        if points.ndim != 2 or points.shape[1] < 4:
            raise ValueError(f"got points of shape {points.shape}, expected (N, 4): x, y, z, intensity")
        cloud = self._steps.clean(points)
        found = self.found_in(self._steps.admit(cloud), self._steps.min_points(cloud), stamp_ns)
        return found.take(found.size_m[:, 2] >= self._steps.min_height_m(cloud))

    def admitted(self, points: Points) -> Points:
        """Return the points that are looked at: those that are numbers, unless a fault has it otherwise."""
        return self._steps.admit(self._steps.clean(points))

    @abstractmethod
    def found_in(self, cloud: Points, min_points: int, stamp_ns: int | None) -> Detections:
        """Return the obstacles in finite points, of at least so many points each."""

    @cached_property
    def _steps(self) -> Steps:
        honest = Steps(
            finite,
            lambda cloud: cloud,
            lambda cloud: self.min_points,
            lambda cloud: self.min_height_m,
            lambda found: found,
            lambda stamp_ns, now_ns: True,
            lambda elapsed_s: elapsed_s,
        )
        planted: tuple[Fault, ...] = self.faults
        return reduce(lambda steps, fault: fault.plant(steps), planted, honest)

    def watched(self, cloud: Points) -> Mask:
        """Return (N,) whether each point is of interest."""
        x, y = cloud[:, 0], cloud[:, 1]
        x_from, x_to, y_from, y_to = self.ego_box_m
        keep = inside(x, y, self.region_m) if self.use_region else np.hypot(x, y) <= self.max_range_m
        keep &= ~((x >= x_from) & (x <= x_to) & (y >= y_from) & (y <= y_to)) & (np.abs(cloud[:, 2]) < 100.0)
        return np.asarray(keep)


def finite(points: Points) -> Points:
    """Return the rows whose x, y, z are finite."""
    rows = np.isfinite(points[:, 0]) & np.isfinite(points[:, 1]) & np.isfinite(points[:, 2])
    return points if rows.all() else points.compress(rows, axis=0)


def inside(x: npt.NDArray[Any], y: npt.NDArray[Any], corners: tuple[tuple[float, float], ...]) -> Mask:
    """Return (N,) whether points lie in a simple polygon (even-odd rule over its edges)."""
    (x_low, y_low), (x_high, y_high) = np.min(corners, axis=0), np.max(corners, axis=0)
    result = (x >= x_low) & (x <= x_high) & (y >= y_low) & (y <= y_high)
    px, py = x[result].astype(np.float64), y[result].astype(np.float64)
    odd = np.zeros(len(px), dtype=bool)
    for (ax, ay), (bx, by) in zip(corners, (*corners[1:], corners[0]), strict=True):
        if ay != by:
            odd ^= ((ay > py) != (by > py)) & (px < ax + (py - ay) * ((bx - ax) / (by - ay)))
    result[result] = odd
    return np.asarray(result)


def millimetres(points: Points) -> Ints:
    """Return x, y, z of points (N, C) in whole millimetres (N, 3)."""
    return np.asarray(np.rint(points[:, :3].astype(np.float64) * 1000.0).astype(np.int64))


def in_order(xyz_mm: Ints) -> Ints:
    """Return points (N, 3) sorted by x, y, z; coordinates within ±1 km."""
    shifted = xyz_mm + _HALF
    key = np.sort((shifted[:, 0] << 42) | (shifted[:, 1] << 21) | shifted[:, 2])
    mask = (1 << 21) - 1
    return np.column_stack([key >> 42, (key >> 21) & mask, key & mask]) - _HALF
