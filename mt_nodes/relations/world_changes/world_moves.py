# SPDX-License-Identifier: Apache-2.0
"""The world mirrored, moved, or shifted along its road."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.relations.world_changes.base import Draw, ScenarioChange, Setting, WorldEffects
from mt_nodes.relations.world_changes.scenario_carry import Carry, carried_road, carried_scenario
from mt_nodes.world.drive.road_map import Lane, RoadMap
from mt_nodes.world.drive.scenario import Pose, Scenario


@dataclass(frozen=True)
class WorldMirrored(ScenarioChange):
    """Mirrors the whole world, map included, about the ego's initial direction: traffic keeps to the other side.

    The expected trace is mirrored, too. Faces of signs are not mirrored, because no such signs exist.
    """

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Nothing is random."""
        return {}

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Swap the sides."""
        carry = Carry.mirror(setting.scenario.ego.start)
        scenario, road = carried_scenario(setting.scenario, carry), carried_road(setting.road, carry)
        return replace(setting, scenario=scenario, road=road), WorldEffects(carry)


@dataclass(frozen=True)
class WorldMoved(ScenarioChange):
    """Rotates and shifts the whole world, map included; the expected trace moves alike.

    Origin and axes of a map are a convention: nothing about driving depends on them.
    """

    by_at_most_m: float = param(500.0, low=0.0, high=10_000.0, unit="m", help="largest shift")
    turned_by_at_most_rad: float = param(3.1416, low=0.0, high=3.1416, unit="rad", help="largest turn")

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Choose the motion."""
        distance_m, toward_rad = self.by_at_most_m * rng.uniform(), rng.uniform(-np.pi, np.pi)
        return {
            "turn_rad": float(self.turned_by_at_most_rad * rng.uniform(-1.0, 1.0)),
            "x_m": float(distance_m * np.cos(toward_rad)),
            "y_m": float(distance_m * np.sin(toward_rad)),
        }

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Rotate about the ego's start, then shift."""
        start = setting.scenario.ego.start
        pose = Pose(start.x_m + draw["x_m"], start.y_m + draw["y_m"], start.yaw_rad + draw["turn_rad"])
        carry = Carry.between(start, pose)
        scenario, road = carried_scenario(setting.scenario, carry), carried_road(setting.road, carry)
        return replace(setting, scenario=scenario, road=road), WorldEffects(carry)

    def weak_ends(self, setting: Setting) -> Mapping[str, float]:
        """No motion."""
        return {"by_at_most_m": 0.0, "turned_by_at_most_rad": 0.0}


#: Largest deviation of a straight lane's points from the line between its ends.
_STRAIGHT_M = 0.001
#: Lights farther ahead than this do not matter.
_LOOKS_M = 80.0


@dataclass(frozen=True)
class SceneShiftedAlongRoad(ScenarioChange):
    """Shifts ego, actors and obstacles along the ego's lane; the map stays, and the expected trace shifts alike.

    Only if the road is the same at both places: the lane is straight and long enough for the whole drive, nobody waits
    for lights, and the next stop line is out of look-ahead distance. Houses, signs and markings differ there: a driver
    with sensors sees that, one with object lists does not.
    """

    least_m: float = param(2.0, low=0.1, high=1000.0, unit="m", help="shortest shift")
    most_m: float = param(30.0, low=0.1, high=1000.0, unit="m", help="longest shift")

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Choose the distance, within the limits of the road."""
        scenario, road = setting.scenario, setting.road
        lane = road.nearest_lane(scenario.ego.start.x_m, scenario.ego.start.y_m)
        if _bends(lane):
            raise NotApplicable(f"the road is not the same farther on: lane {lane.name} bends")
        if waits := sorted(actor.name for actor in scenario.actors if actor.obeys_signals):
            raise NotApplicable(f"{waits[0]} obeys lights, which stay where they are")
        room_m = _room_m(scenario, road, lane)
        if room_m < self.least_m:
            raise NotApplicable(
                f"up to its end or next light lane {lane.name} has {max(0.0, room_m):.0f} m more than the drive needs, "
                f"expected {self.least_m:g} m"
            )
        return {"by_m": float(rng.uniform(self.least_m, max(self.least_m, min(self.most_m, room_m))))}

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Shift everything."""
        start = setting.scenario.ego.start
        lane = setting.road.nearest_lane(start.x_m, start.y_m)
        ahead = lane.line_m[-1] - lane.line_m[0]
        x, y = (ahead / np.linalg.norm(ahead) * draw["by_m"]).tolist()
        carry = Carry(x_m=x, y_m=y)
        return replace(setting, scenario=carried_scenario(setting.scenario, carry)), WorldEffects(carry)

    def weak_ends(self, setting: Setting) -> Mapping[str, float]:
        """Nearly no shift."""
        return {"most_m": 0.1, "least_m": 0.1}


def _bends(lane: Lane) -> bool:
    along = (lane.line_m[-1] - lane.line_m[0]) / np.linalg.norm(lane.line_m[-1] - lane.line_m[0])
    off = lane.line_m - lane.line_m[0]
    return bool(np.abs(along[0] * off[:, 1] - along[1] * off[:, 0]).max() > _STRAIGHT_M)


def _room_m(scenario: Scenario, road: RoadMap, lane: Lane) -> float:
    """Return the length of lane left beyond the drive of the scenario's duration, and beyond everything in it."""
    ego = scenario.ego
    begin_m = lane.station_of(ego.start.x_m, ego.start.y_m)[0]
    lights_m = [s.stop_m - _LOOKS_M for s in road.signals if s.lane == lane.name and s.stop_m > begin_m]
    poses = [actor.start for actor in scenario.actors] + [one.pose for one in scenario.obstacles]
    poses += [ego.target] if ego.target else []
    ways = [(w.x_m, w.y_m) for actor in scenario.actors for w in actor.waypoints]
    there_m = [lane.station_of(x, y)[0] for x, y in [*((p.x_m, p.y_m) for p in poses), *ways]]
    # A target ends the drive; without one it lasts the scenario's duration.
    driven_m = 0.0 if ego.target else max(ego.speed_mps, lane.limit_mps) * scenario.duration_s
    needed_m = begin_m + ego.vehicle.front_m + driven_m
    return min([lane.length_m, *lights_m]) - max([needed_m, *there_m])
