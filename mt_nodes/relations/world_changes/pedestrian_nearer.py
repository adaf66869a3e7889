# SPDX-License-Identifier: Apache-2.0
"""Somebody in the ego's way is there earlier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.relations.world_changes.base import Draw, ScenarioChange, Setting, WorldEffects
from mt_nodes.relations.world_changes.scenario_carry import Carry, carried_actor
from mt_nodes.world.drive.road_map import Lane
from mt_nodes.world.drive.scenario import Actor
from mt_nodes.world.scene.objects import KINDS


@dataclass(frozen=True)
class PedestrianNearer(ScenarioChange):
    """A person ahead stands, or crosses, nearer to the ego along its lane, with everything the person will do.

    Of people who move it is one who waits for the ego to come near: who walks by the clock would cross another
    piece of the ego's way at the same time, perhaps after it has passed.
    """

    least_m: float = param(2.0, low=0.1, high=100.0, unit="m", help="by how much nearer at least")
    most_m: float = param(12.0, low=0.1, high=200.0, unit="m", help="by how much nearer at most")
    left_m: float = param(15.0, low=1.0, high=200.0, unit="m", help="least distance that is left, from the front")

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Choose a person, and how much nearer."""
        near = {a.name: room for a in setting.scenario.actors if (room := self._room_m(setting, a)) >= self.least_m}
        if not near:
            raise NotApplicable(f"nobody on foot is far enough ahead to be {self.least_m:g} m nearer")
        name = sorted(near)[int(rng.integers(len(near)))]
        return {"name": name, "by_m": float(rng.uniform(self.least_m, max(self.least_m, min(self.most_m, near[name]))))}

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Bring the person nearer, along the lane."""
        lane, actor = _lane(setting), setting.scenario.actor(draw["name"])
        station, _ = lane.station_of(actor.start.x_m, actor.start.y_m)
        carry = Carry.between(lane.pose_at(station), lane.pose_at(station - draw["by_m"]))
        moved = carried_actor(actor, carry)
        actors = tuple(moved if one.name == actor.name else one for one in setting.scenario.actors)
        effects = WorldEffects(changed=(actor.name,), numbers={"nearer_m": draw["by_m"]})
        return replace(setting, scenario=replace(setting.scenario, actors=actors)), effects

    def weak_ends(self, setting: Setting) -> Mapping[str, float]:
        """Next to nothing nearer."""
        return {"most_m": 0.1, "least_m": 0.1}

    def _room_m(self, setting: Setting, actor: Actor) -> float:
        """Return by how much an actor can be nearer; nothing where it is not one of those."""
        waits = actor.trigger.ego_within_m is not None or actor.trigger.ego_within_s is not None
        if KINDS[actor.kind].label != "pedestrian" or not (waits or _stands(actor)):
            return 0.0
        lane, ego = _lane(setting), setting.scenario.ego
        here, there = (lane.station_of(p.x_m, p.y_m)[0] for p in (ego.start, actor.start))
        return there - here - ego.vehicle.front_m - self.left_m


def _stands(actor: Actor) -> bool:
    return actor.speed_mps == 0.0 and not actor.waypoints


def _lane(setting: Setting) -> Lane:
    start = setting.scenario.ego.start
    return setting.road.nearest_lane(start.x_m, start.y_m)
