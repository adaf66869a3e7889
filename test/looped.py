# SPDX-License-Identifier: Apache-2.0
"""A reference driver in a world, in this process: the shortest closed loop there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from started_arms import REMEMBERED, arm_here, started_arm

from mt_nodes.engine.arm import restart
from mt_nodes.engine.callable_arm import CallableArm
from mt_nodes.runs.loop.ego_sensors import Sensors
from mt_nodes.runs.loop.rig import Rig
from mt_nodes.stacks.callables import with_faults
from mt_nodes.stacks.reference.way import LanePath
from mt_nodes.stacks.stack import Stack, load_stack
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.route import Route
from mt_nodes.world.drive.scenario import Actor, Ego, Pose, Scenario, Trigger, Waypoint
from mt_nodes.world.drive.trace import Trace
from mt_nodes.world.drive.trace_recording import TraceRecording
from mt_nodes.world.drive.world import World
from mt_nodes.world.scene.lidar import LidarModel

PERIOD_S = 0.1


@dataclass(frozen=True)
class Drive:
    """One episode: its trace, and where the ego was along its route and beside it, (T,) each."""

    trace: Trace
    station_m: Any
    left_m: Any

    @property
    def hit(self) -> tuple[str, ...]:
        """Names of those whom it touched."""
        return tuple(collision.name for collision in self.trace.collisions)

    @property
    def speed_mps(self) -> Any:
        return self.trace.column("speed_mps")

    @property
    def braking_mps2(self) -> float:
        """The hardest."""
        return float(-self.trace.column("acceleration_mps2").min())

    @property
    def across_mps2(self) -> float:
        """The most across the road, v² times curvature."""
        return float(np.abs(self.speed_mps**2 * np.tan(self.trace.column("steering_rad")) / 2.8).max())

    def row_at(self, station_m: float) -> int:
        """The first row at which the rear axle is past a station."""
        return int(np.argmax(self.station_m > station_m))


def driven(
    scenario: Scenario,
    stack: str = "reference_planner",
    faults: Sequence[str] = (),
    lidar: LidarModel | None = None,
    before: Scenario | None = None,
    **params: Any,
) -> Drive:
    """Play a scenario to its end; ``before``: one that the same process drives first, and is to forget."""
    made = with_faults(load_stack(stack), tuple(faults))
    made = replace(made, params={**made.params, **params})
    names = [topic for topics in made.topics.values() for topic in topics]
    arm = (started_arm if before or REMEMBERED & set(faults) else arm_here)(
        "source", made, dict(zip(names, names, strict=True))
    )
    if before is not None:
        _play(before, made, arm, lidar)
        restart(arm)
    return _play(scenario, made, arm, lidar)


def _play(scenario: Scenario, made: Stack, arm: CallableArm, lidar: LidarModel | None) -> Drive:
    world, road = World(scenario), load_map(scenario.road)
    eyes, recording, row = Sensors(scenario, road, Rig.for_stack(made, lidar), 0), TraceRecording(world), 0
    while not world.ended:
        state = world.state
        ticket = arm.send(eyes.observe(state, 0, row), frozenset())
        command = arm.wait(ticket).output.control
        recording.add(state, command, command is not None)
        row += 1
        world.step(command, row * PERIOD_S)
    trace = recording.trace()
    route = Route(road, scenario.ego.start, scenario.ego.target)
    return Drive(trace, *LanePath(route.pose[:, :2], route.limit_mps).place(trace.ego[:, :2]))


@lru_cache
def lane(road: str, name: str) -> Any:
    """A lane of a shipped map."""
    found: RoadMap = load_map(road)
    return found.lanes[name]


def street(
    *actors: Actor,
    speed_mps: float = 12.0,
    x_m: float = 20.0,
    seconds: float = 15.0,
    road: str = "straight",
    **more: Any,
) -> Scenario:
    """The ego on the first lane, which is the x axis, and others."""
    return Scenario("street", road, Ego(Pose(x_m, 0.0), speed_mps), actors, duration_s=seconds, **more)


def standing(name: str, x_m: float, y_m: float, kind: str = "adult") -> Actor:
    return Actor(name, kind, Pose(x_m, y_m, 1.5))


def crossing(
    name: str, x_m: float, within_m: float, speed_mps: float = 1.4, side: int = -1, kind: str = "adult"
) -> Actor:
    """Somebody who walks across the street from the right (-1) or the left, once the ego's front is so near."""
    ways = (Waypoint(x_m, -side * 8.0, speed_mps),)
    start = Pose(x_m, side * 5.0, -side * np.pi / 2.0)
    return Actor(name, kind, start, waypoints=ways, trigger=Trigger(ego_within_m=within_m))


def darting(x_m: float, within_m: float, speed_mps: float = 12.0) -> Actor:
    """Somebody who darts from the right into the lane, once the ego's front is so near, and stays there."""
    ways, trigger = (Waypoint(x_m, 0.1, speed_mps),), Trigger(ego_within_m=within_m)
    return Actor("darting", "adult", Pose(x_m, -4.0, np.pi / 2.0), waypoints=ways, trigger=trigger)


def wrong_way(x_m: float = 170.0) -> Actor:
    """A car that comes towards the ego on the ego's lane."""
    return Actor("comer", "car", Pose(x_m, 0.0, np.pi), 8.0, waypoints=(Waypoint(2.0, 0.0, 8.0),))


def over_the_line(y_m: float = 1.4, side: int = 1, x_m: float = 180.0) -> Actor:
    """A car on ``two_way`` that comes towards the ego and drives partly in its lane."""
    ways = (Waypoint(120.0, side * y_m, 10.0), Waypoint(2.0, side * y_m, 10.0))
    return Actor("comer", "car", Pose(x_m, side * 3.5, np.pi), 10.0, waypoints=ways)
