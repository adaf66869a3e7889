# SPDX-License-Identifier: Apache-2.0
"""Places and headings of a script on a map, and ways of vehicles between them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import shapely

from mt_nodes.base.errors import suggest
from mt_nodes.world.drive.road_map import Lane, RoadMap
from mt_nodes.world.drive.route import Route
from mt_nodes.world.drive.scenario import Pose
from mt_nodes.world.scenarios.language.problems import Problem, Span, ValueRefusal
from mt_nodes.world.scenarios.language.values import Ego, Heading, LanePlace, Participant, State

CROSSING_M = 3.0
"""Who stands so near to a crossing crosses there."""
_ALIKE_RAD = math.pi / 4
_SMOOTH_M = 0.05
#: Distance along a lane per metre of lateral offset when a vehicle joins the lane.
_JOIN = 8.0


@dataclass
class Places:
    """Places on one map, with the ego of one scenario."""

    road: RoadMap
    ego: Ego
    _poses: dict[str, Pose] = field(default_factory=dict)

    def ego_pose(self) -> Pose:
        """Return the ego's start pose."""
        if "ego" not in self._poses:
            self._poses["ego"] = self.pose(self.ego.start, self.ego.at, "AV")
        return self._poses["ego"]

    def pose(self, state: State, at: Span, maker: str) -> Pose:
        """Return the pose of a state.

        ``at``: its place in the script. ``maker``: constructor of its owner.
        Raises Refused: the map has no such lane, or the lane is not as long.
        """
        x, y = self.point(state, at, maker)
        return Pose(x, y, self._yaw(state, x, y, at, maker))

    def point(self, state: State, at: Span, maker: str = "") -> tuple[float, float]:
        """Return x and y of a state's position."""
        place = state.place
        if isinstance(place, LanePlace):
            pose = self._on_lane(place)
            return pose.x_m, pose.y_m
        if place.frame == "ENU":
            return place.x_m, place.y_m
        if maker == "AV":
            raise ValueRefusal(Problem(at, "the ego's start in its own frame, IMU", "ENU or a place on a lane"))
        ego = self.ego_pose()
        c, s = math.cos(ego.yaw_rad), math.sin(ego.yaw_rad)
        return ego.x_m + c * place.x_m - s * place.y_m, ego.y_m + s * place.x_m + c * place.y_m

    def _on_lane(self, place: LanePlace) -> Pose:
        lane = self.road.lanes.get(place.lane)
        if lane is None:
            hint = suggest(place.lane, self.road.lanes)
            raise ValueRefusal(Problem(place.at, f"the lane '{place.lane}'", f"a lane of map '{self.road.name}'", hint))
        if not 0.0 <= place.station_m <= lane.length_m:
            expected = f"0 to {lane.length_m:.1f} m, the length of '{place.lane}'"
            raise ValueRefusal(Problem(place.at, f"{place.station_m:g} m along a lane", expected))
        return lane.pose_at(place.station_m)

    def _yaw(self, state: State, x: float, y: float, at: Span, maker: str) -> float:
        heading = state.heading or Heading(0.0)
        reference = heading.reference
        if reference == "EAST":
            return heading.rad
        if reference == "EGO":
            if maker == "AV":
                raise ValueRefusal(Problem(at, "the ego's heading related to itself", "to something else"))
            return self.ego_pose().yaw_rad + heading.rad
        if isinstance(reference, LanePlace):
            return self._on_lane(reference).yaw_rad + heading.rad
        if isinstance(reference, Ego | Participant):
            owner = "AV" if isinstance(reference, Ego) else reference.maker
            return self.pose(reference.start, reference.at, owner).yaw_rad + heading.rad
        if state.heading is None and maker in ("Pedestrian", "Person"):
            across = self._across(x, y)
            if across is not None:
                return across
        return self._lane_yaw(state, x, y, maker) + heading.rad

    def _lane_yaw(self, state: State, x: float, y: float, maker: str) -> float:
        if isinstance(state.place, LanePlace):
            return self._on_lane(state.place).yaw_rad
        lane = self._lane(x, y, on_road_only=maker in ("AV", "Vehicle"))
        return lane.pose_at(lane.station_of(x, y)[0]).yaw_rad

    def _lane(self, x: float, y: float, on_road_only: bool) -> Lane:
        sorts = {lane.on_road for lane in self.road.lanes.values()} - ({False} if on_road_only else set())
        lanes = [self.road.nearest_lane(x, y, on_road=sort) for sort in sorted(sorts)]
        return min(lanes, key=lambda lane: math.dist((x, y), _spot(lane, x, y)))

    def _across(self, x: float, y: float) -> float | None:
        """Return the direction of a crossing actor: to the left of the nearest lane, or from the roadside onto it."""
        place = shapely.Point(x, y)
        areas = [shapely.Polygon(crossing.outline_m) for crossing in self.road.crossings]
        near = [area for area in areas if area.distance(place) <= CROSSING_M]
        if not near:
            return None
        area = min(near, key=place.distance)
        lane = self.road.nearest_lane(x, y)
        yaw = lane.pose_at(lane.station_of(x, y)[0]).yaw_rad
        to_left = (area.centroid.y - y) * math.cos(yaw) - (area.centroid.x - x) * math.sin(yaw)
        leftwards = self.road.carriageway.covers(place) or to_left > 0.0
        return yaw + (math.pi / 2 if leftwards else -math.pi / 2)

    def onward(self, pose: Pose, length_m: float) -> list[tuple[float, float]]:
        """Return points along the lane of a vehicle and its successors; none if it does not head along the lane."""
        lane = self.road.nearest_lane(pose.x_m, pose.y_m)
        station, left = lane.station_of(pose.x_m, pose.y_m)
        turned = math.remainder(lane.pose_at(station).yaw_rad - pose.yaw_rad, math.tau)
        if abs(left) > lane.width_m / 2.0 or abs(turned) > _ALIKE_RAD:
            return []
        return self._cut(Route(self.road, pose), pose, length_m)

    def between(self, pose: Pose, target: Pose) -> list[tuple[float, float]]:
        """Return points along lanes from one place to another, including that; a straight line if none lead there."""
        route = Route(self.road, pose, target)
        end = (target.x_m, target.y_m)
        if any(after not in self.road.lanes[lane].next for lane, after in pairwise(route.lanes)):
            return [end]  # changing lanes is said by where one leaves and where one arrives
        if math.dist(tuple(route.pose[-1, :2]), end) > 2.0:
            return [end]
        return [*self._cut(route, pose, math.inf)[:-1], end]

    def _cut(self, route: Route, pose: Pose, length_m: float) -> list[tuple[float, float]]:
        """Return the corners of a route from a pose on, over a length."""
        points = route.pose[:, :2]
        away_m = np.hypot(points[:, 0] - pose.x_m, points[:, 1] - pose.y_m)
        nearest = int(np.argmin(away_m))
        begin = nearest + int(_JOIN * away_m[nearest])
        way = points[begin + 1 : begin + 2 + int(min(length_m, 1e5))]
        if len(way) < 2:
            return [(float(x), float(y)) for x, y in way]
        corners = shapely.LineString([(pose.x_m, pose.y_m), *way]).simplify(_SMOOTH_M).coords
        return [(float(x), float(y)) for x, y in corners[1:]]


def _spot(lane: Lane, x: float, y: float) -> tuple[float, float]:
    pose = lane.pose_at(lane.station_of(x, y)[0])
    return pose.x_m, pose.y_m


def offset_left(pose: Pose, left_m: float) -> Pose:
    """Return the pose at a lateral offset to the left of another."""
    dx, dy = -left_m * math.sin(pose.yaw_rad), left_m * math.cos(pose.yaw_rad)
    return Pose(pose.x_m + dx, pose.y_m + dy, pose.yaw_rad)
