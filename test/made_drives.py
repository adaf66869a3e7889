# SPDX-License-Identifier: Apache-2.0
"""Scenarios and runs of the closed loop without files, for the tests of what drives and judges them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mt_nodes.relations.relation import LOOP_SHAM, load_suite
from mt_nodes.relations.world_changes.base import Setting
from mt_nodes.runs.loop.rig import Rig
from mt_nodes.runs.loop.scenario_request import ScenarioRequest
from mt_nodes.runs.loop.scenario_run import PlannedEpisode, ScenarioRun
from mt_nodes.stacks.stack import Stack, load_stack
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.scenario import Actor, Ego, Obstacle, Pose, Scenario, Trigger, Waypoint
from mt_nodes.world.scene.lidar import LidarModel

#: Where the ego begins on the map ``straight``, and how fast.
START_M, SPEED_MPS = 20.0, 10.0


def setting(*actors: Actor, road: str = "straight", duration_s: float = 8.0, **rest: Any) -> Setting:
    """Return a drive along the first lane of a map."""
    streets = load_map(road)
    ego = Ego(streets.lanes["lane_1"].pose_at(START_M), SPEED_MPS)
    return Setting(Scenario("made", road, ego, actors, duration_s=duration_s, **rest), streets)


def pedestrian(ahead_m: float = 60.0, left_m: float = 0.0, name: str = "walker", **rest: Any) -> Actor:
    """Return somebody who stands so far ahead of the ego's start, and so far to the left of its lane's middle."""
    lane = load_map("straight").lanes["lane_1"]
    return Actor(name, "adult", lane.pose_at(START_M + ahead_m, left_m), **rest)


def crossing(ahead_m: float = 60.0, within_m: float = 35.0) -> Actor:
    """Return somebody who steps into the lane from the right when the ego is near."""
    lane = load_map("straight").lanes["lane_1"]
    here, there = lane.pose_at(START_M + ahead_m, -5.0), lane.pose_at(START_M + ahead_m, 5.0)
    ways = (Waypoint(there.x_m, there.y_m, 1.4),)
    return Actor("crosser", "adult", here, waypoints=ways, trigger=Trigger(ego_within_m=within_m))


def box(ahead_m: float, left_m: float = 0.0) -> Obstacle:
    """Return a carton on the road."""
    pose = load_map("straight").lanes["lane_1"].pose_at(START_M + ahead_m, left_m)
    return Obstacle("carton", "box", Pose(pose.x_m, pose.y_m, 0.3), (0.8, 0.6, 0.7))


def made_run(
    out: Path,
    settings: Sequence[Setting],
    relations: Sequence[str],
    stack: Stack | None = None,
    repeat: int = 1,
    lidar: LidarModel | None = None,
    **asked: Any,
) -> ScenarioRun:
    """Return a run over settings, in process, as :meth:`ScenarioRun.create` makes it from files."""
    under_test = stack or load_stack("reference_planner")
    wanted = {"scenarios": ("made",), "relations": tuple(relations), "transport": "inprocess", **asked}
    episodes = tuple(PlannedEpisode(i, one, "made") for i, one in enumerate([*settings] * repeat))
    (out / "evidence").mkdir(parents=True, exist_ok=True)
    return ScenarioRun(
        ScenarioRequest(**wanted),
        out,
        under_test,
        load_suite(relations, LOOP_SHAM),
        Rig.for_stack(under_test, lidar),
        episodes,
    )


def with_faults(stack: Stack, *faults: Any) -> Stack:
    """Return a stack with faults planted, perhaps with parameters of theirs."""
    return replace(stack, params={**stack.params, "faults": list(faults)})
