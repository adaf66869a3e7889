# SPDX-License-Identifier: Apache-2.0
"""Drives the episodes of a run by its stack, and says how well that kept to its lane beside an expert."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.engine.arm import Arm, restart, start
from mt_nodes.engine.callable_arm import CallableArm
from mt_nodes.relations.world_changes.base import Setting
from mt_nodes.runs.loop.ego_sensors import Sensors
from mt_nodes.runs.loop.episode import SILENT, Player, play
from mt_nodes.runs.loop.episode_conductor import PERIOD_S
from mt_nodes.runs.loop.scenario_run import PlannedEpisode, ScenarioRun
from mt_nodes.runs.models.drive_recording import Expert
from mt_nodes.runs.models.lap import LaneKeeping, LapResult, lap_result
from mt_nodes.world.drive.trace import Trace
from mt_nodes.world.drive.trace_recording import TraceRecording
from mt_nodes.world.drive.world import World


@dataclass(frozen=True, eq=False)
class Lap:
    """One episode: what was planned, how the stack drove it and how the expert did."""

    planned: PlannedEpisode
    stack: LapResult
    expert: LapResult


def laps(run: ScenarioRun) -> Iterator[Lap]:
    """Yield each episode of a run, driven; its relations play no part.

    Raises:
        UsageError: the stack is no callable, or cannot be made.
        InfrastructureError: it raised an error, or said nothing.
    """
    arm = CallableArm("source", run.stack, {topic: topic for topic in run.rig.topics.values()})
    start(arm)
    for planned in run.episodes:
        setting = planned.setting
        keeping = LaneKeeping.of(setting.scenario, setting.road)
        by_expert = expert_drive(setting)
        by_stack = stack_drive(run, planned, arm)
        line_m = by_expert.ego[:, :2]
        yield Lap(planned, lap_result(by_stack, keeping, line_m), lap_result(by_expert, keeping, line_m))


def expert_drive(setting: Setting) -> Trace:
    """Return how the expert drives, who sees no picture."""
    world = World(setting.scenario, 0, setting.road)
    expert, recording, rows = Expert.of(setting.scenario, setting.road), TraceRecording(world), 0
    while not world.ended:
        command = expert.command(world.state.ego)
        recording.add(world.state, command, True)
        rows += 1
        world.step(command, rows * PERIOD_S)
    return recording.trace()


def stack_drive(run: ScenarioRun, planned: PlannedEpisode, arm: Arm) -> Trace:
    """Return how an arm with the stack, made anew where it remembers, drives."""
    setting = planned.setting
    if not run.stack.stateless:
        restart(arm)
    eyes = Sensors(setting.scenario, setting.road, run.rig, run.request.seed)
    player = Player(setting, World(setting.scenario, 0, setting.road), eyes, arm, planned.number, PERIOD_S)
    (played,) = play([player])
    if played.ended == SILENT or not len(played.driven.trace):
        why = played.silence or played.reason or played.ended
        raise InfrastructureError(f"{planned.name}: stack '{run.stack.name}' drove no lap: {why}")
    return played.driven.trace
