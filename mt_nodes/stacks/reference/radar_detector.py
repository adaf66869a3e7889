# SPDX-License-Identifier: Apache-2.0
"""A radar obstacle detector: own motion from what stands, region filter, clusters of moving and standing detections.

The own motion follows D. Kellner et al., Instantaneous Ego-Motion Estimation using Doppler Radar, ITSC 2013.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference import cluster_boxes, clustering
from mt_nodes.stacks.reference.faults.base import named_faults
from mt_nodes.stacks.reference.faults.radar_base import RadarFault, RadarPoints, RadarSteps, Velocity
from mt_nodes.stacks.reference.lidar_detector import inside

#: Width of the window in which most estimates of the own speed lie, in m/s; cosine of the largest azimuth that is used.
_WINDOW_MPS, _LEAST_COSINE = 0.3, 0.3
#: Heights by class: a radar of two dimensions measures none.
_HEIGHT_M = {"pedestrian": 1.7, "car": 1.5, "unknown": 1.0}
#: Detections are sorted by millimetres, so that their order cannot matter.
_MM = 1000.0


@dataclass(frozen=True, eq=False)
class RadarDetector:
    """Finds obstacles in one radar message; it has no memory.

    Boxes are in ``frame_id``; their velocity is the radial part, along the ray, 0 for what stands.
    """

    frame_id: str = param("base_link", help="frame of the detections given: on the road, x forward, y left, z up")
    region_m: tuple[tuple[float, float], ...] = param(
        ((0.0, -10.0), (40.0, -10.0), (40.0, 10.0), (0.0, 10.0)), unit="m", help="corners (x, y) of what is watched"
    )
    moving_mps: float = param(0.5, low=0.1, high=5.0, unit="m/s", help="faster ones over the ground move")
    tolerance_m: float = param(1.6, low=0.1, high=5.0, unit="m", help="detections this near belong together")
    min_points: int = param(2, low=2, high=100, help="a cluster with fewer detections is noise")
    max_size_m: tuple[float, float] = param((15.0, 5.0), low=0.1, unit="m", help="a larger cluster is structure")
    faults: tuple[Any, ...] = param(
        (),
        convert=lambda value, where: named_faults(value, where, "radar"),
        help="names of faults to plant, or {name: {parameter: value}}",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "faults", named_faults(self.faults, "faults", "radar"))

    def __call__(self, radar: RadarPoints, stamp_ns: int | None = None) -> Detections:
        """Return the obstacles. Raises ValueError: the detections have another shape.

        ``radar``: (N, 6) x, y, z, range rate, strength, azimuth in ``frame_id``. ``stamp_ns``: stamp of the message,
        which is passed on.
        """
        if radar.ndim != 2 or radar.shape[1] != 6:
            raise ValueError(f"got detections of shape {radar.shape}, expected (N, 6): x y z rate strength azimuth")
        steps = self._steps
        known = radar[np.isfinite(radar).all(axis=1)]
        speed = steps.ground_speed(known, steps.own_velocity(known))
        admitted = steps.admit(np.column_stack([known, speed]))
        watched = admitted[inside(admitted[:, 0], admitted[:, 1], self.region_m)].astype(np.float64)
        moves = np.abs(watched[:, 6]) > self.moving_mps
        parts = [self._clusters(watched[rows], stamp_ns) for rows in (moves, ~moves)]
        return steps.report(joined_detections(*parts))

    def _clusters(self, points: Floats, stamp_ns: int | None) -> Detections:
        """Return the clusters of detections (n, 7), the last column their speed over the ground."""
        points = points[np.lexsort(np.rint(points[:, 1::-1] * _MM).T)]
        xy_mm = np.rint(points[:, :2] * _MM).astype(np.int64)
        number = clustering.cluster(xy_mm, 100, round(self.tolerance_m * _MM), 1)
        groups = cluster_boxes.grouped(number, self.min_points)
        if not len(groups.number):
            return Detections.none(self.frame_id, stamp_ns)
        rows = points[groups.rows]
        centre, extent, yaw = cluster_boxes.rectangles(xy_mm[groups.rows] / _MM, groups.member)
        size = np.maximum(extent, 0.5)
        small = size[:, 0] <= 1.2
        fits = np.asarray((size <= self.max_size_m).all(axis=1))
        label = np.where(small, "pedestrian", np.where(size[:, 0] <= 12.0, "car", "unknown"))
        height = np.array([_HEIGHT_M[name] for name in label.tolist()])
        speed = np.add.reduceat(rows[:, 6], groups.start) / groups.count
        ray = np.add.reduceat(np.column_stack([np.cos(rows[:, 5]), np.sin(rows[:, 5])]), groups.start)
        ray /= np.maximum(np.linalg.norm(ray, axis=1, keepdims=True), 1e-9)
        speed = np.where(np.abs(speed) > self.moving_mps, speed, 0.0)
        found = Detections.make(
            self.frame_id,
            stamp_ns,
            np.column_stack([centre, height / 2.0]),
            np.column_stack([size, height]),
            yaw,
            label.tolist(),
            groups.count / (groups.count + 1.0),
            velocity_mps=np.column_stack([ray * speed[:, None], np.zeros(len(speed))]),
        )
        return found.take(fits)

    @cached_property
    def _steps(self) -> RadarSteps:
        honest = RadarSteps(lambda points: points, own_velocity, ground_speed, lambda found: found)
        planted: tuple[RadarFault, ...] = self.faults
        return reduce(lambda steps, fault: fault.plant(steps), planted, honest)


def own_velocity(radar: RadarPoints) -> Velocity:
    """Return the velocity (2,) of the sensor over the ground by the speed that most detections agree on.

    The detections within a window around it, which stand, give both components.
    """
    rays = _rays(radar)
    usable = rays[:, 0] >= _LEAST_COSINE
    speeds = np.sort(-radar[usable, 3] / rays[usable, 0])
    if not len(speeds):
        return np.zeros(2)
    inside_window = np.searchsorted(speeds, speeds + _WINDOW_MPS, side="right") - np.arange(len(speeds))
    first = int(inside_window.argmax())
    speed = float(np.median(speeds[first : first + int(inside_window[first])]))
    standing = np.abs(radar[:, 3] + speed * rays[:, 0]) <= _WINDOW_MPS
    if standing.sum() < 3:
        return np.array([speed, 0.0])
    return np.asarray(np.linalg.lstsq(rays[standing], -radar[standing, 3].astype(np.float64), rcond=None)[0])


def ground_speed(radar: RadarPoints, own_mps: Velocity) -> Floats:
    """Return the speeds (N,) over the ground along the rays, positive for what goes away."""
    return np.asarray(radar[:, 3] + _rays(radar) @ own_mps, dtype=np.float64)


def _rays(radar: RadarPoints) -> Floats:
    azimuth = radar[:, 5].astype(np.float64)
    return np.column_stack([np.cos(azimuth), np.sin(azimuth)])


def joined_detections(one: Detections, other: Detections) -> Detections:
    """Return the rows of two outputs, in the order of their places."""
    columns = ("center_m", "size_m", "yaw_rad", "label", "score", "track_id", "velocity_mps", "covariance", "traits")
    both = {name: np.concatenate([getattr(one, name), getattr(other, name)]) for name in columns}
    whole = Detections(one.frame_id, one.stamp_ns, **both)
    return whole.take(np.lexsort(whole.center_m[:, 1::-1].T))
