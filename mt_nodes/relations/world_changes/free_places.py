# SPDX-License-Identifier: Apache-2.0
"""Free places for changes: along the ego's planned way, and beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.base.arrays import Floats
from mt_nodes.world.drive import shapes
from mt_nodes.world.drive.bodies import size_of
from mt_nodes.world.drive.map_mirror import MIRRORED
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.route import Route
from mt_nodes.world.drive.scenario import Actor, Pose, Scenario

if TYPE_CHECKING:
    from mt_nodes.relations.world_changes.base import Setting

#: Kinds of road on the maps, by their names in rules.
ANY_ROAD = "any_road"
ROADS = (ANY_ROAD, "intersection", "crosswalk", "bridge")
#: How far beside the way an edge is searched, and in which steps.
_WIDEST_M, _STEP_M = 20.0, 0.25
#: Rows that count as one place when the nearest is searched, such as those on one crosswalk.
_TOGETHER_M = 20


@dataclass(frozen=True, eq=False)
class OwnWay:
    """The ego's planned way.

    ``pose``: (K, 3) x, y and yaw in ``map``, one per metre; the first is the start of ``base_link``. ``lanes``: names
    of the lanes that it follows. ``front_m``: from ``base_link`` to the ego's front.
    """

    pose: Floats
    lanes: tuple[str, ...]
    front_m: float
    road: RoadMap

    @classmethod
    def of(cls, setting: Setting) -> OwnWay:
        """Return the way of a scenario's ego."""
        ego = setting.scenario.ego
        route = Route(setting.road, ego.start, ego.target)
        return cls(route.onward(ego.start), route.lanes, ego.vehicle.front_m, setting.road)

    @property
    def near_side(self) -> float:
        """The side of traffic: -1 for the right, 1 for the left."""
        return 1.0 if self.road.name.endswith(MIRRORED) else -1.0

    def at(self, row: int, left_m: float = 0.0) -> Pose:
        """Return a place of the way, or beside it."""
        x, y, yaw = self.pose[min(row, len(self.pose) - 1)].tolist()
        return Pose(x - left_m * float(np.sin(yaw)), y + left_m * float(np.cos(yaw)), yaw)

    def row_of(self, pose: Pose) -> tuple[int, float]:
        """Return the nearest row to a place, and its distance."""
        away = np.hypot(self.pose[:, 0] - pose.x_m, self.pose[:, 1] - pose.y_m)
        return int(np.argmin(away)), float(away.min())

    def rows(self, road: str, ahead_m: tuple[float, float]) -> npt.NDArray[np.intp]:
        """Return the rows at which the way is on a kind of road (:data:`ROADS`), within these distances ahead."""
        rows = self._rows(road)
        ahead = rows - self.front_m
        return rows[(ahead >= ahead_m[0]) & (ahead <= ahead_m[1])]

    def tried(self, rng: np.random.Generator, road: str, ahead_m: tuple[float, float]) -> list[int]:
        """Return :meth:`rows` in random order; for a particular kind of road, nearest places first."""
        rows = rng.permutation(self.rows(road, ahead_m))
        order = np.arange(len(rows)) if road == ANY_ROAD else np.argsort(rows // _TOGETHER_M, kind="stable")
        return [int(row) for row in rows[order]]

    def edge_m(self, row: int, side: float, area: shapely.Geometry) -> float | None:
        """Return how far beside a row an area ends, to the left (1) or right (-1); None if it does not."""
        off = np.arange(0.0, _WIDEST_M, _STEP_M)
        x, y, yaw = self.pose[row]
        within = shapely.intersects_xy(area, x - side * off * np.sin(yaw), y + side * off * np.cos(yaw))
        return None if within.all() else float(off[np.argmin(within)])

    def _rows(self, road: str) -> npt.NDArray[np.intp]:
        every = np.arange(len(self.pose))
        if road == ANY_ROAD or (road == "bridge" and self.road.name.startswith("bridge")):
            return every
        if road == "crosswalk":
            area = shapely.union_all([shapely.Polygon(crossing.outline_m) for crossing in self.road.crossings])
            return np.asarray(every[shapely.contains_xy(area, self.pose[:, :2])])
        if road == "intersection":
            forks = [self.road.lanes[name] for name in self.lanes if len(self.road.lanes[name].next) > 1]
            ends = [self.row_of(lane.pose_at(lane.length_m)) for lane in forks]
            return np.array(sorted({row for row, off_m in ends if off_m <= 1.0}), dtype=np.intp)
        return every[:0]


def lanes_of(road: RoadMap) -> shapely.Geometry:
    """Return the area of all lanes for vehicles."""
    lanes = [lane for lane in road.lanes.values() if lane.on_road]
    return shapely.union_all([shapely.LineString(lane.middle_m).buffer(lane.width_m / 2.0) for lane in lanes])


def ways_of(scenario: Scenario) -> list[shapely.Geometry]:
    """Return the lines that actors follow by waypoints, and the points of other actors and of obstacles."""
    ways = [[(a.start.x_m, a.start.y_m), *((w.x_m, w.y_m) for w in a.waypoints)] for a in scenario.actors]
    stand = [[(one.pose.x_m, one.pose.y_m)] for one in scenario.obstacles]
    return [shapely.LineString(way) if len(way) > 1 else shapely.Point(way[0]) for way in (*ways, *stand)]


def taken(setting: Setting) -> shapely.Geometry:
    """Return the occupied area: houses, the ego's start, obstacles, all actors' places and ways."""
    scenario = setting.scenario
    parts = [shapes.at_pose(shapes.of_vehicle(scenario.ego.vehicle), scenario.ego.start), setting.road.built_up]
    parts += [shapes.at_pose(shapes.of_obstacle(one), one.pose) for one in scenario.obstacles]
    for actor, way in zip(scenario.actors, ways_of(scenario), strict=False):
        straight = _straight_line(actor, scenario.duration_s)
        parts += [outline(actor), (way if straight is None else straight).buffer(size_of(actor)[1] / 2.0)]
    return shapely.union_all(parts)


def outline(actor: Actor) -> shapely.Polygon:
    """Return the footprint of an actor at its start."""
    return shapes.at_pose(shapes.box(*size_of(actor)[:2]), actor.start)


def unused_names(scenario: Scenario, stem: str, count: int) -> tuple[str, ...]:
    """Return unused names: ``<stem>_1`` and so on."""
    known = {actor.name for actor in scenario.actors} | {one.name for one in scenario.obstacles}
    free = [name for i in range(1, count + len(known) + 1) if (name := f"{stem}_{i}") not in known]
    return tuple(free[:count])


def _straight_line(actor: Actor, duration_s: float) -> shapely.LineString | None:
    """Return the line of an actor with a speed and no waypoints, else None."""
    if actor.waypoints or actor.speed_mps == 0.0:
        return None
    x, y, yaw, way_m = actor.start.x_m, actor.start.y_m, actor.start.yaw_rad, actor.speed_mps * duration_s
    return shapely.LineString([(x, y), (x + way_m * np.cos(yaw), y + way_m * np.sin(yaw))])
