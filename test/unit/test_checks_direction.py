# SPDX-License-Identifier: Apache-2.0
"""Which way a vehicle goes: speeds with a sign, vehicles that reverse, paths that run backwards or nowhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_checks_control import (
    BUNDLE,
    HOLDS,
    MIRRORED,
    NO_CHANGE,
    NOTHING,
    VIOLATED,
    commands,
    judged,
    plans,
    says,
)

from mt_nodes.data.outputs import Control, Output, Path
from mt_nodes.data.verdict import Outcome
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.controls import STANDS_MPS, FasterOrSlower, faster_by
from mt_nodes.relations.checks.path_checks import DISTANCES, LaneOffsetStable, PathDeviation
from mt_nodes.relations.checks.speed_checks import SlowsDown, SpeedNotHigher, SpeedWithin, Stops
from mt_nodes.relations.checks.steering_checks import KeepsCurrent, SteeringWithin, TurnsLeft, TurnsRight

SPEEDS: list[tuple[Check, float, float, Outcome]] = [
    (Stops(), 8.0, -10.0, VIOLATED),
    (Stops(), 8.0, -0.3, HOLDS),
    (Stops(), 8.0, -0.31, VIOLATED),
    (Stops(), -8.0, 0.0, HOLDS),
    (Stops(), -8.0, -8.0, VIOLATED),
    (Stops(), -0.9, -0.9, NOTHING),
    (SlowsDown(), 8.0, -10.0, VIOLATED),
    (SlowsDown(), 8.0, -2.0, VIOLATED),  # to drive back is not to slow down
    (SlowsDown(), 8.0, -0.2, HOLDS),
    (SlowsDown(), -8.0, -7.5, HOLDS),
    (SlowsDown(), -8.0, -8.5, VIOLATED),
    (SlowsDown(), -8.0, 2.0, VIOLATED),
    (SlowsDown(by_at_least_share=0.2), -8.0, -6.5, VIOLATED),
    (SlowsDown(), -0.9, -0.9, NOTHING),
    (SpeedNotHigher(), 8.0, -10.0, VIOLATED),
    (SpeedNotHigher(), 8.0, -2.0, VIOLATED),
    (SpeedNotHigher(), 8.0, -0.5, HOLDS),
    (SpeedNotHigher(), 0.0, -0.6, VIOLATED),
    (SpeedNotHigher(), -8.0, -8.4, HOLDS),
    (SpeedNotHigher(), -8.0, -8.6, VIOLATED),
    (SpeedNotHigher(), -8.0, -2.0, HOLDS),
    (SpeedNotHigher(), -8.0, 2.0, VIOLATED),
    (SpeedWithin(), 8.0, -8.0, VIOLATED),
    (KeepsCurrent(), 8.0, -8.0, VIOLATED),
]


@pytest.mark.parametrize(("check", "before", "after", "outcome"), SPEEDS)
def test_speeds_have_a_direction(check: Check, before: float, after: float, outcome: Outcome) -> None:
    assert judged(check, says(v=before), says(v=after)).outcome is outcome


@pytest.mark.parametrize("check", [SlowsDown(by="acceleration"), SpeedNotHigher(by="acceleration")])
def test_whoever_reverses_gets_slower_by_a_positive_acceleration(check: Check) -> None:
    assert judged(check, says(v=-8.0, a=0.0), says(v=-8.0, a=1.0)).outcome is HOLDS
    assert judged(check, says(v=-8.0, a=0.0), says(v=-8.0, a=-1.0)).outcome is VIOLATED
    assert judged(check, says(v=8.0, a=0.0), says(v=-10.0, a=-1.0)).outcome is VIOLATED
    assert judged(Stops(by="acceleration"), says(v=-8.0, a=0.0), says(v=-8.0, a=2.0)).outcome is HOLDS
    assert judged(Stops(by="acceleration"), says(v=-8.0, a=0.0), says(v=-8.0, a=-2.0)).outcome is VIOLATED


def test_the_same_yaw_rate_is_another_angle_for_whoever_reverses() -> None:
    for check in (SteeringWithin(), KeepsCurrent(tolerance_mps=50.0)):
        assert judged(check, says(v=8.0, w=0.4), says(v=-8.0, w=0.4)).outcome is VIOLATED
        assert judged(check, says(v=8.0, w=0.4), says(v=-8.0, w=-0.4)).outcome is HOLDS
    assert judged(TurnsLeft(), says(v=8.0, w=0.0), says(v=-8.0, w=0.4)).outcome is VIOLATED
    assert judged(TurnsLeft(), says(v=-8.0, w=0.0), says(v=-8.0, w=-0.4)).outcome is HOLDS
    assert judged(TurnsRight(), says(v=-8.0, w=0.0), says(v=-8.0, w=0.4)).outcome is HOLDS
    assert judged(SteeringWithin(of="yaw_rate"), says(0.1, v=8.0), says(0.1, v=-8.0)).outcome is VIOLATED


def reversed_(control: Control) -> Output:
    back = replace(control, speed_mps=-control.speed_mps, acceleration_mps2=-control.acceleration_mps2)
    return Output(control=back)


@settings(max_examples=100)
@given(commands, commands, st.sampled_from(["speed", "acceleration", "pedals"]))
def test_backwards_is_judged_as_forwards(one: Control, other: Control, by: str) -> None:
    checks: list[FasterOrSlower] = [Stops(by=by), SlowsDown(by=by), SpeedNotHigher(by=by)]
    if by == "acceleration" and min(abs(one.speed_mps), abs(other.speed_mps)) <= 0.1:
        return  # of who stands an acceleration is taken for one forwards
    for check in checks:
        there, back = judged(check, Output(control=one), Output(control=other)), None
        back = judged(check, reversed_(one), reversed_(other))
        assert (there.outcome, there.measured, there.margin) == (back.outcome, back.measured, back.margin)


mps = st.floats(-30.0, 30.0)


@settings(max_examples=200)
@given(mps, mps)
def test_no_check_of_speed_holds_for_whoever_drives_the_other_way(before: float, after: float) -> None:
    source, followup = says(v=before), says(v=after)
    other_way = before * after < 0.0 and abs(after) > 0.5
    for check in (Stops(), SlowsDown(), SpeedNotHigher(), SpeedWithin(tolerance_mps=0.4)):
        held = judged(check, source, followup).outcome is HOLDS
        assert not (held and other_way), check
        assert not (held and abs(after) > abs(before) + 0.5), check
    assert (float(faster_by(before, after)) > 0.0) == (abs(after) > abs(before) or (
        before * after < 0.0 and abs(after) > STANDS_MPS))  # fmt: skip


def path(*rows: tuple[float, float]) -> Output:
    return Output(path=Path.make("base_link", 0, [(x, y, 0.0) for x, y in rows]))


def turned(output: Output) -> Output:
    assert output.path is not None
    return Output(path=Path.make("base_link", 0, output.path.pose[::-1]))


AHEAD, BACK = plans(), path(*((-x, 0.0) for x in np.arange(0.0, 40.0)))
RETURNS = path(*((x, 0.0) for x in [*np.arange(0.0, 15.0), *np.arange(15.0, 0.0, -1.0)]))
PATHS: list[tuple[str, Output, Output, Outcome]] = [
    ("lateral", AHEAD, BACK, VIOLATED),
    ("lateral", AHEAD, turned(AHEAD), VIOLATED),
    ("lateral", AHEAD, RETURNS, VIOLATED),
    ("lateral", AHEAD, path((0.0, 0.0), (-0.6, 0.0)), VIOLATED),  # a short way back is within every tolerance
    ("lateral", AHEAD, path((0.0, 0.0)), VIOLATED),
    ("lateral", AHEAD, path((3.0, 0.0), (3.0, 0.0)), VIOLATED),
    ("lateral", AHEAD, path((0.0, 0.0), (0.6, 0.0)), HOLDS),
    ("lateral", path((0.0, 0.0), (0.0, 0.0)), AHEAD, NOTHING),
    ("lateral", path((0.0, 0.0), (0.1, 0.0)), BACK, NOTHING),
    ("lateral", BACK, BACK, HOLDS),
    ("lateral", BACK, AHEAD, VIOLATED),
    ("lateral", RETURNS, RETURNS, HOLDS),
    ("hausdorff", AHEAD, turned(plans(until=30.0)), VIOLATED),
    ("hausdorff", path((0.0, 0.0), (0.0, 0.0)), path((0.1, 0.0)), HOLDS),
    ("frechet", AHEAD, turned(plans(until=30.0)), VIOLATED),
    ("frechet", RETURNS, RETURNS, HOLDS),
]


@pytest.mark.parametrize(("by", "source", "followup", "outcome"), PATHS)
def test_paths_have_a_direction(by: str, source: Output, followup: Output, outcome: Outcome) -> None:
    assert judged(PathDeviation(by=by), source, followup).outcome is outcome


bends = st.builds(plans, st.just(0.0), st.floats(-0.01, 0.01), st.floats(3.0, 40.0), st.floats(0.2, 2.0))


@settings(max_examples=50)
@given(bends, st.sampled_from(DISTANCES))
def test_no_path_is_near_itself_turned_around(one: Output, by: str) -> None:
    assert judged(PathDeviation(by=by), one, one).outcome is HOLDS
    assert judged(PathDeviation(by=by), one, turned(one)).outcome is VIOLATED
    assert judged(PathDeviation(by=by), turned(one), turned(one)).outcome is HOLDS
    mirrored = turned(one)
    assert judged(PathDeviation(by=by), one, mirrored, MIRRORED).outcome is VIOLATED


@settings(max_examples=50)
@given(bends, st.floats(-0.3, 0.3), st.randoms(use_true_random=False))
def test_a_path_that_wavers_is_not_one_that_turns(one: Output, aside_m: float, random: Any) -> None:
    assert one.path is not None
    wavering = [(x + random.uniform(-0.05, 0.05), y + aside_m + random.uniform(-0.05, 0.05), 0.0)
                for x, y, _ in one.path.pose]  # fmt: skip
    judgement = judged(PathDeviation(), one, Output(path=Path.make("base_link", 0, wavering)))
    assert judgement.outcome is HOLDS, judgement


@pytest.mark.parametrize("followup", [turned(AHEAD), BACK, path((3.0, 0.0))])
def test_a_lane_that_does_not_lead_ahead_is_none(followup: Output) -> None:
    assert judged(LaneOffsetStable(), AHEAD, followup).outcome is VIOLATED
    assert judged(LaneOffsetStable(), followup, AHEAD).outcome is NOTHING
    assert LaneOffsetStable().judge(AHEAD, AHEAD, NO_CHANGE, BUNDLE).outcome is HOLDS
