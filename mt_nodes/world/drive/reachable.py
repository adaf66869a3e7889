# SPDX-License-Identifier: Apache-2.0
"""Proof that a contact cannot be avoided: even an idealised, more agile car would have no free place left.

The rear axle is a point mass that tyres accelerate in any direction at once, by at most a = mu g, from the response of
the first actuator on. Its possible places after t grow by a t dt in each dt around the initial velocity: a disc of
radius a t^2 / 2 in all. (States from which every way leads into a collision: S. LaValle, Planning Algorithms, 2006,
section 14.1.3.) Places at which the car surely touches somebody are removed; the rest contains everything that the real
car can still do, and more. If nothing is left, the contact is proven unavoidable.

*Surely*: the heading has changed by at most Psi, the integral of the smaller of a / v, with v the least possible speed,
and v tan(steering) / L, with the wheels turning at their fastest from straight ahead. The intersection of all
rectangles rotated by up to Psi around the rear axle is covered at any heading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import asin, cos, pi, sin, tan

import numpy as np
import shapely

from mt_nodes.base.arrays import Floats
from mt_nodes.world.drive import shapes
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.scenario import Vehicle
from mt_nodes.world.drive.trace import EgoState

#: Factor over the tyres' limit: steps of the plant are not infinitely short.
_MORE = 1.01
_SEGMENTS = 8
#: For a smaller radius around a point shapely makes no polygon at all.
_NONE_M = 1e-9
#: Factor by which a polygon with so many corners must be larger to contain the circle.
_AROUND = 1.0 / cos(pi / (4.0 * _SEGMENTS))


@dataclass(frozen=True, eq=False)
class Moving:
    """A body with known motion.

    Attributes:
        corners_m: (K, 2) convex footprint in its own frame. rows: (T, 3) or more columns: x, y and yaw at each instant.
    """

    corners_m: Floats
    rows: Floats

    def corners_at(self, k: int) -> Floats:
        """Return (K + 1, 2) its corners at an instant, the first repeated at the end."""
        return np.asarray(shapely.get_coordinates(shapes.placed(self.corners_m, *self.rows[k, :3])))


class Reach:
    """Possible places of a car's rear axle over time.

    ``places``: it is in one of these, or has touched somebody. time_s: now. psi_rad: largest change of its heading.
    """

    def __init__(self, vehicle: Vehicle, start: EgoState, friction_mps2: float, begins_s: float) -> None:
        """Begin at time 0 with wheels straight ahead. ``begins_s``: it rolls straight on until then."""
        self.places: shapely.Geometry = shapely.Point(start.x_m, start.y_m)
        self.time_s, self.psi_rad = 0.0, 0.0
        self._vehicle, self._start, self._begins_s = vehicle, start, begins_s
        self._most_mps2 = _MORE * friction_mps2
        self.ahead = np.array([cos(start.yaw_rad), sin(start.yaw_rad)])

    def spread(self, step_s: float) -> None:
        """Advance the time."""
        before = max(self.time_s - self._begins_s, 0.0)
        self.time_s += step_s
        since = max(self.time_s - self._begins_s, 0.0)
        onward = self._start.speed_mps * step_s * self.ahead
        self.places = shapely.transform(self.places, lambda xy: xy + onward)
        grown = self._most_mps2 * (since**2 - before**2) / 2.0
        if grown > _NONE_M:
            self.places = self.places.buffer(grown * _AROUND, quad_segs=_SEGMENTS)
        self.psi_rad += self._turning(since) * (since - before)

    def _turning(self, since_s: float) -> float:
        """Return the largest possible yaw rate by a time."""
        car, gained = self._vehicle, self._most_mps2 * since_s
        wheels = min(car.steering_rad, car.steering_rate_radps * since_s)
        by_wheels = (self._start.speed_mps + gained) * tan(wheels) / car.wheelbase_m
        slowest = self._start.speed_mps - gained
        return min(by_wheels, self._most_mps2 / slowest) if slowest > 0.0 else by_wheels

    def keep_off(self, corners_m: Floats) -> None:
        """Remove the places at which the car surely touches a convex body with these corners (K, 2)."""
        low, high = np.reshape(self.places.bounds, (2, 2)) + np.array([[-1.0], [1.0]]) * self._vehicle.front_m
        if (corners_m.max(axis=0) < low).any() or (corners_m.min(axis=0) > high).any():
            return
        turn = np.array([self.ahead, (-self.ahead[1], self.ahead[0])])
        covered = covered_always(self._vehicle, self.psi_rad) @ turn
        touched = shapely.MultiPoint((corners_m[:, None] - covered).reshape(-1, 2)).convex_hull
        if touched.intersects(self.places):
            self.places = self.places.difference(touched)

    def clip_to(self, ground: shapely.Geometry) -> None:
        """Remove the places at which the centre of the car is surely outside of an area."""
        forward = (self._vehicle.front_m - self._vehicle.rear_m) / 2.0
        shifted = shapely.transform(ground, lambda xy: xy - forward * self.ahead)
        off = 2.0 * abs(forward) * sin(min(self.psi_rad, pi) / 2.0)
        if not shapely.contains(shifted, self.places):
            self.places = self.places.intersection(shifted.buffer(off * _AROUND + 1e-6, quad_segs=_SEGMENTS))


def covered_always(vehicle: Vehicle, psi_rad: float) -> Floats:
    """Return (K, 2) corners, around the rear axle and x ahead, of the area covered at any heading within psi of 0.

    It is the hull of the largest disc around the axle, and of the points at the border of the rectangle's intersection
    at both headings, no farther than its front. All rectangles are convex and contain these, so they contain the hull.
    """
    half, front = vehicle.width_m / 2.0, vehicle.front_m
    radius = min(half, vehicle.rear_m, front)
    angles = 2.0 * pi * np.arange(32) / 32.0
    disc = radius * np.column_stack([np.cos(angles), np.sin(angles)])
    if psi_rad >= pi / 2.0 or front <= half:
        return disc
    # The side of a rectangle rotated by psi, as far as it is nearest to the axis: from the disc of the half width to
    # the axis or the circle of the front.
    begin = half * np.array([sin(psi_rad), cos(psi_rad)])
    corner = asin(half / front) - psi_rad
    end = front * np.array([cos(corner), sin(corner)]) if corner > 0.0 else np.array([half / sin(psi_rad), 0.0])
    tip = np.array([(front, 0.0)]) if corner > 0.0 else np.empty((0, 2))
    sides = np.array([begin, end])
    return np.concatenate([disc, sides, sides * (1.0, -1.0), tip])


def nowhere_left_s(
    vehicle: Vehicle,
    start: EgoState,
    friction_mps2: float,
    begins_s: float,
    bodies: Sequence[Moving],
    step_s: float,
    road: RoadMap | None = None,
    whole: bool = False,
) -> float | None:
    """Return when even the idealised car has touched somebody (or left the road), in s; None if it need not.

    Args:
        begins_s: rolls straight on until then. bodies: all with the same instants, every ``step_s`` from time 0.
        road: None: it may be left. whole: all of the car must stay on it, not only its centre.
    """
    reach = Reach(vehicle, start, friction_mps2, begins_s)
    # Beyond it stands, or would reverse.
    last_s = begins_s + start.speed_mps / friction_mps2
    size = start.speed_mps * last_s + vehicle.front_m + 10.0
    around = shapely.box(start.x_m - size, start.y_m - size, start.x_m + size, start.y_m + size)
    ground = road.carriageway.intersection(around) if road else None
    # At any heading the car covers a disc around its rear axle.
    disc_m = min(vehicle.width_m / 2.0, vehicle.rear_m, vehicle.front_m) if whole else 0.0
    inner = ground.buffer(-disc_m, quad_segs=_SEGMENTS) if ground else None
    instants = min((len(body.rows) for body in bodies), default=0)
    for k in range(1, min(instants, int(last_s / step_s) + 1)):
        reach.spread(step_s)
        for body in bodies:
            reach.keep_off(body.corners_at(k))
        if ground is not None:
            reach.clip_to(ground)
            reach.places = reach.places.intersection(inner) if whole else reach.places
        if reach.places.is_empty:
            return reach.time_s
    return None
