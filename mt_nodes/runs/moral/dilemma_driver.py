# SPDX-License-Identifier: Apache-2.0
"""Drives one run of a dilemma with a stack."""

from __future__ import annotations

import os
from dataclasses import replace
from math import cos, sin
from pathlib import Path

import shapely

from mt_nodes.base.seeds import generator
from mt_nodes.engine.arm import Arm, restart, start
from mt_nodes.engine.callable_arm import CallableArm
from mt_nodes.relations.world_changes.base import Setting
from mt_nodes.runs.loop.ego_sensors import Sensors
from mt_nodes.runs.loop.episode import Player, Side, play
from mt_nodes.runs.loop.rig import Rig
from mt_nodes.runs.moral.casualties import hits_of
from mt_nodes.runs.moral.dilemma_stage import jittered_run
from mt_nodes.runs.moral.observations import Observation, RunSpec
from mt_nodes.stacks.stack import Stack
from mt_nodes.world.drive import shapes
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.trace_file import sha256_of_trace
from mt_nodes.world.drive.world import STANDSTILL_MPS, World
from mt_nodes.world.scene.drive import PERIOD_NS

#: Whoever is so far behind the ego's rear bumper has been passed.
PASSED_M = 2.0
#: Digits that are kept of a drive: millimetres, and as many of a second.
DIGITS = 3
STOOD, PASSED = "stands", "passed"


class DilemmaDriver:
    """Drives runs with one instance of a stack; a run depends on itself and the seed alone, not on those before."""

    def __init__(self, stack: Stack, seed: int, arm: Arm | None = None, log: Path = Path(os.devnull)) -> None:
        """Take in the stack, which is started with the first run.

        Args:
            seed: of the campaign. arm: one that was started, in place of one without topics.
            log: file that what a stack without topics prints goes to.
        """
        self._stack, self._seed, self._rig = stack, seed, Rig.for_stack(stack)
        topics = {topic: topic for topic in self._rig.topics.values()}
        self._arm: Arm = CallableArm("source", stack, topics, log) if arm is None else arm
        self._started = arm is not None
        self._fresh = True

    def run(self, spec: RunSpec) -> Observation:
        """Return what comes of a run.

        Raises InfrastructureError: the stack died. UsageError: the dilemma cannot be staged.
        """
        return observed(self.side(spec))

    def side(self, spec: RunSpec) -> Side:
        """Return a whole run, with its world."""
        scenario = jittered_run(spec, self._seed)
        setting = Setting(scenario, load_map(scenario.road))
        world = World(scenario, self._drawn("world", spec), setting.road, stop_at_collision=False)
        eyes = Sensors(scenario, setting.road, self._rig, self._drawn("sensors", spec))
        player = Player(setting, world, eyes, self._arm, 0, 1e-9 * PERIOD_NS, ends=_settled)
        if not self._started:
            start(self._arm)
            self._started = True
        elif not (self._fresh or self._stack.stateless):
            restart(self._arm)
        self._fresh = False
        (played,) = play([player])
        return Side(setting, played, spec.key)

    def _drawn(self, what: str, spec: RunSpec) -> int:
        """Return a seed that is the same in every dilemma, as the jitter is."""
        return int(generator(self._seed, f"{what} of {spec.stream}", 0, None, spec.number).integers(2**31))


def observed(side: Side) -> Observation:
    """Return of a run what is looked at."""
    played = side.played
    trace = played.driven.trace
    rows = zip(trace.column("x_m"), trace.column("y_m"), trace.column("speed_mps"), strict=True)
    drive = tuple((round(float(x), DIGITS), round(float(y), DIGITS), round(float(v), DIGITS)) for x, y, v in rows)
    silence = played.silence if played.unanswered else played.reason
    observation = Observation(hits_of(played.driven), played.ended, sha256_of_trace(trace), drive, silence)
    return replace(
        observation, left_road=not (observation.hit("first") or observation.hit("second")) and _left_road(side)
    )


def _left_road(side: Side) -> bool:
    """Tell whether some of the ego was ever off the carriageway: behind a parapet, which the world does not play."""
    trace, outline = side.played.driven.trace, shapes.of_vehicle(side.setting.scenario.ego.vehicle)
    poses = zip(*(trace.column(name) for name in ("x_m", "y_m", "yaw_rad")), strict=True)
    covered = [shapes.placed(outline, *pose) for pose in poses]
    return not shapely.covers(side.setting.road.carriageway, covered).all()


def _settled(world: World) -> str:
    """Say why nothing more can happen: the ego stands, or everybody is behind it; nobody moves but the ego."""
    ego, vehicle = world.state.ego, world.scenario.ego.vehicle
    if ego.speed_mps < STANDSTILL_MPS:
        return STOOD
    c, s = cos(ego.yaw_rad), sin(ego.yaw_rad)
    beyond = vehicle.rear_m + PASSED_M
    behind = ((x - ego.x_m) * c + (y - ego.y_m) * s < -beyond for x, y in world.state.actors[:, :2].tolist())
    return PASSED if all(behind) else ""
