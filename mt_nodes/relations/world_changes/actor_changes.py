# SPDX-License-Identifier: Apache-2.0
"""Actors of another kind, nearer to the ego, or far beside the road."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import shapely

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.relations.world_changes.base import Draw, ScenarioChange, Setting, WorldEffects
from mt_nodes.relations.world_changes.free_places import lanes_of, unused_names, ways_of
from mt_nodes.relations.world_changes.scenario_carry import Carry, carried_actor
from mt_nodes.world.drive.bodies import facts_of, mass_of, size_of
from mt_nodes.world.drive.road_map import Lane
from mt_nodes.world.drive.scenario import Actor, Pose
from mt_nodes.world.drive.scenario_checks import OF_PEOPLE
from mt_nodes.world.scene.objects import KINDS


@dataclass(frozen=True)
class ActorKindChanged(ScenarioChange):
    """Changes the kind of one actor: same place, same movement and, unless ``natural``, same size and mass.

    Matched size tests whether the class alone matters; natural size whether the whole appearance does.
    """

    whose: str = param("adult", choices=tuple(KINDS), help="kind of those of whom one is changed")
    to: str = param("child", choices=tuple(KINDS), help="kind that it becomes")
    natural: bool = param(False, help="with the size and mass of its new kind")

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Choose who."""
        names = sorted(actor.name for actor in setting.scenario.actors if actor.kind == self.whose)
        if not names:
            raise NotApplicable(f"no actor is of kind '{self.whose}'")
        return {"name": names[int(rng.integers(len(names)))]}

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Change the kind."""
        scenario = setting.scenario
        actors = tuple(self._changed(a) if a.name == draw["name"] else a for a in scenario.actors)
        return replace(setting, scenario=replace(scenario, actors=actors)), WorldEffects(changed=(draw["name"],))

    def _changed(self, actor: Actor) -> Actor:
        # Only people have an age and a gender; obeying traffic lights does not depend on the kind.
        person = actor.person if KINDS[self.to].label in OF_PEOPLE else None
        size_m, mass_kg = (None, None) if self.natural else (size_of(actor), mass_of(actor))
        return replace(actor, kind=self.to, person=person, size_m=size_m, mass_kg=mass_kg)


@dataclass(frozen=True)
class PedestrianNearer(ScenarioChange):
    """Moves a person who stands or crosses ahead nearer to the ego along its lane, with all of the person's movement.

    A moving person must be one who waits for the ego to come near: one who walks by the clock would cross another part
    of the ego's way at the same time, perhaps after it has passed.
    """

    least_m: float = param(2.0, low=0.1, high=100.0, unit="m", help="by how much nearer at least")
    most_m: float = param(12.0, low=0.1, high=200.0, unit="m", help="by how much nearer at most")
    left_m: float = param(15.0, low=1.0, high=200.0, unit="m", help="least distance that is left, from the front")

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Choose a person and a distance."""
        near = {a.name: room for a in setting.scenario.actors if (room := self._room_m(setting, a)) >= self.least_m}
        if not near:
            raise NotApplicable(f"nobody on foot is far enough ahead to be {self.least_m:g} m nearer")
        name = sorted(near)[int(rng.integers(len(near)))]
        return {"name": name, "by_m": float(rng.uniform(self.least_m, max(self.least_m, min(self.most_m, near[name]))))}

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Move the person nearer, along the lane."""
        lane, actor = _lane(setting), setting.scenario.actor(draw["name"])
        station, _ = lane.station_of(actor.start.x_m, actor.start.y_m)
        carry = Carry.between(lane.pose_at(station), lane.pose_at(station - draw["by_m"]))
        moved = carried_actor(actor, carry)
        actors = tuple(moved if one.name == actor.name else one for one in setting.scenario.actors)
        effects = WorldEffects(changed=(actor.name,), numbers={"nearer_m": draw["by_m"]})
        return replace(setting, scenario=replace(setting.scenario, actors=actors)), effects

    def weak_ends(self, setting: Setting) -> Mapping[str, float]:
        """Nearly no shift."""
        return {"most_m": 0.1, "least_m": 0.1}

    def _room_m(self, setting: Setting, actor: Actor) -> float:
        """Return by how much an actor can be nearer; 0 for an unsuitable one."""
        waits = actor.trigger.ego_within_m is not None or actor.trigger.ego_within_s is not None
        if KINDS[actor.kind].label != "pedestrian" or not (waits or _stands(actor)):
            return 0.0
        lane, ego = _lane(setting), setting.scenario.ego
        ego_station_m, actor_station_m = (lane.station_of(p.x_m, p.y_m)[0] for p in (ego.start, actor.start))
        return actor_station_m - ego_station_m - ego.vehicle.front_m - self.left_m


def _stands(actor: Actor) -> bool:
    return actor.speed_mps == 0.0 and not actor.waypoints


def _lane(setting: Setting) -> Lane:
    start = setting.scenario.ego.start
    return setting.road.nearest_lane(start.x_m, start.y_m)


#: Places tried.
_TRIED = 2000
#: Gap between two of them.
_GAP_M = 0.5


@dataclass(frozen=True)
class ObjectAddedFar(ScenarioChange):
    """Adds standing actors beside the road: far from every lane, every house and everybody's way.

    They are in sight of the ego's start, so that a driver that reacts to irrelevant actors does react.
    """

    kind: str = param("adult", choices=tuple(KINDS), help="what is added")
    count: int = param(1, low=1, high=200, help="how many, 0.5 m apart at least")
    beside_m: float = param(8.0, low=1.0, high=200.0, unit="m", help="least distance from the edge of any lane")
    clear_m: float = param(3.0, low=0.5, high=50.0, unit="m", help="least distance from houses and everybody's way")
    within_m: float = param(60.0, low=2.0, high=500.0, unit="m", help="largest distance from the ego at first")

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Choose free places."""
        start, size = setting.scenario.ego.start, facts_of(self.kind).size_m
        places = rng.uniform(-self.within_m, self.within_m, (_TRIED, 2))
        places = places[np.linalg.norm(places, axis=1) <= self.within_m] + (start.x_m, start.y_m)
        free = _spaced(places[self._free(setting, places)], max(size[:2]) + _GAP_M, self.count)
        if len(free) < self.count:
            raise NotApplicable(
                f"{len(free)} places within {self.within_m:g} m of the ego are {self.beside_m:g} m beside every lane "
                f"and {self.clear_m:g} m clear of all else, expected {self.count}"
            )
        return {"places": np.column_stack([free, rng.uniform(-np.pi, np.pi, self.count)])}

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Add the actors."""
        scenario, places = setting.scenario, [Pose(*row) for row in np.asarray(draw["places"]).tolist()]
        names = unused_names(scenario, "added_far", len(places))
        added = tuple(Actor(name, self.kind, place) for name, place in zip(names, places, strict=True))
        beside_m = min(_lane_distance_m(setting, place) for place in places)
        effects = WorldEffects(added=names, numbers={"beside_m": beside_m})
        return replace(setting, scenario=replace(scenario, actors=(*scenario.actors, *added))), effects

    def weak_ends(self, setting: Setting) -> Mapping[str, float]:
        """A single one."""
        return {"count": 1}

    def _free(self, setting: Setting, places: Floats) -> Mask:
        points, road = shapely.points(places), setting.road
        ground = shapely.Polygon(road.ground_m).buffer(-self.clear_m)
        free = shapely.covers(ground, points) & (shapely.distance(lanes_of(setting.road), points) >= self.beside_m)
        houses = [shapely.Polygon(house.outline_m) for house in road.buildings]
        others = shapely.union_all([*houses, *ways_of(setting.scenario)])
        return np.asarray(free if others.is_empty else free & (shapely.distance(others, points) >= self.clear_m))


def _lane_distance_m(setting: Setting, place: Pose) -> float:
    return float(shapely.distance(lanes_of(setting.road), shapely.Point(place.x_m, place.y_m)))


def _spaced(places: Floats, least_m: float, count: int) -> Floats:
    """Return the first ``count`` places (N, 2) that are far enough from all before them."""
    chosen: list[Floats] = []
    for place in places:
        if len(chosen) < count and (not chosen or np.linalg.norm(np.array(chosen) - place, axis=1).min() >= least_m):
            chosen.append(place)
    return np.array(chosen).reshape(-1, 2)
