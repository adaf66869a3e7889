# SPDX-License-Identifier: Apache-2.0
"""Ground truth of the world as messages: objects, odometry, route, lanes, signals."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import lru_cache

import numpy as np

from mt_nodes.data.lanes import Lanes, SignalStates
from mt_nodes.data.messages import Odometry
from mt_nodes.data.outputs import Detections, Path
from mt_nodes.data.rotations import seen_from
from mt_nodes.data.traits import text_of
from mt_nodes.data.transforms import EGO_FRAME, MAP_FRAME
from mt_nodes.world.drive.bodies import size_of
from mt_nodes.world.drive.ground import heights_m, surface_of
from mt_nodes.world.drive.lanes_around import lanes_around
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.route import Route
from mt_nodes.world.drive.scenario import Pose, Scenario
from mt_nodes.world.drive.trace import WorldState
from mt_nodes.world.scene.objects import KINDS

#: Length in metres of the route ahead for which neighbouring lanes are published.
_LANES_M = 90


class Teller:
    """Makes ground-truth messages of a scenario's world, without topics."""

    def __init__(self, scenario: Scenario, road: RoadMap) -> None:
        self._names = [actor.name for actor in scenario.actors] + [thing.name for thing in scenario.obstacles]
        self._labels = [KINDS[actor.kind].label for actor in scenario.actors] + ["unknown"] * len(scenario.obstacles)
        persons = [text_of(asdict(actor.person)) if actor.person else "" for actor in scenario.actors]
        self._traits = persons + [""] * len(scenario.obstacles)
        sizes = [size_of(actor) for actor in scenario.actors] + [thing.size_m for thing in scenario.obstacles]
        self._sizes = np.array(sizes, dtype=np.float64).reshape(-1, 3)
        poses = [(thing.pose.x_m, thing.pose.y_m, thing.pose.yaw_rad, 0.0) for thing in scenario.obstacles]
        self._standing = np.array(poses, dtype=np.float64).reshape(-1, 4)
        self._surface = surface_of(road)
        self._route = Route(road, scenario.ego.start, scenario.ego.target)
        self._ahead = lru_cache(maxsize=1)(self._route.ahead)  # route and lanes ask for the same
        self._lanes = lanes_around(road)
        self._wheelbase_m = scenario.ego.vehicle.wheelbase_m
        self._stops = {
            signal.name: road.lanes[signal.lane].pose_at(signal.stop_m) for signal in road.signals if signal.lane
        }

    def objects(self, state: WorldState, stamp_ns: int, rng: np.random.Generator) -> Detections:
        """Return all bodies that may be hit, visible or not, in ``base_link`` and in random order.

        Velocities are over ground, along the axes of ``base_link``; track ids are the names; people have the scenario's
        attributes.
        """
        rows = np.concatenate([state.actors, self._standing])
        yaw = rows[:, 2] - state.ego.yaw_rad
        ways = rows[:, 3, None] * np.column_stack([np.cos(yaw), np.sin(yaw), np.zeros(len(yaw))])
        places, heights = (
            seen_from(state.ego.x_m, state.ego.y_m, state.ego.yaw_rad, rows[:, :2]),
            heights_m(self._surface, rows[:, :2]),
        )
        middles = np.column_stack([places, heights + self._sizes[:, 2] / 2.0])
        facing = np.angle(np.exp(1j * yaw))
        found = Detections.make(
            EGO_FRAME,
            stamp_ns,
            middles,
            self._sizes,
            facing,
            self._labels,
            track_id=self._names,
            velocity_mps=ways,
            traits=self._traits,
        )
        return found.take(rng.permutation(len(found)))

    def odometry(self, state: WorldState, stamp_ns: int) -> Odometry:
        """Return pose and motion of the ego; its yaw rate is that of the bicycle model, v tan δ / L."""
        ego = state.ego
        turn = ego.speed_mps * float(np.tan(ego.steering_rad)) / self._wheelbase_m
        return Odometry(MAP_FRAME, stamp_ns, ego.x_m, ego.y_m, ego.yaw_rad, ego.speed_mps, turn, EGO_FRAME)

    def route(self, state: WorldState, stamp_ns: int) -> Path:
        """Return the centre line of the lanes ahead, with their limits as speeds."""
        ego = state.ego
        poses, limits = self._ahead(Pose(ego.x_m, ego.y_m, ego.yaw_rad))
        return replace(Path.make(MAP_FRAME, stamp_ns, poses), speed_mps=limits)

    def lanes(self, state: WorldState, stamp_ns: int) -> Lanes:
        """Return the lanes along the route ahead: its own, parallel ones, and oncoming ones."""
        ego = state.ego
        poses, _ = self._ahead(Pose(ego.x_m, ego.y_m, ego.yaw_rad))
        return Lanes.make(MAP_FRAME, stamp_ns, self._lanes.along(poses[:_LANES_M]))

    def signals(self, state: WorldState, stamp_ns: int) -> SignalStates:
        """Return the lights for vehicles and their stop lines."""
        names = [name for name in state.signals if name in self._stops]
        stops = [(stop.x_m, stop.y_m, stop.yaw_rad) for stop in (self._stops[name] for name in names)]
        return SignalStates.make(MAP_FRAME, stamp_ns, names, [state.signals[name] for name in names], stops)
