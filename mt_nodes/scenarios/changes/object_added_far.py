# SPDX-License-Identifier: Apache-2.0
"""Somebody stands where nobody drives."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.drive.scenario import Actor, Pose, Scenario
from mt_nodes.errors import NotApplicable
from mt_nodes.params import param
from mt_nodes.scenarios.changes.base import Draw, ScenarioChange, Setting, WorldEffects
from mt_nodes.scene.objects import KINDS

#: Places that are tried.
_TRIED = 2000
_NAME = "added_far"


@dataclass(frozen=True)
class ObjectAddedFar(ScenarioChange):
    """One more actor stands still beside the road: far from every lane, every house and everybody's way.

    It is within sight of where the ego begins, so that who reacts to what is none of his business does.
    """

    kind: str = param("adult", choices=tuple(KINDS), help="what is added")
    beside_m: float = param(8.0, low=1.0, high=200.0, unit="m", help="least distance from the edge of any lane")
    clear_m: float = param(3.0, low=0.5, high=50.0, unit="m", help="least distance from houses and everybody's way")
    within_m: float = param(60.0, low=2.0, high=500.0, unit="m", help="largest distance from the ego at first")

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Choose where, among the places that are free."""
        start = setting.scenario.ego.start
        places = rng.uniform(-self.within_m, self.within_m, (_TRIED, 2))
        places = places[np.linalg.norm(places, axis=1) <= self.within_m] + (start.x_m, start.y_m)
        free = places[self._free(setting, places)]
        if not len(free):
            raise NotApplicable(
                f"nowhere within {self.within_m:g} m of the ego is {self.beside_m:g} m beside every lane and "
                f"{self.clear_m:g} m clear of all else"
            )
        return {"x_m": float(free[0, 0]), "y_m": float(free[0, 1]), "yaw_rad": float(rng.uniform(-np.pi, np.pi))}

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Put it there."""
        scenario, place = setting.scenario, Pose(draw["x_m"], draw["y_m"], draw["yaw_rad"])
        name = _unused(_NAME, scenario)
        actors = (*scenario.actors, Actor(name, self.kind, place))
        effects = WorldEffects(added=(name,), numbers={"beside_m": _beside_m(setting, place)})
        return replace(setting, scenario=replace(scenario, actors=actors)), effects

    def _free(self, setting: Setting, places: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        points, road = shapely.points(places), setting.road
        ground = shapely.Polygon(road.ground_m).buffer(-self.clear_m)
        free = shapely.covers(ground, points) & (shapely.distance(_lanes(setting), points) >= self.beside_m)
        houses = [shapely.Polygon(house.outline_m) for house in road.buildings]
        others = shapely.union_all([*houses, *_ways(setting.scenario)])
        return np.asarray(free if others.is_empty else free & (shapely.distance(others, points) >= self.clear_m))


def _lanes(setting: Setting) -> shapely.Geometry:
    lanes = [lane for lane in setting.road.lanes.values() if lane.on_road]
    return shapely.union_all([shapely.LineString(lane.middle_m).buffer(lane.width_m / 2.0) for lane in lanes])


def _ways(scenario: Scenario) -> list[shapely.Geometry]:
    ways = [[(a.start.x_m, a.start.y_m), *((w.x_m, w.y_m) for w in a.waypoints)] for a in scenario.actors]
    stand = [[(one.pose.x_m, one.pose.y_m)] for one in scenario.obstacles]
    return [shapely.LineString(way) if len(way) > 1 else shapely.Point(way[0]) for way in (*ways, *stand)]


def _beside_m(setting: Setting, place: Pose) -> float:
    return float(shapely.distance(_lanes(setting), shapely.Point(place.x_m, place.y_m)))


def _unused(name: str, scenario: Scenario) -> str:
    taken = {actor.name for actor in scenario.actors} | {one.name for one in scenario.obstacles}
    return next(n for n in (name, *(f"{name}_{i}" for i in range(2, len(taken) + 3))) if n not in taken)
