# SPDX-License-Identifier: Apache-2.0
"""How well a drive kept to its lane: the room between the vehicle's outline and the lane's edges, laps, deviation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mt_nodes.stacks.reference.way import LanePath
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.route import Route
from mt_nodes.world.drive.scenario import Pose, Scenario, Vehicle
from mt_nodes.world.drive.trace import Trace

Floats = npt.NDArray[np.float64]
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


@dataclass(frozen=True)
class LapResult:
    """What came of one drive.

    Attributes:
        ended: why. driven_m: how far. lap_s: until it was once around, None where it was not.
        room_m: least distance of the outline from the lane's edges until then, negative outside; room_at_m: how far it
            had driven there. tight_m: the room that one of twenty instants has less of.
        aside_mean_m, aside_max_m: distance from the line of another drive.
    """

    ended: str
    driven_m: float
    lap_s: float | None
    room_m: float
    room_at_m: float
    tight_m: float
    aside_mean_m: float
    aside_max_m: float
    slowest_mps: float
    fastest_mps: float

    @property
    def in_lane(self) -> bool:
        """Whether it went once around and never left its lane."""
        return self.lap_s is not None and self.room_m >= 0.0


def lap_result(trace: Trace, keeping: LaneKeeping, line_m: Floats) -> LapResult:
    """Return the figures of a drive until it had gone once around, or of all of it.

    ``line_m``: (K, 2) places of another drive on the same way, whose line this one's is compared with.
    """
    way_m = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(trace.ego[:, :2], axis=0), axis=1))])
    around = _around(trace, keeping)
    last = len(trace) if around is None else around + 1
    rooms = keeping.rooms_m(trace.ego[:last])
    aside = _apart_m(trace.ego[:last, :2], line_m)
    tightest, speed = int(rooms.argmin()), trace.column("speed_mps")[:last]
    return LapResult(
        trace.ended,
        float(way_m[last - 1]),
        None if around is None else float(trace.time_s[around]),
        *(float(rooms[tightest]), float(way_m[tightest]), float(np.quantile(rooms, 0.05))),
        *(float(aside.mean()), float(aside.max())),
        *(float(speed.min()), float(speed.max())),
    )


def _around(trace: Trace, keeping: LaneKeeping) -> int | None:
    """Return the first row at which the ego has gone once around by the stations of its way, None for none."""
    if not np.isfinite(keeping.lap_m):
        return None
    poses = keeping.route.pose[: int(keeping.lap_m) + 1, :2]
    station, _ = LanePath(poses, np.full(len(poses), np.inf)).place(trace.ego[:, :2])
    rows = np.flatnonzero(_unwrapped(station, keeping.lap_m) >= keeping.lap_m)
    return int(rows[0]) if len(rows) else None


def _unwrapped(station_m: Floats, lap_m: float) -> Floats:
    """Return how far one came since the first of places whose stations begin anew each lap."""
    way = np.unwrap(station_m, period=lap_m)
    return np.asarray(way - way[0])


def _apart_m(places_m: Floats, line_m: Floats) -> Floats:
    """Return (T,) how far places (T, 2) are from a line (K, 2)."""
    fresh = np.concatenate([[True], np.linalg.norm(np.diff(line_m, axis=0), axis=1) > 1e-6])
    _, left = LanePath(line_m[fresh], np.full(int(fresh.sum()), np.inf)).place(places_m)
    return np.abs(left)
