# SPDX-License-Identifier: Apache-2.0
"""How well a drive kept to its lane: the room between the vehicle's outline and the lane's edges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.stacks.reference.way import LanePath
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.route import Route
from mt_nodes.world.drive.scenario import Pose, Scenario, Vehicle

#: Points of the outline lie so near to each other: in the tightest bends that leaves less than a millimetre unseen.
_OUTLINE_M = 0.25
#: So much of the way, in points of a metre, is looked at around a vehicle.
_NEAR = 40


@dataclass(frozen=True, eq=False)
class LaneKeeping:
    """Measures drives along a route, whose lanes are the ones to keep to."""

    road: RoadMap
    route: Route
    vehicle: Vehicle

    @classmethod
    def of(cls, scenario: Scenario, road: RoadMap) -> LaneKeeping:
        """Return the one for the ego of a scenario."""
        return cls(road, Route(road, scenario.ego.start, scenario.ego.target), scenario.ego.vehicle)

    @cached_property
    def lap_m(self) -> float:
        """Length of the lanes until they repeat; infinite where they do not."""
        first, *others = self.route.lanes
        if first not in others:
            return float("inf")
        return sum(self.road.lanes[name].length_m for name in (first, *others[: others.index(first)]))

    @cached_property
    def _half_m(self) -> float:
        return min(self.road.lanes[name].width_m for name in self.route.lanes) / 2.0

    @cached_property
    def _outline(self) -> Floats:
        """(N, 2) points of both sides of the vehicle, corners among them, in its frame."""
        car = self.vehicle
        along = np.linspace(-car.rear_m, car.front_m, 1 + round((car.front_m + car.rear_m) / _OUTLINE_M))
        return np.concatenate([np.column_stack([along, np.full(len(along), y)]) for y in self._sides])

    @property
    def _sides(self) -> tuple[float, float]:
        return -self.vehicle.width_m / 2.0, self.vehicle.width_m / 2.0

    def room_m(self, x_m: float, y_m: float, yaw_rad: float) -> float:
        """Return how far inside its lane the nearest point of the outline is, negative where one is outside."""
        pose, _ = self.route.ahead(Pose(x_m, y_m, yaw_rad))
        way = LanePath(pose[:_NEAR, :2], np.full(len(pose[:_NEAR]), np.inf))
        c, s = np.cos(yaw_rad), np.sin(yaw_rad)
        _, left = way.place(self._outline @ np.array([[c, s], [-s, c]]) + (x_m, y_m))
        return float(self._half_m - np.abs(left).max())

    def rooms_m(self, ego: Floats) -> Floats:
        """Return (T,) :meth:`room_m` of rows (T, 3…) x, y, yaw."""
        return np.array([self.room_m(*row) for row in ego[:, :3].tolist()])
