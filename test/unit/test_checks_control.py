# SPDX-License-Identifier: Apache-2.0
"""Checks of commands and planned paths: what they ask of one pair, and what of control and sham."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Control, Output, Path
from mt_nodes.data.rotations import quaternion_of_yaw
from mt_nodes.data.transforms import Transform, TransformTree, pose_matrix
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.engine.judging import Answer, AnswerStatus, Engine, Offer
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.controls import CRAWL_MPS
from mt_nodes.relations.checks.path_checks import DISTANCES, LaneOffsetStable, PathDeviation, apart_m, resampled
from mt_nodes.relations.checks.speed_checks import (
    AccelerationWithin,
    SlowsDown,
    SpeedNotHigher,
    SpeedWithin,
    StartsMoving,
    Stops,
)
from mt_nodes.relations.checks.steering_checks import (
    KeepsCurrent,
    StaysBehind,
    SteeringMirrored,
    SteeringWithin,
    TurnsLeft,
    TurnsRight,
)
from mt_nodes.relations.relation import Relation

HOLDS, VIOLATED, NOTHING, ERROR = Outcome.HOLDS, Outcome.VIOLATED, Outcome.NOT_APPLICABLE, Outcome.ERROR
BUNDLE = Bundle(0, 0, 0)
NO_CHANGE = Effects()
MIRROR = np.diag([1.0, -1.0, 1.0, 1.0])
MIRRORED = Effects(output_transform=MIRROR, output_frame_id="base_link")


def says(steer: float = math.nan, **told: float) -> Output:
    """A command: ``v`` speed, ``a`` acceleration, ``w`` yaw rate, ``throttle``, ``brake``."""
    names = {"v": "speed_mps", "a": "acceleration_mps2", "w": "yaw_rate_radps"}
    return Output(control=Control(0, steer, **{names.get(name, name): value for name, value in told.items()}))


def judged(check: Check, source: Output, followup: Output, effects: Effects = NO_CHANGE) -> Judgement:
    judgement = check.judge(source, followup, effects, BUNDLE)
    assert judgement.unit, "everything measured has a unit"
    assert judgement.reason
    return judgement


TABLE: list[tuple[Check, Output, Output, Outcome]] = [
    (KeepsCurrent(), says(0.1, v=8.0), says(0.12, v=8.5), HOLDS),
    (KeepsCurrent(), says(0.1, v=8.0), says(0.1201, v=8.0), VIOLATED),
    (KeepsCurrent(), says(0.1, v=8.0), says(0.1, v=8.51), VIOLATED),
    (KeepsCurrent(tolerance_share=0.1), says(0.1, v=8.0), says(0.1, v=8.7), HOLDS),
    (KeepsCurrent(), says(0.1), says(0.1), HOLDS),
    (KeepsCurrent(), says(v=8.0), says(v=7.0), VIOLATED),
    (KeepsCurrent(), says(a=0.0), says(a=-0.6), VIOLATED),
    (KeepsCurrent(), says(throttle=0.3), says(throttle=0.35), HOLDS),
    (KeepsCurrent(), says(throttle=0.3), says(throttle=0.3, brake=0.2), VIOLATED),
    (KeepsCurrent(), says(0.1, v=8.0), says(v=8.0), VIOLATED),  # no steering any more
    (KeepsCurrent(), says(0.1, v=8.0), says(0.1), VIOLATED),
    (KeepsCurrent(), says(), says(0.1, v=8.0), NOTHING),
    (SlowsDown(), says(a=0.5), says(a=0.0), HOLDS),
    (SlowsDown(), says(a=0.5), says(a=0.1), VIOLATED),
    (SlowsDown(), says(a=-3.1), says(a=-3.1), NOTHING),  # brakes hard already
    (SlowsDown(), says(throttle=0.4), says(throttle=0.0, brake=0.1), HOLDS),
    (SlowsDown(), says(throttle=0.4, brake=0.0), says(throttle=0.35, brake=0.0), VIOLATED),
    (SlowsDown(), says(brake=0.6), says(brake=0.6), NOTHING),
    (SlowsDown(), says(v=8.0, a=0.0), says(v=8.0, a=-2.0), VIOLATED),  # what is told first counts
    (SlowsDown(by="acceleration"), says(v=8.0, a=0.0), says(v=8.0, a=-2.0), HOLDS),
    (SlowsDown(by="acceleration"), says(v=8.0), says(v=1.0), NOTHING),
    (SlowsDown(), says(v=8.0), says(0.1), VIOLATED),
    (SpeedNotHigher(), says(a=0.0), says(a=0.6), VIOLATED),
    (SpeedNotHigher(), says(throttle=0.3), says(throttle=0.4), HOLDS),
    (SpeedNotHigher(), says(throttle=0.3), says(throttle=0.41), VIOLATED),
    (SpeedNotHigher(), says(v=8.0), says(), VIOLATED),
    (Stops(), says(v=8.0), says(v=0.3), HOLDS),
    (Stops(), says(v=8.0), says(v=0.31), VIOLATED),
    (Stops(), says(v=0.9), says(v=0.9), NOTHING),
    (Stops(), says(a=0.0), says(a=-2.0), HOLDS),
    (Stops(), says(a=0.0), says(a=-1.9), VIOLATED),
    (Stops(), says(a=-2.5), says(a=-2.5), NOTHING),
    (Stops(), says(throttle=0.2, brake=0.0), says(throttle=0.0, brake=0.5), HOLDS),
    (Stops(), says(throttle=0.2, brake=0.0), says(throttle=0.2, brake=0.5), VIOLATED),
    (Stops(by="pedals"), says(v=8.0), says(v=0.0), NOTHING),
    (StaysBehind(), says(0.1, v=8.0), says(0.1, v=2.0), HOLDS),
    (StaysBehind(), says(0.1, v=8.0), says(0.12, v=8.5), HOLDS),
    (StaysBehind(), says(0.1, v=8.0), says(0.1, v=8.6), VIOLATED),
    (StaysBehind(), says(0.1, v=8.0), says(0.13, v=8.0), VIOLATED),
    (StaysBehind(), says(0.1, v=8.0), says(v=8.0), VIOLATED),
    (StartsMoving(), says(v=0.0), says(v=1.0), HOLDS),
    (StartsMoving(), says(v=0.3), says(v=0.99), VIOLATED),
    (StartsMoving(), says(v=0.0), says(v=-1.5), VIOLATED),
    (StartsMoving(), says(v=0.31), says(v=5.0), NOTHING),
    (StartsMoving(), says(a=0.0), says(a=0.5), HOLDS),
    (StartsMoving(), says(a=0.5), says(a=2.0), NOTHING),
    (StartsMoving(), says(throttle=0.0, brake=0.4), says(throttle=0.0, brake=0.4), VIOLATED),
    (TurnsLeft(), says(0.1), says(0.15), HOLDS),
    (TurnsLeft(), says(0.1), says(0.149), VIOLATED),
    (TurnsLeft(), says(0.1), says(-0.5), VIOLATED),
    (TurnsLeft(than="straight"), says(0.1), says(0.05), HOLDS),
    (TurnsLeft(than="straight"), says(0.1), says(0.04), VIOLATED),
    (TurnsLeft(of="yaw_rate"), says(w=0.0), says(w=0.06), HOLDS),
    (TurnsRight(), says(0.1), says(0.05), HOLDS),
    (TurnsRight(), says(0.1), says(0.06), VIOLATED),
    (TurnsRight(than="straight"), says(0.1), says(0.05), VIOLATED),
    (TurnsRight(), says(), says(0.1), NOTHING),
    (SpeedWithin(), says(v=8.0), says(v=8.5), HOLDS),
    (SpeedWithin(), says(v=8.0), says(v=7.49), VIOLATED),
    (SpeedWithin(tolerance_share=0.1), says(v=-8.0), says(v=-7.3), HOLDS),
    (SpeedWithin(), says(a=1.0), says(a=1.0), NOTHING),
    (SpeedWithin(), says(v=8.0), says(a=1.0), VIOLATED),
    (AccelerationWithin(), says(a=1.0), says(a=0.5), HOLDS),
    (AccelerationWithin(), says(v=8.0, a=1.0), says(v=8.0, a=0.4), VIOLATED),
    (AccelerationWithin(), says(v=8.0), says(v=8.0), NOTHING),
    (SteeringWithin(), says(0.1), says(v=8.0), VIOLATED),  # no steering any more
    (SteeringWithin(), says(0.1), says(v=0.05, w=0.0), NOTHING),  # it stands: the angle cannot be known
]


@pytest.mark.parametrize(("check", "source", "followup", "outcome"), TABLE)
def test_commands(check: Check, source: Output, followup: Output, outcome: Outcome) -> None:
    assert judged(check, source, followup).outcome is outcome


def test_what_is_told_of_a_deviation() -> None:
    judgement = judged(KeepsCurrent(), says(0.1, v=8.0), says(0.11, v=8.4))
    assert (judgement.measured, judgement.bound, judgement.margin) == (0.8, 1.0, 0.2)
    assert judgement.detail == {"off": {"rad": 0.01, "m/s": 0.4}}
    assert "speed was 8.00, is 8.40 m/s" in judgement.reason
    assert judged(Stops(), says(v=8.0), says(v=2.0)).margin == -1.7
    assert judged(TurnsRight(), says(0.1), says(-0.1)).measured == 0.2
    assert judged(KeepsCurrent(), says(0.1, v=8.0), says(v=8.0)).lost == 1
    with pytest.raises(UsageError, match=r"from_mps 0\.1 is below at_most_mps 0\.3"):
        Stops(from_mps=0.1)


@pytest.mark.parametrize("effects", [Effects(image_mirrored=True), MIRRORED])
def test_left_and_right_are_swapped_by_a_mirrored_image_and_by_a_mirrored_scene(effects: Effects) -> None:
    for check in (KeepsCurrent(), SteeringMirrored(), SteeringWithin()):
        assert judged(check, says(0.1, v=8.0), says(-0.1, v=8.0), effects).outcome is HOLDS
        assert judged(check, says(0.1, v=8.0), says(0.1, v=8.0), effects).outcome is VIOLATED
    assert judged(TurnsLeft(), says(0.1), says(-0.04), effects).outcome is HOLDS


@pytest.mark.parametrize(
    "matrix", [np.eye(4), np.diag([-1.0, -1.0, 1.0, 1.0]), pose_matrix((5.0, 0.0, 0.0), quaternion_of_yaw(0.3))]
)
def test_a_scene_that_is_turned_or_shifted_swaps_nothing(matrix: Any) -> None:
    assert not Effects(output_transform=matrix).mirrored
    assert judged(SteeringWithin(), says(0.1), says(0.1), Effects(output_transform=matrix)).outcome is HOLDS


def control_checks() -> list[Check]:
    made = [cls() for cls in plugins.catalogue("checks").values()]
    return [check for check in made if isinstance(check, Check) and check.needs == ("control",)]


finite = st.floats(-30.0, 30.0)
commands = st.builds(
    Control,
    st.just(0),
    steering_rad=st.floats(-0.6, 0.6),
    speed_mps=finite,
    acceleration_mps2=st.floats(-8.0, 8.0),
    yaw_rate_radps=st.just(math.nan) | st.floats(-1.0, 1.0),
    throttle=st.floats(0.0, 1.0),
    brake=st.floats(0.0, 1.0),
)


@settings(max_examples=50)
@given(commands)
def test_control_and_sham_hold_where_the_command_is_the_same(command: Control) -> None:
    """Whatever a check asks of a relation, its background may ask nothing of an input that did not change."""
    output = Output(control=command)
    for check in control_checks():
        judgement = check.background.judge(output, output, NO_CHANGE, BUNDLE)
        assert judgement.outcome in (HOLDS, NOTHING), f"{plugins.name_of(type(check))}: {judgement}"


@settings(max_examples=50)
@given(commands, commands)
def test_checks_that_ask_for_sameness_are_symmetric(one: Control, other: Control) -> None:
    a, b = Output(control=one), Output(control=other)
    for check in (KeepsCurrent(), SteeringWithin(), SpeedWithin(), AccelerationWithin()):
        there, back = judged(check, a, b), judged(check, b, a)
        assert (there.outcome, there.measured) == (back.outcome, back.measured)


@settings(max_examples=50)
@given(commands, commands)
def test_left_is_right_in_a_mirror(one: Control, other: Control) -> None:
    def flipped(control: Control) -> Output:
        return Output(
            control=replace(control, steering_rad=-control.steering_rad, yaw_rate_radps=-control.yaw_rate_radps)
        )

    left = judged(TurnsLeft(), Output(control=one), Output(control=other))
    right = judged(TurnsRight(), flipped(one), flipped(other))
    assert (left.outcome, left.measured, left.margin) == (right.outcome, right.measured, right.margin)


@settings(max_examples=50)
@given(commands, commands)
def test_who_slows_down_enough_is_not_faster_and_who_stops_slows_down(one: Control, other: Control) -> None:
    a, b = Output(control=one), Output(control=other)
    for by in ("speed", "acceleration", "pedals"):
        if judged(SlowsDown(by=by), a, b).outcome is HOLDS:
            assert judged(SpeedNotHigher(by=by, by_at_most_mps=0.0), a, b).outcome is HOLDS
    if judged(Stops(by="speed"), a, b).outcome is HOLDS:
        assert judged(SlowsDown(by="speed", by_at_least_mps=0.7), a, b).outcome is HOLDS


def test_a_yaw_rate_tells_no_angle_of_who_crawls() -> None:
    crawling = says(v=CRAWL_MPS / 2, w=0.1)
    assert judged(SteeringWithin(), crawling, crawling).outcome is NOTHING
    assert judged(SteeringWithin(of="yaw_rate"), crawling, crawling).outcome is HOLDS


def plans(
    offset: float = 0.0,
    bend: float = 0.0,
    until: float = 40.0,
    step: float = 1.0,
    frame: str = "base_link",
    start: float = 0.0,
) -> Output:
    x = np.arange(start, until + step / 2, step)
    return Output(path=Path.make(frame, 0, np.column_stack([x, offset + bend * x**2, np.zeros_like(x)])))


NO_PATH = Output(path=Path.make("base_link", 0, []))


@pytest.mark.parametrize(
    ("by", "source", "followup", "effects", "outcome", "measured"),
    [
        ("lateral", plans(), plans(0.5), NO_CHANGE, HOLDS, 0.5),
        ("lateral", plans(), plans(0.51), NO_CHANGE, VIOLATED, 0.51),
        ("hausdorff", plans(), plans(0.51), NO_CHANGE, VIOLATED, 0.51),
        ("frechet", plans(), plans(0.4), NO_CHANGE, HOLDS, 0.4),
        ("lateral", plans(), plans(until=12.0), NO_CHANGE, HOLDS, 0.0),  # who stops earlier has not left the path
        ("hausdorff", plans(), plans(until=12.0), NO_CHANGE, VIOLATED, 18.0),
        ("frechet", plans(), plans(until=12.0), NO_CHANGE, VIOLATED, 18.0),
        ("lateral", plans(until=12.0), plans(until=40.0), NO_CHANGE, HOLDS, 0.0),
        ("lateral", plans(), plans(start=-5.0), NO_CHANGE, HOLDS, 0.0),  # nor who begins behind it
        ("lateral", plans(), plans(step=3.7), NO_CHANGE, HOLDS, 0.0),  # other places on the same path
        ("frechet", plans(), plans(step=3.7), NO_CHANGE, HOLDS, 0.0),
        ("lateral", plans(bend=0.01), plans(bend=-0.01), MIRRORED, HOLDS, 0.0),
        ("lateral", plans(bend=0.01), plans(bend=-0.01), Effects(image_mirrored=True), HOLDS, 0.0),
        ("lateral", plans(bend=0.01), plans(bend=0.01), MIRRORED, VIOLATED, None),
        ("lateral", plans(), NO_PATH, NO_CHANGE, VIOLATED, None),
        ("lateral", plans(), plans(until=0.0), NO_CHANGE, VIOLATED, None),  # that is no path
        ("frechet", plans(), plans(until=0.0), NO_CHANGE, VIOLATED, 30.0),
        ("lateral", NO_PATH, plans(), NO_CHANGE, NOTHING, None),
        ("lateral", plans(until=0.0), plans(), NO_CHANGE, NOTHING, None),
        ("lateral", plans(), plans(frame="map"), NO_CHANGE, ERROR, None),
        ("lateral", plans(), plans(), Effects(output_transform=MIRROR, output_frame_id="moon"), ERROR, None),
    ],
)
def test_path_deviation(
    by: str, source: Output, followup: Output, effects: Effects, outcome: Outcome, measured: float | None
) -> None:
    judgement = judged(PathDeviation(by=by), source, followup, effects)
    assert judgement.outcome is outcome
    if measured is not None:
        assert judgement.measured == pytest.approx(measured, abs=0.01)


def test_a_path_is_compared_up_to_the_horizon_alone() -> None:
    bent = plans(bend=0.001)  # 0.4 m to the side after 20 m, 1.6 m after 40 m
    for by in DISTANCES:
        assert judged(PathDeviation(by=by, horizon_m=20.0), plans(), bent).outcome is HOLDS
        assert judged(PathDeviation(by=by, horizon_m=40.0), plans(), bent).outcome is VIOLATED


def test_a_mirror_of_the_scene_is_where_the_path_is_told_it_is() -> None:
    """The scene is mirrored in the ego's plane; the path is told in a frame whose x points to the ego's left."""
    tree = TransformTree([Transform("base_link", "odd", pose_matrix((0.0, 0.0, 0.0), quaternion_of_yaw(np.pi / 2)))])
    bundle = Bundle(0, 0, 0, transforms=tree)
    left, right = (np.column_stack([y, -np.arange(20.0), np.zeros(20)]) for y in (np.arange(20.0), -np.arange(20.0)))
    source, followup = (Output(path=Path.make("odd", 0, rows)) for rows in (left, right))
    assert PathDeviation(tolerance_m=0.01).judge(source, followup, MIRRORED, bundle).outcome is HOLDS
    assert PathDeviation(tolerance_m=0.01).judge(source, source, MIRRORED, bundle).outcome is VIOLATED


def test_lanes_are_looked_for_on_the_other_side_of_a_mirrored_scene() -> None:
    check = LaneOffsetStable(look_ahead_m=9.0)
    assert judged(check, plans(0.5), plans(-0.5), MIRRORED).outcome is HOLDS
    assert judged(check, plans(0.5), plans(0.5), MIRRORED).outcome is VIOLATED
    astray = Effects(output_transform=MIRROR, output_frame_id="moon")
    assert judged(check, plans(0.5), plans(0.5), astray).outcome is ERROR


@pytest.mark.parametrize(
    ("output", "says"),
    [
        (says(0.1, v=math.inf), "a command without a finite speed_mps"),
        (says(-math.inf, v=1.0, a=math.inf), "a command without a finite steering_rad, acceleration_mps2"),
        (Output(path=Path.make("base_link", 0, [[0.0, 0.0, 0.0], [1.0, math.nan, 0.0]])), "1 of 2 places of its path"),
    ],
)
def test_what_no_actuator_can_be_told_is_an_error(output: Output, says: str) -> None:
    needs = "path" if output.path is not None else "control"
    check: Check = PathDeviation() if needs == "path" else SpeedNotHigher(by_at_most_mps=50.0)
    good = plans() if needs == "path" else Output(control=Control(0, speed_mps=1.0))
    judge = Relation("r", "expected", "", (), check)
    for name, pair in (("source", (output, good)), ("follow-up", (good, output))):
        answers = (Answer(AnswerStatus.ANSWERED, pair[0]), Answer(AnswerStatus.ANSWERED, pair[1]))
        (verdict,) = Engine(True).judge(Offer(judge, (judge,)), BUNDLE, answers, NO_CHANGE)
        assert verdict.outcome is ERROR and f"the {name} output has {says}" in verdict.judgement.reason


places = st.lists(st.tuples(st.floats(-20, 20), st.floats(-20, 20)), min_size=2, max_size=8)


@settings(max_examples=60)
@given(places, places)
def test_distances_of_paths(a: Any, b: Any) -> None:
    one, other = (resampled(np.array(rows), 30.0, 1.0) for rows in (a, b))
    far = {by: apart_m(one, other, by) for by in DISTANCES}
    assert all(apart_m(one, one, by) == pytest.approx(0.0, abs=1e-6) for by in DISTANCES)
    for by in ("hausdorff", "frechet"):
        assert far[by] == pytest.approx(apart_m(other, one, by))
    # Each place of one line has its partner in the other, in order: no nearer than the nearest.
    assert far["frechet"] >= far["hausdorff"] - 1e-9


@settings(max_examples=60)
@given(places, st.floats(1.0, 50.0), st.floats(0.1, 3.0))
def test_places_along_a_path_are_evenly_spaced_and_keep_both_ends(rows: Any, horizon_m: float, step_m: float) -> None:
    path = np.array(rows)
    made = resampled(path, horizon_m, step_m)
    length = np.hypot(*np.diff(path, axis=0).T).sum()
    assert len(made) >= 2
    np.testing.assert_allclose(made[0], path[0])
    if length <= horizon_m:
        np.testing.assert_allclose(made[-1], path[-1], atol=1e-9)
    assert (np.hypot(*np.diff(made, axis=0).T) <= step_m + 1e-9).all()
