# SPDX-License-Identifier: Apache-2.0
"""The reference pilot: the planner that sees by LiDAR, on its own and in a world."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from looped import Drive, crossing, driven, over_the_line, standing, street
from told_worlds import PERIOD_NS, START_NS, lights
from told_worlds import street as route

from mt_nodes.base.errors import UsageError
from mt_nodes.data.messages import Odometry
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.callables import with_faults
from mt_nodes.stacks.reference.faults.base import Points
from mt_nodes.stacks.reference.pilot import GroundTracker, Pilot, _lasts, _moves, _roadside
from mt_nodes.stacks.reference.tracker import Track
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.scene.lidar import hdl_64e

#: Half as fine as the real one, which is twice as quick.
LIDAR = replace(hdl_64e(), azimuths=900)


def cloud_of(x_m: float, y_m: float, length_m: float = 0.2) -> Points:
    """Somebody's returns in ``base_link``, a person's unless he is longer, and some of the road."""
    shape = [
        (x_m + dx, y_m + dy, z, 0.5)
        for z in np.linspace(0.1, 1.7, 17)
        for dx in np.arange(0.0, length_m + 0.1, 0.2)
        for dy in (-0.2, 0.0, 0.2)
    ]
    ground = [(x, y, 0.0, 0.2) for x in np.arange(3.0, 40.0, 0.5) for y in np.arange(-6.0, 6.0, 0.5)]
    return np.array(shape + ground, dtype=np.float32)


def seen_while_turning(walks_mps: float, count: int = 25) -> tuple[Detections, Odometry, tuple[float, float]]:
    """What is seen at last of a person who walks north at (15, 3) while the vehicle drives a bend to the left."""
    tracker, x, y, yaw = GroundTracker(), 0.0, 0.0, 0.0
    for i in range(count):
        place = 15.0, 3.0 + walks_mps * 0.1 * i
        dx, dy = place[0] - x, place[1] - y
        ahead, left = math.cos(yaw) * dx + math.sin(yaw) * dy, math.cos(yaw) * dy - math.sin(yaw) * dx
        odometry = Odometry("map", None, x, y, yaw, 4.0, 0.2)
        found = tracker.follow(cloud_of(ahead, left), odometry, START_NS + i * PERIOD_NS)
        assert found is not None
        x, y, yaw = x + 0.4 * math.cos(yaw + 0.01), y + 0.4 * math.sin(yaw + 0.01), yaw + 0.02
    return found, odometry, (ahead, left)


@pytest.mark.parametrize("walks_mps", [0.0, 1.5])
def test_velocities_are_over_the_ground_however_the_vehicle_moves(walks_mps: float) -> None:
    found, odometry, place = seen_while_turning(walks_mps)
    assert len(found) == 1 and found.frame_id == "base_link"
    assert found.center_m[0, :2] == pytest.approx(place, abs=0.3)
    north = walks_mps * np.array([math.sin(odometry.yaw_rad), math.cos(odometry.yaw_rad)])
    assert found.velocity_mps[0, :2] == pytest.approx(north, abs=0.3 if walks_mps else 1e-9)


def test_a_track_is_not_believed_to_move_before_it_is_known() -> None:
    found, _, _ = seen_while_turning(1.5, 3)
    assert len(found) == 1 and not found.velocity_mps.any()


def objects_of(*rows: tuple[float, float, float, float]) -> Detections:
    """Objects at x, y with length and speed ahead."""
    table = np.array(rows)
    center, velocity = (np.pad(table[:, part], ((0, 0), (0, fill))) for part, fill in (((0, 1), 1), ((3,), 2)))
    size = np.column_stack([table[:, 2], np.full((len(table), 2), 0.6)])
    return Detections.make("base_link", None, center, size, velocity_mps=velocity)


def test_what_is_long_and_far_beside_the_way_stands() -> None:
    seen = objects_of((20.0, 6.0, 9.0, 3.0), (20.0, 0.0, 9.0, 3.0), (20.0, -6.0, 0.5, 3.0))
    told = _roadside(seen, Odometry("map", None, 5.0, 0.0, 0.0, 8.0), route())
    assert told.velocity_mps[:, 0].tolist() == [0.0, 3.0, 3.0]
    turned = _roadside(seen, Odometry("map", None, 5.0, 6.0, 0.0, 8.0), route())
    assert turned.velocity_mps[:, 0].tolist() == [0.0, 0.0, 3.0], "beside the way, not beside the vehicle"


def test_who_moves_is_neither_too_slow_nor_too_fast_for_what_he_is() -> None:
    cases = [(0.5, 0.4), (0.5, 1.4), (0.5, 9.0), (4.0, 1.4), (4.0, 9.0)]
    moves = _moves(objects_of(*[(20.0, 0.0, length, speed) for length, speed in cases]))
    assert moves.tolist() == [False, True, False, False, True]


def test_of_those_that_are_not_seen_any_more_people_are_kept() -> None:
    box = objects_of((20.0, 0.0, 0.5, 1.0))
    for label, misses, lasts in (("car", 0, True), ("car", 1, False), ("unknown", 1, False), ("pedestrian", 1, True)):
        track = Track(1, replace(box, label=np.array([label])), np.zeros(3), misses=misses)
        assert _lasts(track) is lasts


@pytest.mark.parametrize(("length_m", "kept"), [(0.2, 1), (4.0, 0)])
def test_a_tracker_on_the_ground_keeps_people_who_are_not_seen_any_more(length_m: float, kept: int) -> None:
    tracker, here = GroundTracker(), Odometry("map", None, 0.0, 0.0, 0.0, 0.0)
    for i in range(5):
        found = tracker.follow(cloud_of(15.0, 1.0, length_m), here, START_NS + i * PERIOD_NS)
    assert found is not None and len(found) == 1
    gone = tracker.follow(cloud_of(15.0, 1.0, length_m)[:0], here, START_NS + 5 * PERIOD_NS)
    assert gone is not None and len(gone) == kept


@pytest.mark.parametrize(("y_m", "moves"), [(6.0, False), (1.0, True)])
def test_a_pilot_takes_no_house_for_somebody_who_moves(y_m: float, moves: bool) -> None:
    pilot, here = Pilot(), Odometry("map", None, 0.0, 0.0, 0.0, 0.0)
    for i in range(10):
        told = {"points": cloud_of(12.0 + 0.4 * i, y_m, 4.0), "odometry": here, "route": route()}
        output = pilot(told, START_NS + i * PERIOD_NS)
    assert output.detections is not None and len(output.detections) == 1
    assert bool(output.detections.velocity_mps[0, 0] > 2.0) is moves


def test_it_says_what_it_sees_and_forgets_when_told() -> None:
    pilot = Pilot()
    told = {
        "points": cloud_of(18.0, 0.0),
        "odometry": Odometry("map", None, 5.0, 0.0, 0.0, 8.0),
        "route": route(),
        "signals": lights(),
    }
    for i in range(5):
        output = pilot(told, START_NS + i * PERIOD_NS)
    assert output.detections is not None and output.detections.label.tolist() == ["pedestrian"]
    assert output.control is not None and output.control.speed_mps < 8.0
    pilot.reset()
    again = pilot(told, START_NS + 5 * PERIOD_NS)
    assert again.detections is not None and len(again.detections) == 0
    assert again.control is not None and again.control.speed_mps > 8.0


def test_it_takes_faults_of_its_eyes_and_of_the_planner_and_no_others() -> None:
    stack = load_stack("reference_pilot")
    for name in ("grid_index_wrap", "all_taken_to_stand"):
        assert with_faults(stack, (name,)).params["faults"] == [name]
    with pytest.raises(UsageError, match="takes those of lidar and planner stacks"):
        with_faults(stack, ("brakes_on_or_off",))
    with pytest.raises(UsageError, match="takes those of planner stacks"):
        with_faults(load_stack("reference_planner"), ("grid_index_wrap",))


# --- at the wheel


def piloted(*actors: Any, seconds: float, road: str = "straight", **more: Any) -> Drive:
    scenario = street(*actors, speed_mps=10.0, seconds=seconds, road=road)
    return driven(scenario, stack="reference_pilot", lidar=LIDAR, **more)


@lru_cache
def stopping(*faults: str) -> Drive:
    return piloted(standing("a", 60.0, 0.2), seconds=9.0, faults=faults)


def test_it_stops_for_who_stands_in_its_lane() -> None:
    drive = stopping()
    assert drive.hit == () and drive.speed_mps[-1] < 0.3 and drive.braking_mps2 < 5.0
    assert 1.0 < 60.0 - drive.trace.ego[-1, 0] - 3.8 < 4.0


@pytest.mark.long  # the planner does: test_reference_planner_drives.py
def test_it_lets_people_cross_and_drives_on() -> None:
    drive = piloted(crossing("a", 60.0, 32.0), seconds=10.0)
    assert drive.hit == () and drive.speed_mps.min() < 5.0 and drive.speed_mps[-1] > 5.0


@pytest.mark.long  # the planner does: test_reference_planner_drives.py
def test_who_stands_beside_the_lane_is_no_reason_to_brake() -> None:
    aside = [standing(f"a{i}", 40.0 + 9.0 * i, side * 3.4 - 0.7) for i, side in enumerate((1, -1) * 3)]
    drive = piloted(*aside, seconds=7.0)
    assert drive.speed_mps.min() > 9.7 and np.abs(drive.left_m).max() < 0.1


def test_it_evades_who_comes_over_the_line() -> None:
    drive = piloted(over_the_line(), road="two_way", seconds=12.0)
    assert drive.hit == () and drive.left_m.min() < -0.3


def test_a_fault_of_its_eyes_shows_at_the_wheel() -> None:
    """Beyond 28 m nobody is seen, so that it brakes later than it should for somebody 40 m ahead."""
    honest, faulty = stopping(), stopping("fixed_range_gate")
    before = faulty.trace.ego[:, 0] < 60.0 - 29.0
    assert faulty.speed_mps[before].min() > 9.9 and honest.speed_mps[before].min() < 9.7
