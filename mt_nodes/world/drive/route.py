# SPDX-License-Identifier: Apache-2.0
"""The ego's planned way: along the centre of lanes, to its target or as far as they lead."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.world.drive.road_map import Lane, RoadMap
from mt_nodes.world.drive.scenario import Pose

#: Longest way without a target; published length behind the ego and ahead of it.
_LONGEST_M, _BEHIND_M, _AHEAD_M = 3000.0, 5.0, 120.0
_STEP_M = 1.0
#: A lane at an angle of one radian counts as this much farther away, to exclude lanes in other directions.
_PER_RADIAN_M = 5.0
#: No angle is larger, for any rounding.
_MOST_RAD = 3.2
#: A lane change counts as a detour of this length, begins so far along the lane, and takes this length.
_CHANGE_COSTS_M, _CHANGE_AT_M, _CHANGE_M = 30.0, 10.0, 30.0


class Route:
    """A polyline with a point every metre.

    Attributes:
        pose: (K, 3) x, y in metres and yaw in radians, in ``map``. limit_mps: (K,) of the lane there.
        lanes: names of its lanes, in order.
    """

    def __init__(self, road: RoadMap, start: Pose, target: Pose | None = None) -> None:
        """Find the shortest way over lanes; without a reachable target, follow the first successor of each lane.

        Raises ValueError: the map has no lane for vehicles.
        """
        first = lane_of(road, start)
        lanes = None if target is None else _shortest(road, first, lane_of(road, target))
        reached = lanes is not None
        lanes = lanes or list(_onward(road, first))
        self.lanes = tuple(lane.name for lane in lanes)
        points, limits = _joined(lanes)
        pose, limit = _resampled(points, limits)
        if reached and target is not None:
            end = _nearest(pose, target) + 1
            pose, limit = pose[: max(end, 2)], limit[: max(end, 2)]
        for one in road.limits:
            begin = _nearest(pose, one.pose)
            if np.hypot(pose[begin, 0] - one.pose.x_m, pose[begin, 1] - one.pose.y_m) <= _STEP_M:
                limit[begin:] = one.limit_mps
        self.pose, self.limit_mps = pose, limit

    def onward(self, pose: Pose) -> Floats:
        """Return poses (n, 3) from a place to the end, one per metre."""
        return self.pose[_nearest(self.pose, pose) :]

    def ahead(self, pose: Pose) -> tuple[Floats, Floats]:
        """Return poses (n, 3) and limits (n,) from a little behind a place to the published length ahead."""
        at = _nearest(self.pose, pose)
        part = slice(max(0, at - round(_BEHIND_M / _STEP_M)), at + round(_AHEAD_M / _STEP_M) + 1)
        return self.pose[part], self.limit_mps[part]


def lane_of(road: RoadMap, pose: Pose) -> Lane:
    """Return the nearest lane for vehicles that leads in a pose's direction.

    Raises ValueError: the map has no lane for vehicles.
    """

    def off(lane: Lane) -> float:
        nearest = lane.pose_at(lane.station_of(pose.x_m, pose.y_m)[0])
        return float(_off_m(np.hypot(nearest.x_m - pose.x_m, nearest.y_m - pose.y_m), nearest.yaw_rad - pose.yaw_rad))

    return min((lane for lane in road.lanes.values() if lane.on_road), key=off)


def _off_m(distance_m: Any, turn_rad: Any) -> Any:
    return distance_m + _PER_RADIAN_M * np.abs(np.angle(np.exp(1j * turn_rad)))


def _nearest(poses: Floats, pose: Pose) -> int:
    away = np.hypot(poses[:, 0] - pose.x_m, poses[:, 1] - pose.y_m)
    near = np.flatnonzero(away <= away.min() + _PER_RADIAN_M * _MOST_RAD)
    return int(near[np.argmin(_off_m(away[near], poses[near, 2] - pose.yaw_rad))])


def _onward(road: RoadMap, lane: Lane) -> Iterator[Lane]:
    """Yield a lane and its first successors, until the way is long enough or ends."""
    way_m = 0.0
    while True:
        yield lane
        way_m += lane.length_m
        if not lane.next or way_m > _LONGEST_M:
            return
        lane = road.lanes[lane.next[0]]


def _shortest(road: RoadMap, first: Lane, last: Lane) -> list[Lane] | None:
    """Return the shortest sequence of lanes from one to another (Dijkstra), None if there is none."""
    queue: list[tuple[float, list[str]]] = [(0.0, [first.name])]
    known: set[str] = set()
    while queue:
        cost_m, names = heapq.heappop(queue)
        lane = road.lanes[names[-1]]
        if lane.name == last.name:
            return [road.lanes[name] for name in names]
        if lane.name in known:
            continue
        known.add(lane.name)
        for name in lane.next:
            heapq.heappush(queue, (cost_m + lane.length_m, [*names, name]))
        for name in filter(None, (lane.left, lane.right)):
            heapq.heappush(queue, (cost_m + _CHANGE_COSTS_M, [*names, name]))
    return None


def _joined(lanes: list[Lane]) -> tuple[Floats, Floats]:
    """Return the points (K, 2) of successive lanes, and the limit (K,) at each; a lane change is a slanted line."""
    points, limits, begin_m = [], [], 0.0
    for lane, after in [*pairwise(lanes), (lanes[-1], None)]:
        changes = after is not None and after.name in (lane.left, lane.right)
        end_m = min(begin_m + _CHANGE_AT_M, lane.length_m) if changes else lane.length_m
        part = _between(lane, begin_m, end_m)
        points.append(part)
        limits.append(np.full(len(part), lane.limit_mps))
        begin_m = 0.0
        if changes and after is not None:
            along_m = after.station_of(*part[-1].tolist())[0]
            begin_m = min(along_m + _CHANGE_M, max(along_m, after.length_m - _STEP_M))
    return np.concatenate(points), np.concatenate(limits)


def _between(lane: Lane, begin_m: float, end_m: float) -> Floats:
    """Return the centre line (n, 2) between two stations."""
    inner = (lane.stations_m > begin_m) & (lane.stations_m < end_m)
    first, last = lane.pose_at(begin_m), lane.pose_at(end_m)
    return np.concatenate([[(first.x_m, first.y_m)], lane.line_m[inner], [(last.x_m, last.y_m)]])


def _resampled(points: Floats, limits: Floats) -> tuple[Floats, Floats]:
    """Return poses (n, 3) at even distances along a polyline, and the limits (n,) there."""
    # Of two lanes' points at one place the later stays: what follows has its own lane's limit.
    fresh = np.concatenate([np.linalg.norm(np.diff(points, axis=0), axis=1) > 1e-6, [True]])
    points, limits = points[fresh], limits[fresh]
    way = np.diff(points, axis=0)
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(way, axis=1))])
    at = np.arange(0.0, along[-1], _STEP_M)
    segment = np.clip(np.searchsorted(along, at, side="right") - 1, 0, len(way) - 1)
    xy = np.column_stack([np.interp(at, along, column) for column in points.T])
    yaw = np.arctan2(way[:, 1], way[:, 0])[segment]
    return np.column_stack([xy, yaw]), limits[segment]
