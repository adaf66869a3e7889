# SPDX-License-Identifier: Apache-2.0
"""Drives the episodes of a run by its stack, and says how well that kept to its lane beside an expert."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import InfrastructureError
from mt_nodes.engine.arm import Arm, restart, start
from mt_nodes.engine.callable_arm import CallableArm
from mt_nodes.relations.world_changes.base import Setting
from mt_nodes.runs.loop.ego_sensors import Sensors
from mt_nodes.runs.loop.episode import SILENT, Player, play
from mt_nodes.runs.loop.episode_conductor import PERIOD_S
from mt_nodes.runs.loop.scenario_run import PlannedEpisode, ScenarioRun
from mt_nodes.runs.models.drive_recording import Expert
from mt_nodes.runs.models.lap import LaneKeeping
from mt_nodes.stacks.reference.way import LanePath
from mt_nodes.world.drive.trace import Trace
from mt_nodes.world.drive.trace_recording import TraceRecording
from mt_nodes.world.drive.world import World


@dataclass(frozen=True)
class LapResult:
    """What came of one drive.

    Attributes:
        ended: why. driven_m: how far. lap_s: until it was once around, None where it was not.
        room_m: least distance of the outline from the lane's edges until then, negative outside; room_at_m: how far it
            had driven there. tight_m: the room that one of twenty instants has less of.
        aside_mean_m, aside_max_m: distance from the line of another drive.
    """

    ended: str
    driven_m: float
    lap_s: float | None
    room_m: float
    room_at_m: float
    tight_m: float
    aside_mean_m: float
    aside_max_m: float
    slowest_mps: float
    fastest_mps: float

    @property
    def in_lane(self) -> bool:
        """Whether it went once around and never left its lane."""
        return self.lap_s is not None and self.room_m >= 0.0


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


def lap_result(trace: Trace, keeping: LaneKeeping, line_m: Floats) -> LapResult:
    """Return the figures of a drive until it had gone once around, or of all of it.

    ``line_m``: (K, 2) places of another drive on the same way, whose line this one's is compared with.
    """
    way_m = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(trace.ego[:, :2], axis=0), axis=1))])
    around = _around(trace, keeping)
    last = len(trace) if around is None else around + 1
    rooms = keeping.rooms_m(trace.ego[:last])
    aside = _apart_m(trace.ego[:last, :2], line_m)
    tightest, speed = int(rooms.argmin()), trace.column("speed_mps")[:last]
    return LapResult(
        trace.ended,
        float(way_m[last - 1]),
        None if around is None else float(trace.time_s[around]),
        *(float(rooms[tightest]), float(way_m[tightest]), float(np.quantile(rooms, 0.05))),
        *(float(aside.mean()), float(aside.max())),
        *(float(speed.min()), float(speed.max())),
    )


def _around(trace: Trace, keeping: LaneKeeping) -> int | None:
    """Return the first row at which the ego has gone once around by the stations of its way, None for none."""
    if not np.isfinite(keeping.lap_m):
        return None
    poses = keeping.route.pose[: int(keeping.lap_m) + 1, :2]
    station, _ = LanePath(poses, np.full(len(poses), np.inf)).place(trace.ego[:, :2])
    rows = np.flatnonzero(_unwrapped(station, keeping.lap_m) >= keeping.lap_m)
    return int(rows[0]) if len(rows) else None


def _unwrapped(station_m: Floats, lap_m: float) -> Floats:
    """Return how far one came since the first of places whose stations begin anew each lap."""
    way = np.unwrap(station_m, period=lap_m)
    return np.asarray(way - way[0])


def _apart_m(places_m: Floats, line_m: Floats) -> Floats:
    """Return (T,) how far places (T, 2) are from a line (K, 2)."""
    fresh = np.concatenate([[True], np.linalg.norm(np.diff(line_m, axis=0), axis=1) > 1e-6])
    _, left = LanePath(line_m[fresh], np.full(int(fresh.sum()), np.inf)).place(places_m)
    return np.abs(left)
