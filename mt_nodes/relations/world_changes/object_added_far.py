# SPDX-License-Identifier: Apache-2.0
"""Somebody stands where nobody drives, or many do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.relations.world_changes.base import Draw, ScenarioChange, Setting, WorldEffects
from mt_nodes.relations.world_changes.free_places import lanes_of, unused_names, ways_of
from mt_nodes.world.drive.bodies import facts_of
from mt_nodes.world.drive.scenario import Actor, Pose
from mt_nodes.world.scene.objects import KINDS

#: Places that are tried.
_TRIED = 2000
#: Between two of them.
_GAP_M = 0.5
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ObjectAddedFar(ScenarioChange):
    """More actors stand still beside the road: far from every lane, every house and everybody's way.

    They are within sight of where the ego begins, so that who reacts to what is none of his business does.
    """

    kind: str = param("adult", choices=tuple(KINDS), help="what is added")
    count: int = param(1, low=1, high=200, help="how many, 0.5 m apart at least")
    beside_m: float = param(8.0, low=1.0, high=200.0, unit="m", help="least distance from the edge of any lane")
    clear_m: float = param(3.0, low=0.5, high=50.0, unit="m", help="least distance from houses and everybody's way")
    within_m: float = param(60.0, low=2.0, high=500.0, unit="m", help="largest distance from the ego at first")

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Choose where, among the places that are free."""
        start, size = setting.scenario.ego.start, facts_of(self.kind).size_m
        places = rng.uniform(-self.within_m, self.within_m, (_TRIED, 2))
        places = places[np.linalg.norm(places, axis=1) <= self.within_m] + (start.x_m, start.y_m)
        free = _apart(places[self._free(setting, places)], max(size[:2]) + _GAP_M, self.count)
        if len(free) < self.count:
            raise NotApplicable(
                f"{len(free)} places within {self.within_m:g} m of the ego are {self.beside_m:g} m beside every lane "
                f"and {self.clear_m:g} m clear of all else, expected {self.count}"
            )
        return {"places": np.column_stack([free, rng.uniform(-np.pi, np.pi, self.count)])}

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Put them there."""
        scenario, places = setting.scenario, [Pose(*row) for row in np.asarray(draw["places"]).tolist()]
        names = unused_names(scenario, "added_far", len(places))
        added = tuple(Actor(name, self.kind, place) for name, place in zip(names, places, strict=True))
        beside_m = min(_beside_m(setting, place) for place in places)
        effects = WorldEffects(added=names, numbers={"beside_m": beside_m})
        return replace(setting, scenario=replace(scenario, actors=(*scenario.actors, *added))), effects

    def weak_ends(self, setting: Setting) -> Mapping[str, float]:
        """One alone."""
        return {"count": 1}

    def _free(self, setting: Setting, places: Floats) -> npt.NDArray[np.bool_]:
        points, road = shapely.points(places), setting.road
        ground = shapely.Polygon(road.ground_m).buffer(-self.clear_m)
        free = shapely.covers(ground, points) & (shapely.distance(lanes_of(setting.road), points) >= self.beside_m)
        houses = [shapely.Polygon(house.outline_m) for house in road.buildings]
        others = shapely.union_all([*houses, *ways_of(setting.scenario)])
        return np.asarray(free if others.is_empty else free & (shapely.distance(others, points) >= self.clear_m))


def _beside_m(setting: Setting, place: Pose) -> float:
    return float(shapely.distance(lanes_of(setting.road), shapely.Point(place.x_m, place.y_m)))


def _apart(places: Floats, least_m: float, count: int) -> Floats:
    """Return the first so many places (N, 2) of which each is far enough from all before it."""
    kept: list[Floats] = []
    for place in places:
        if len(kept) < count and (not kept or np.linalg.norm(np.array(kept) - place, axis=1).min() >= least_m):
            kept.append(place)
    return np.array(kept).reshape(-1, 2)
