# SPDX-License-Identifier: Apache-2.0
"""Random variation between repetitions of a scenario.

A deterministic driver in a deterministic world repeats itself exactly: a second run of the same episode is no new
information. Rates refer to the small variations declared here, whose sizes are ours and leave the situation the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mt_nodes.base.errors import UsageError
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.scenario import Actor, Ego, Pose, Scenario, Trigger
from mt_nodes.world.drive.scenario_checks import problems

#: Largest variations: places along and across the way, speeds (a share), and start times.
ALONG_M, ACROSS_M, SPEED, AFTER_S = 1.0, 0.1, 0.05, 0.2
_TRIES = 12


def jittered(scenario: Scenario, road: RoadMap, rng: np.random.Generator, share: float = 1.0) -> Scenario:
    """Return a scenario in which every moving actor starts at a slightly different place, speed and time.

    The ego moves along and across its lane and keeps its angle to it. Standing actors stay, so that a gap between
    parked cars keeps its size.
    ``share``: of the largest variations; 0 changes nothing. If a draw is not playable, because actors would overlap,
    another is drawn at half the size.
    Raises UsageError: the scenario itself cannot be played.
    """
    for tries in range(_TRIES):
        size = share / 2**tries
        changed = replace(
            scenario,
            ego=_ego(scenario.ego, road, rng, size),
            actors=tuple(_actor(actor, rng, size) if _goes(actor) else actor for actor in scenario.actors),
        )
        if not (found := problems(changed, road)):
            return changed
    raise UsageError(f"scenario '{scenario.name}' cannot be repeated: {'; '.join(map(str, found))}")


def _goes(actor: Actor) -> bool:
    return actor.speed_mps > 0.0 or bool(actor.waypoints)


def _ego(ego: Ego, road: RoadMap, rng: np.random.Generator, size: float) -> Ego:
    along, across, speed = rng.uniform(-size, size, 3)
    lane = road.nearest_lane(ego.start.x_m, ego.start.y_m)
    station, left = lane.station_of(ego.start.x_m, ego.start.y_m)
    turned = ego.start.yaw_rad - lane.pose_at(station).yaw_rad
    pose = lane.pose_at(station + ALONG_M * along, left + ACROSS_M * across)
    return replace(
        ego, start=Pose(pose.x_m, pose.y_m, pose.yaw_rad + turned), speed_mps=ego.speed_mps * (1.0 + SPEED * speed)
    )


def _actor(actor: Actor, rng: np.random.Generator, size: float) -> Actor:
    along, across, speed, after = rng.uniform(-size, size, 4)
    start, factor = actor.start, 1.0 + SPEED * float(speed)
    ahead, left = ALONG_M * along, ACROSS_M * across
    c, s = np.cos(start.yaw_rad), np.sin(start.yaw_rad)
    return replace(
        actor,
        start=Pose(float(start.x_m + c * ahead - s * left), float(start.y_m + s * ahead + c * left), start.yaw_rad),
        speed_mps=actor.speed_mps * factor,
        waypoints=tuple(replace(point, speed_mps=point.speed_mps * factor) for point in actor.waypoints),
        trigger=_trigger(actor.trigger, AFTER_S * float(after)),
    )


def _trigger(trigger: Trigger, later_s: float) -> Trigger:
    return replace(trigger, after_s=max(0.0, trigger.after_s + later_s))
