# SPDX-License-Identifier: Apache-2.0
"""Times the closed loop's world and sensors: seconds of the world in a second, by what the stack is given.

``python scripts/bench_drive.py`` prints a table; ``--json`` the figures. No stack takes part: the ego is told to keep
its speed. Processor time is of all threads; beside it stands the factor that so much of it allows on two cores.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from mt_nodes.data.outputs import Control
from mt_nodes.runs.loop.ego_sensors import Sensors
from mt_nodes.runs.loop.rig import Rig, windscreen_camera
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.scenario import Actor, Ego, Environment, Scenario
from mt_nodes.world.drive.world import World
from mt_nodes.world.scene.lidar import hdl_64e
from mt_nodes.world.scene.objects import KINDS

Row = dict[str, Any]
PERIOD_S = 0.1
#: Seconds of the world in a second on two cores that are meant to be kept, by what the stack is given.
GOALS = {"objects": 10.0, "lidar": 1.0, "lidar and camera": 0.5}
_KINDS = ("adult", "car", "child", "van", "dog", "car", "elderly", "bus", "wheelchair_user", "motor_cyclist")


def scenario(road: RoadMap, actors: int, environment: Environment) -> Scenario:
    """Return a drive of 8 m/s along a street whose pavements are busy: people walk, vehicles are parked."""
    lane = next(lane for lane in road.lanes.values() if lane.on_road)
    busy = []
    for i in range(actors):
        kind = _KINDS[i % len(_KINDS)]
        walks = KINDS[kind].label in ("pedestrian", "animal")
        place = lane.pose_at(30.0 + 6.0 * i, (7.0 if i % 4 else -6.0) if walks else -2.9)
        busy.append(Actor(f"actor_{i}", kind, place, 1.2 if walks else 0.0, tone=i * 0.618 % 1.0))
    ego = Ego(lane.pose_at(10.0), 8.0)
    return Scenario("bench", road.name, ego, tuple(busy), environment=environment, duration_s=1e3)


def rigs() -> dict[str, Rig]:
    """Return what a stack may be given, by name."""
    camera = windscreen_camera()
    return {"objects": Rig(), "lidar": Rig(hdl_64e()), "lidar and camera": Rig(hdl_64e(), camera)}


def measure(name: str, rig: Rig, drive: Scenario, steps: int) -> Row:
    """Return the times of a step: the world goes on, and all that the stack is given is made."""
    world = World(drive)
    sensors = Sensors(drive, world.road, rig, seed=1)
    keep = Control(None, steering_rad=0.0, speed_mps=drive.ego.speed_mps)
    wall, cpu = [], []
    for index in range(steps + 2):  # the first two make ready what is made once
        begun = time.perf_counter(), time.process_time()
        world.step(keep, (index + 1) * PERIOD_S)
        sensors.observe(world.state, 0, index)
        wall.append(time.perf_counter() - begun[0])
        cpu.append(time.process_time() - begun[1])
    if world.ended:
        raise RuntimeError(f"the drive ended after {world.state.time_s:g} s: {world.ended}")
    wall_s, cpu_s = (float(np.median(times[2:])) for times in (wall, cpu))
    return {
        "given": name,
        "wall_ms": 1e3 * wall_s,
        "cpu_ms": 1e3 * cpu_s,
        "factor": PERIOD_S / wall_s,
        "factor_on_two_cores": PERIOD_S / cpu_s * (2.0 if rig.lidar or rig.camera else 1.0),
        "goal": GOALS[name],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--actors", type=int, default=20)
    parser.add_argument("--fog", type=float, default=0.0)
    parser.add_argument("--rain", type=float, default=0.0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    drive = scenario(load_map("straight"), given.actors, Environment(fog=given.fog, rain=given.rain))
    rows = [measure(name, rig, drive, given.steps) for name, rig in rigs().items()]
    if given.json:
        print(json.dumps(rows, indent=1))
        return
    table = Table("given", "wall ms", "CPU ms", "times real time", "by CPU on two cores", "goal")
    for row in rows:
        figures = [f"{row[key]:.1f}" for key in ("wall_ms", "cpu_ms", "factor", "factor_on_two_cores", "goal")]
        table.add_row(row["given"], *figures)
    Console().print(table)


if __name__ == "__main__":
    main()
