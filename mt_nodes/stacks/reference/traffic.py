# SPDX-License-Identifier: Apache-2.0
"""Prediction by constant velocity: who will be where along the path, and with whom the vehicle would collide."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.data.messages import Odometry
from mt_nodes.data.outputs import Detections
from mt_nodes.data.rotations import seen_from
from mt_nodes.stacks.reference.car_following import Lead
from mt_nodes.stacks.reference.way import LanePath

STEP_S = 0.2
#: Harder braking than this is for emergencies.
HARD_MPS2 = 4.0
#: Who moves slower than this stands.
STANDS_MPS = 0.2
#: Who is at most so far beside the way, and moves across it by at most this share of along it, follows its bends.
LATERAL_RANGE_M, ALONG_SHARE = 8.0, 0.4


@dataclass(frozen=True)
class EgoPose:
    """The vehicle's pose in the frame of the route, and its motion."""

    x_m: float
    y_m: float
    yaw_rad: float
    speed_mps: float
    yaw_rate_radps: float

    @property
    def known(self) -> bool:
        """Whether all values are finite."""
        return all(map(isfinite, (self.x_m, self.y_m, self.yaw_rad, self.speed_mps, self.yaw_rate_radps)))

    def later(self, seconds: float) -> EgoPose:
        """Return the pose after a time at constant speed and yaw rate."""
        turn, way = self.yaw_rate_radps * seconds, self.speed_mps * seconds
        chord, heading = way * float(np.sinc(turn / 2.0 / np.pi)), self.yaw_rad + turn / 2.0
        x, y = self.x_m + chord * float(np.cos(heading)), self.y_m + chord * float(np.sin(heading))
        return EgoPose(x, y, self.yaw_rad + turn, self.speed_mps, self.yaw_rate_radps)

    def seen_from(self, xy_m: Floats) -> Floats:
        """Return places (N, 2) of the route's frame in the vehicle's frame."""
        return seen_from(self.x_m, self.y_m, self.yaw_rad, xy_m)

    def turned(self, xy: Floats) -> Floats:
        """Return vectors (N, 2) of the vehicle's frame in the axes of the route's frame."""
        c, s = np.cos(self.yaw_rad), np.sin(self.yaw_rad)
        return np.column_stack([c * xy[:, 0] - s * xy[:, 1], s * xy[:, 0] + c * xy[:, 1]])


def pose_of(odometry: Odometry) -> EgoPose:
    """Return the pose and motion of odometry."""
    return EgoPose(odometry.x_m, odometry.y_m, odometry.yaw_rad, odometry.speed_mps, odometry.yaw_rate_radps)


@dataclass(frozen=True, eq=False)
class Traffic:
    """All objects along the path, now (column 0) and later, one column every :data:`STEP_S`.

    Attributes:
        near_m, far_m, right_m, left_m: (N, T) extents along the way and to its left. along_mps: (N,) speed along it.
    """

    near_m: Floats
    far_m: Floats
    right_m: Floats
    left_m: Floats
    along_mps: Floats

    @classmethod
    def predicted(
        cls, objects: Detections, ego: EgoPose, way: LanePath, horizon_s: float, drifts_mps: float, full: bool = True
    ) -> Traffic:
        """Predict objects in the vehicle's frame, each at its constant velocity over the ground.

        Who moves along the way keeps to its bends, and beside it where he drifts aside by less than ``drifts_mps``; who
        moves across it, or stands, goes straight on. Boxes keep their size; a velocity that is not known is none. Boxes
        that are not ``full`` count as the ellipses in them: around what is seen of two sides of a vehicle at an angle
        they have an empty corner.
        """
        times = np.arange(0.0, horizon_s + STEP_S / 2.0, STEP_S)
        xy = ego.turned(objects.center_m[:, :2]) + np.array([ego.x_m, ego.y_m])
        known = np.asarray(np.isfinite(objects.velocity_mps[:, :2]).all(axis=1))
        velocity = ego.turned(np.where(known[:, None], objects.velocity_mps[:, :2], 0.0))
        velocity[np.hypot(*velocity.T) < STANDS_MPS] = 0.0
        station, left = way.place(xy)
        heading = way.heading_at(station)
        c, s = np.cos(heading), np.sin(heading)
        along, across = c * velocity[:, 0] + s * velocity[:, 1], c * velocity[:, 1] - s * velocity[:, 0]
        follows = (np.abs(across) < ALONG_SHARE * np.abs(along)) & (np.abs(left) < LATERAL_RANGE_M)
        drift = np.where(follows & (np.abs(across) < drifts_mps), 0.0, across)
        stations, lefts = station[:, None] + along[:, None] * times, left[:, None] + drift[:, None] * times
        crosses = np.flatnonzero(~follows & velocity.any(axis=1))
        if len(crosses):
            places = xy[crosses, None] + velocity[crosses, None] * times[:, None]
            moved = way.place(places.reshape(-1, 2))
            stations[crosses], lefts[crosses] = (column.reshape(len(crosses), -1) for column in moved)
        turn = ego.yaw_rad + objects.yaw_rad - heading
        half = np.abs(objects.size_m[:, :2]) / 2.0
        c, s = np.abs(np.cos(turn)), np.abs(np.sin(turn))
        reach = np.add if full else np.hypot
        ahead, aside = (reach(a * half[:, 0], b * half[:, 1])[:, None] for a, b in ((c, s), (s, c)))
        return cls(stations - ahead, stations + ahead, lefts - aside, lefts + aside, along)

    def __len__(self) -> int:
        return len(self.along_mps)

    @property
    def times_s(self) -> Floats:
        """Times (T,) of the columns."""
        return np.arange(self.near_m.shape[1], dtype=np.float64) * STEP_S


@dataclass(frozen=True)
class Conflict:
    """Somebody who is or will be in the path: the lead to follow or stop for, and the time until then."""

    lead: Lead
    after_s: float


@dataclass(frozen=True)
class Swing:
    """A lateral move to another offset: full acceleration to one side, then to the other.

    From a speed u to one of w and on to none, by a, is a way of (w² - u²) / (2 a) + w² / (2 a).
    ``from_m``, ``to_m``: left of the middle. ``across_mps2``: acceleration. ``across_mps``: speed to the left when it
    begins. ``late_s``: until it begins.
    """

    from_m: float
    to_m: float
    across_mps2: float
    across_mps: float = 0.0
    late_s: float = 0.0

    @property
    def _begins(self) -> tuple[float, float, float]:
        """Side, initial speed to that side, and highest speed."""
        side = 1.0 if self.to_m >= self.from_m else -1.0
        first = side * self.across_mps
        highest = sqrt(self.across_mps2 * abs(self.to_m - self.from_m) + first**2 / 2.0)
        return side, first, max(highest, first)

    @property
    def lasts_s(self) -> float:
        """Duration of the move."""
        _, first, highest = self._begins
        return self.late_s + (2.0 * highest - first) / self.across_mps2

    def at(self, times_s: Floats) -> tuple[Floats, Floats]:
        """Return the offset to the left of the middle at times, and the speed to the left."""
        side, first, highest = self._begins
        rises_s = (highest - first) / self.across_mps2
        since = np.clip(times_s - self.late_s, 0.0, None)
        rising, falling = np.minimum(since, rises_s), np.clip(since - rises_s, 0.0, highest / self.across_mps2)
        speed = first + self.across_mps2 * (rising - falling)
        way = rising * (first + self.across_mps2 * rising / 2.0) + falling * (
            highest - self.across_mps2 * falling / 2.0
        )
        return self.from_m + side * way, side * speed


@dataclass(frozen=True)
class EgoBody:
    """The vehicle: stations of its bumpers, lateral offset of its middle, motion and width.

    ``across_mps`` is how fast it goes to the left of the way.
    """

    front_m: float
    rear_m: float
    left_m: float
    speed_mps: float
    acceleration_mps2: float
    width_m: float
    across_mps: float = 0.0

    def conflicts(
        self, traffic: Traffic, aim_m: float, settles_m: float, spare_m: float, yields_s: float
    ) -> list[Conflict]:
        """Return everybody with whom the vehicle would collide, without braking, on the path at offset ``aim_m``.

        Args:
            settles_m: distance over which the vehicle comes from where it is to there.
            spare_m: kept free to either side. yields_s: who comes so much later than the vehicle has left lets it go
                first; for everybody else it waits. Before whom it could only stop hard, it goes on for a quarter of
                that: to brake then would be to stop in his way.
        """
        middle = (traffic.near_m + traffic.far_m) / 2.0
        share = np.clip(1.0 - (middle - self.front_m) / settles_m, 0.0, 1.0)
        planned = aim_m + (self.left_m - aim_m) * share
        half = self.width_m / 2.0 + spare_m
        inside = (traffic.right_m < planned + half) & (traffic.left_m > planned - half)
        stops_m = self.speed_mps * STEP_S + self.speed_mps**2 / (2.0 * HARD_MPS2)
        spared_s = np.where(traffic.near_m - self.front_m > stops_m, yields_s, yields_s / 4.0)
        rear_when_past_m = self.rear_m + self._driven_m(traffic.times_s - spared_s)
        inside &= (traffic.far_m >= rear_when_past_m) & (traffic.far_m[:, :1] > self.front_m)
        found = []
        for row in np.flatnonzero(inside.any(axis=1)).tolist():
            column = int(np.argmax(inside[row]))
            after, along = column * STEP_S, float(traffic.along_mps[row])
            gap = float(traffic.near_m[row, column]) - max(along, 0.0) * after - self.front_m
            found.append(Conflict(Lead(max(gap, 0.0), self.speed_mps - along, row), after))
        return found

    def _driven_m(self, seconds: Floats) -> Floats:
        """Return the distance driven at times, at constant speed or decelerating to a standstill."""
        slows = max(-self.acceleration_mps2, 1e-6)
        driving = np.minimum(seconds, self.speed_mps / slows)
        return np.asarray(driving * (self.speed_mps - slows * np.maximum(driving, 0.0) / 2.0))

    def rows_hit(
        self, traffic: Traffic, aim_m: float, spare_m: float, until_s: float, slowing_mps2: float = 0.0
    ) -> tuple[int, ...]:
        """Return the rows of everybody that the vehicle hits at offset ``aim_m``, slowing down, until a time."""
        return self._touched(traffic, aim_m, aim_m, self._slowed_m(traffic, slowing_mps2), spare_m, until_s)

    def rows_hit_across(
        self, traffic: Traffic, swing: Swing, slowing_mps2: float, spare_m: float, until_s: float
    ) -> tuple[int, ...]:
        """Return the rows of everybody that the vehicle hits during a lateral move, slowing down, until a time.

        The front bumper goes ahead of the rear axle by the angle at which one drives then.
        """
        driven = self._slowed_m(traffic, slowing_mps2)
        aside, across_mps = swing.at(traffic.times_s)
        slope = np.clip(across_mps / max(self.speed_mps, 1.0), -1.0, 1.0)
        bow = aside + (self.front_m - self.rear_m) * slope
        return self._touched(traffic, np.minimum(aside, bow), np.maximum(aside, bow), driven, spare_m, until_s)

    def touched(self, traffic: Traffic) -> bool:
        """Tell whether somebody overlaps with the vehicle now."""
        return bool(self._touched(traffic, self.left_m, self.left_m, np.zeros_like(traffic.times_s), 0.0, -STEP_S))

    def _slowed_m(self, traffic: Traffic, slowing_mps2: float) -> Floats:
        driving = np.minimum(traffic.times_s, self.speed_mps / max(slowing_mps2, 1e-6))
        return np.asarray(driving * (self.speed_mps - slowing_mps2 * driving / 2.0))

    def _touched(
        self, traffic: Traffic, right: Any, left: Any, driven_m: Floats, spare_m: float, until_s: float
    ) -> tuple[int, ...]:
        half = self.width_m / 2.0 + spare_m
        overlapping = (traffic.right_m < left + half) & (traffic.left_m > right - half)
        # Nobody slips through between two columns.
        step_m = np.abs(self.speed_mps - traffic.along_mps) * STEP_S
        slips = np.maximum(step_m - (self.front_m - self.rear_m), 0.0)[:, None] / 2.0
        hit = overlapping & (traffic.near_m < self.front_m + driven_m + slips)
        hit &= traffic.far_m > self.rear_m + driven_m - slips
        return tuple(np.flatnonzero(hit[:, traffic.times_s <= until_s + STEP_S].any(axis=1)).tolist())
