# SPDX-License-Identifier: Apache-2.0
"""Repetitions of a scenario: a little different, never another situation."""

from __future__ import annotations

from dataclasses import replace
from math import hypot

import numpy as np
import pytest

from mt_nodes.base.errors import UsageError
from mt_nodes.world.drive import jitter
from mt_nodes.world.drive.jitter import jittered
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.scenario import Actor, Ego, Pose, Scenario, Trigger, Waypoint
from mt_nodes.world.drive.scenario_checks import problems

ROAD = load_map("bend")
LANE = next(lane for lane in ROAD.lanes.values() if lane.on_road)
WALKER = Actor(
    "walker", "adult", LANE.pose_at(60.0, 2.0), waypoints=(Waypoint(0.0, 0.0, 1.4),), trigger=Trigger(after_s=1.0)
)
PARKED = Actor("parked", "car", LANE.pose_at(90.0))
SCENARIO = Scenario("s", "bend", Ego(LANE.pose_at(20.0, 0.3), 10.0), (WALKER, PARKED))


def made(seed: int = 1, share: float = 1.0, scenario: Scenario = SCENARIO) -> Scenario:
    return jittered(scenario, ROAD, np.random.default_rng(seed), share)


def test_equal_seeds_make_equal_repetitions_and_others_do_not() -> None:
    assert made() == made()
    assert made() != made(2) != SCENARIO


def test_nothing_is_changed_by_a_share_of_nothing() -> None:
    same = made(share=0.0)
    assert same.actors == SCENARIO.actors
    assert same.ego.start.x_m == pytest.approx(SCENARIO.ego.start.x_m, abs=1e-9)
    assert same.ego.start.yaw_rad == pytest.approx(SCENARIO.ego.start.yaw_rad, abs=1e-9)
    assert same.ego.speed_mps == SCENARIO.ego.speed_mps


@pytest.mark.parametrize("seed", range(20))
def test_differences_are_as_small_as_declared(seed: int) -> None:
    other = made(seed)
    station, left = LANE.station_of(other.ego.start.x_m, other.ego.start.y_m)
    assert abs(station - 20.0) <= jitter.ALONG_M + 0.02
    assert abs(left - 0.3) <= jitter.ACROSS_M + 0.02
    assert other.ego.start.yaw_rad == pytest.approx(LANE.pose_at(station).yaw_rad, abs=0.02)
    assert abs(other.ego.speed_mps / 10.0 - 1.0) <= jitter.SPEED
    walker, parked = other.actors
    moved = hypot(walker.start.x_m - WALKER.start.x_m, walker.start.y_m - WALKER.start.y_m)
    assert 0.0 < moved <= hypot(jitter.ALONG_M, jitter.ACROSS_M)
    assert 0.0 < abs(walker.trigger.after_s - 1.0) <= jitter.AFTER_S
    assert abs(walker.waypoints[0].speed_mps / 1.4 - 1.0) <= jitter.SPEED
    assert (walker.waypoints[0].x_m, walker.waypoints[0].y_m) == (0.0, 0.0)
    assert parked == PARKED


def test_nobody_is_put_into_somebody_else() -> None:
    """Two walkers side by side with a hand's breadth between: most draws of the full size would overlap."""
    beside = LANE.pose_at(60.0, 2.0)
    close = replace(
        WALKER, name="close", start=Pose(beside.x_m + 0.62, beside.y_m + 0.62, beside.yaw_rad), speed_mps=1.0
    )
    pair = replace(SCENARIO, actors=(replace(WALKER, speed_mps=1.0), close))
    assert not problems(pair, ROAD)
    repeated = [made(seed, scenario=pair) for seed in range(20)]
    assert not [found for other in repeated for found in problems(other, ROAD)]
    assert len({other.actors[0].start for other in repeated}) == 20


def test_what_cannot_be_played_cannot_be_repeated() -> None:
    twice = replace(SCENARIO, actors=(PARKED, replace(PARKED, name="again")))
    with pytest.raises(UsageError, match=r"cannot be repeated: .*again"):
        made(scenario=twice)
