# SPDX-License-Identifier: Apache-2.0
"""Checks of drives, on drives made by hand, and the distance of two ways against a plain reckoning of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_drives import box, pedestrian, setting

from mt_nodes.base import plugins
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Output
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.drive_checks import (
    BrakesNoLater,
    ClearanceNotLess,
    CollisionsNotMore,
    ComfortNotWorse,
    DrivesNoFaster,
    SameTrace,
)
from mt_nodes.relations.checks.place_checks import (
    DrivesNoFasterThere,
    KeepsWayThere,
    SlowsDownThere,
    StopsThere,
    TurnsLeftThere,
    TurnsRightThere,
)
from mt_nodes.relations.checks.trace_check import TraceCheck
from mt_nodes.relations.world_changes.base import WorldEffects
from mt_nodes.relations.world_changes.scenario_carry import Carry
from mt_nodes.world.drive.clearance import least_m
from mt_nodes.world.drive.deviation import ALIGNMENTS, apart_m
from mt_nodes.world.drive.driven import ScenarioTrace
from mt_nodes.world.drive.trace import Collision, Trace

HOLDS, VIOLATED, NOTHING = Outcome.HOLDS, Outcome.VIOLATED, Outcome.NOT_APPLICABLE
SCENARIO = setting(pedestrian(30.0, 3.0), obstacles=(box(50.0, -3.0),)).scenario
STEP_S = 0.1


def drive(
    speed: Any = 10.0, y_m: Any = 0.0, rows: int = 31, acceleration: Any = None, ended: str = "time", hits: Any = ()
) -> ScenarioTrace:
    """Return a drive east, backwards to the west, at given speeds (rows,), beside the lane's middle by ``y_m``."""
    time_s = STEP_S * np.arange(rows)
    v = np.broadcast_to(np.asarray(speed, dtype=float), rows)
    x = 20.0 + np.concatenate([[0.0], np.cumsum(v[:-1] * STEP_S)])
    y = np.broadcast_to(np.asarray(y_m, dtype=float), rows)
    ahead = np.where(v[:-1] < 0.0, -1.0, 1.0)
    yaw = np.concatenate([np.arctan2(ahead * np.diff(y), ahead * np.diff(x)), [0.0]])
    a = np.gradient(v, STEP_S) if acceleration is None else np.broadcast_to(acceleration, rows)
    ego = np.column_stack([x, y, yaw, v, a, np.zeros(rows)])
    there = [(p.start.x_m, p.start.y_m, p.start.yaw_rad, 0.0) for p in SCENARIO.actors]
    actors = np.broadcast_to(np.array(there), (rows, len(there), 4))
    commands, said = np.full((rows, 3), np.nan), np.ones(rows, dtype=bool)
    names = tuple(p.name for p in SCENARIO.actors)
    return ScenarioTrace(Trace("made", time_s, ego, actors, names, commands, said, tuple(hits), ended), SCENARIO)


def hit(name: str, closing_mps: float = 5.0) -> Collision:
    return Collision(1.0, name, "adult", 0.0, 0.0, "front", 5.0, closing_mps)


def judged(
    check: TraceCheck, source: ScenarioTrace, followup: ScenarioTrace, effects: WorldEffects | None = None
) -> Judgement:
    return check.judge_drives(source, followup, effects or WorldEffects())


def braking(at_row: int, by_mps2: float = 3.0, rows: int = 31) -> ScenarioTrace:
    a = np.where(np.arange(rows) >= at_row, -by_mps2, 0.0)
    return drive(10.0 + np.concatenate([[0.0], np.cumsum(a[:-1] * STEP_S)]), acceleration=a, rows=rows)


SWERVE = 2.0 * np.sin(np.pi * np.arange(31) / 30.0)
TABLE: list[tuple[TraceCheck, ScenarioTrace, ScenarioTrace, WorldEffects | None, Outcome, float | None]] = [
    (SameTrace(), drive(), drive(), None, HOLDS, 0.0),
    (SameTrace(), drive(), drive(y_m=0.4), None, HOLDS, 0.4),
    (SameTrace(), drive(), drive(y_m=0.6), None, VIOLATED, 0.6),
    (SameTrace(by="time"), drive(), drive(10.3), None, VIOLATED, 0.9),
    (SameTrace(within_s=0.1, tolerance_m=0.6), drive(), drive(10.3), None, HOLDS, 0.51),
    (SameTrace(by="dtw"), drive(), drive(y_m=SWERVE), None, VIOLATED, None),
    (SameTrace(by="dtw", tolerance_m=1.5), drive(), drive(y_m=SWERVE), None, HOLDS, None),
    (SameTrace(tolerance_m=1.5), drive(), drive(y_m=SWERVE), None, VIOLATED, 2.0),
    (SameTrace(), drive(), drive(rows=33), None, HOLDS, 0.0),
    (SameTrace(), drive(), drive(rows=36), None, VIOLATED, None),
    (SameTrace(), drive(), drive(ended="collision"), None, VIOLATED, None),
    (SameTrace(), drive(hits=[hit("walker")]), drive(), None, VIOLATED, None),
    (SameTrace(), drive(y_m=SWERVE), drive(y_m=-SWERVE), None, VIOLATED, None),
    (SameTrace(), drive(y_m=SWERVE), drive(y_m=-SWERVE), WorldEffects(Carry(mirrored=True)), HOLDS, 0.0),
    (SameTrace(), drive(y_m=SWERVE), drive(y_m=SWERVE), WorldEffects(Carry(mirrored=True)), VIOLATED, None),
    (SameTrace(), drive(), drive(y_m=3.0), WorldEffects(Carry(y_m=3.0)), HOLDS, 0.0),
    (ClearanceNotLess(), drive(), drive(y_m=0.2), None, HOLDS, 0.2),
    (ClearanceNotLess(), drive(), drive(y_m=0.5), None, VIOLATED, 0.5),
    (ClearanceNotLess(), drive(), drive(y_m=-0.5), None, HOLDS, None),
    (ClearanceNotLess(), drive(rows=2), drive(rows=2), None, NOTHING, None),
    (CollisionsNotMore(), drive(), drive(), None, HOLDS, 0.0),
    (CollisionsNotMore(), drive(), drive(hits=[hit("walker")]), None, VIOLATED, 1.0),
    (CollisionsNotMore(), drive(hits=[hit("walker")]), drive(), None, HOLDS, 0.0),
    (CollisionsNotMore(), drive(hits=[hit("walker")]), drive(hits=[hit("carton")]), None, VIOLATED, 1.0),
    (CollisionsNotMore(), drive(hits=[hit("walker", 5.0)]), drive(hits=[hit("walker", 9.0)]), None, HOLDS, 0.0),
    (
        CollisionsNotMore(faster_by_at_most_mps=1.0),
        drive(hits=[hit("walker", 5.0)]),
        drive(hits=[hit("walker", 9.0)]),
        None,
        VIOLATED,
        1.0,
    ),
    (BrakesNoLater(), braking(10), braking(12), None, HOLDS, 0.2),
    (BrakesNoLater(), braking(10), braking(13), None, VIOLATED, 0.3),
    (BrakesNoLater(), braking(10), braking(4), None, HOLDS, -0.6),
    (BrakesNoLater(), braking(10), drive(), None, VIOLATED, None),
    (BrakesNoLater(), drive(), braking(10), None, NOTHING, None),
    (BrakesNoLater(brakes_mps2=5.0), braking(10), braking(13), None, NOTHING, None),
    (DrivesNoFaster(), drive(10.0), drive(10.4), None, HOLDS, 0.4),
    (DrivesNoFaster(), drive(10.0), drive(10.6), None, VIOLATED, 0.6),
    (DrivesNoFaster(), drive(10.0), drive(8.0), None, HOLDS, -2.0),
    (DrivesNoFaster(), drive(10.0), drive(10.0 + SWERVE), None, VIOLATED, 2.0),
    (DrivesNoFaster(by="mean"), drive(10.0), drive(10.0 + 0.2 * SWERVE), None, HOLDS, None),
    (DrivesNoFaster(by="mean"), braking(10), braking(20), None, VIOLATED, None),
    (DrivesNoFaster(by="place"), braking(10), braking(20), None, VIOLATED, None),
    (DrivesNoFaster(by="place"), braking(20), braking(10), None, HOLDS, None),
    (DrivesNoFaster(), drive(0.0), drive(5.0), None, NOTHING, None),
    (DrivesNoFaster(), drive(10.0), drive(-12.0), None, VIOLATED, 12.0),
    (DrivesNoFaster(), drive(10.0), drive([8.0] * 16 + [-3.0] * 15), None, VIOLATED, 3.0),  # and never goes so back
    (DrivesNoFaster(), drive(-10.0), drive(-10.4), None, HOLDS, 0.4),
    (DrivesNoFaster(by="mean"), drive(10.0), drive([8.0] * 16 + [-8.0] * 15), None, VIOLATED, None),
    (DrivesNoFaster(by="mean"), drive(-10.0), drive(-12.0), None, VIOLATED, 2.0),
    (DrivesNoFaster(by="place"), drive(10.0), drive(-12.0), None, VIOLATED, 12.0),
    (DrivesNoFaster(by="place"), drive(-10.0), drive(-8.0), None, HOLDS, -2.0),
    (BrakesNoLater(), drive(-10.0, acceleration=3.0), drive(-10.0, acceleration=3.0), None, HOLDS, 0.0),
    (BrakesNoLater(), braking(10), drive(-10.0, acceleration=-3.0), None, VIOLATED, None),  # backwards, and faster
    (ComfortNotWorse(), drive(-5.0, acceleration=0.0), drive(-5.0, acceleration=0.6), None, VIOLATED, 1.2),
    (ComfortNotWorse(), drive(-5.0, acceleration=0.0), drive(-5.0, acceleration=-0.6), None, HOLDS, 0.0),
    (ComfortNotWorse(), drive(), drive(), None, HOLDS, 0.0),
    (ComfortNotWorse(jerk_mps3=500.0), braking(10, 3.0), braking(10, 3.4), None, HOLDS, 0.8),
    (ComfortNotWorse(jerk_mps3=500.0), braking(10, 3.0), braking(10, 3.6), None, VIOLATED, 1.2),
    (ComfortNotWorse(braking_mps2=20.0), braking(10, 3.0), braking(10, 3.4), None, VIOLATED, 4.0 / 3.0),
    (ComfortNotWorse(), drive(), drive(y_m=2.0 * SWERVE), None, VIOLATED, None),
    (ComfortNotWorse(), drive(rows=1, acceleration=0.0), drive(), None, NOTHING, None),
    (SlowsDownThere(), drive(10.0), drive(9.4), None, HOLDS, 0.6),
    (SlowsDownThere(), drive(10.0), drive(9.6), None, VIOLATED, 0.4),
    (SlowsDownThere(along="way"), drive(10.0), drive(np.linspace(10.0, 8.0, 31)), None, HOLDS, None),
    (DrivesNoFasterThere(), drive(10.0), drive(10.4), None, HOLDS, 0.4),
    (DrivesNoFasterThere(), drive(10.0), drive(10.6), None, VIOLATED, 0.6),
    (SlowsDownThere(), drive(10.0), drive(-9.0), None, VIOLATED, -9.0),
    (SlowsDownThere(), drive(-10.0), drive(-9.4), None, HOLDS, 0.6),
    (SlowsDownThere(), drive(-10.0), drive(-10.6), None, VIOLATED, -0.6),
    (DrivesNoFasterThere(), drive(10.0), drive(-10.0), None, VIOLATED, 10.0),
    (DrivesNoFasterThere(), drive(-10.0), drive(-10.4), None, HOLDS, 0.4),
    (DrivesNoFasterThere(), drive(-10.0), drive(-11.0), None, VIOLATED, 1.0),
    (StopsThere(), drive(10.0), drive(-10.0), None, VIOLATED, 10.0),
    (StopsThere(), drive(-10.0), drive(np.linspace(-10.0, 0.0, 31)), None, HOLDS, 0.0),
    (KeepsWayThere(), drive(10.0), drive(-10.0), None, VIOLATED, None),
    (StopsThere(), drive(10.0), drive(np.linspace(10.0, 0.0, 31)), None, HOLDS, 0.0),
    (StopsThere(), drive(10.0), drive(np.linspace(10.0, 0.5, 31)), None, VIOLATED, 0.5),
    (StopsThere(), drive(np.linspace(6.0, 0.5, 31)), drive(0.0), None, NOTHING, None),
    (KeepsWayThere(), drive(10.0), drive(10.4), None, HOLDS, 0.8),
    (KeepsWayThere(), drive(10.0), drive(9.4), None, VIOLATED, 1.2),
    (KeepsWayThere(), drive(), drive(y_m=0.6), None, VIOLATED, 1.2),
    (TurnsLeftThere(), drive(), drive(y_m=0.6), None, HOLDS, 0.6),
    (TurnsLeftThere(), drive(), drive(y_m=-0.6), None, VIOLATED, -0.6),
    (TurnsRightThere(), drive(), drive(y_m=-0.6), None, HOLDS, 0.6),
    (TurnsRightThere(), drive(), drive(y_m=0.4), None, VIOLATED, -0.4),
]  # fmt: skip


@pytest.mark.parametrize(("check", "source", "followup", "effects", "outcome", "measured"), TABLE)
def test_drives(
    check: TraceCheck,
    source: ScenarioTrace,
    followup: ScenarioTrace,
    effects: WorldEffects | None,
    outcome: Outcome,
    measured: Any,
) -> None:
    judgement = judged(check, source, followup, effects)
    assert judgement.outcome is outcome, judgement
    if measured is not None:
        assert judgement.measured == pytest.approx(measured, abs=1e-6)


def trace_checks() -> list[TraceCheck]:
    return [cls() for cls in plugins.catalogue("checks").values() if issubclass(cls, TraceCheck)]


#: What a rule asks for, when something is added, is no part of what both drives may have in common.
ASKS_FOR_MORE = (SlowsDownThere, StopsThere, TurnsLeftThere, TurnsRightThere)


def test_every_check_of_drives_is_in_the_table_and_asks_the_same_of_control_and_sham() -> None:
    assert {type(row[0]) for row in TABLE} == {type(check) for check in trace_checks()}
    for check in trace_checks():
        if isinstance(check, ASKS_FOR_MORE):  # of control and sham less than of a follow-up, and no change at all
            assert check.background != check and check.background.background == check.background
        else:
            assert isinstance(check, Check) and check.background is check
        alone = check.judge(Output(), Output(), Effects(), Bundle(0, 0, 0))
        assert alone.outcome is NOTHING and alone.reason == "one instant is no drive"


speeds = st.lists(st.floats(0.0, 20.0), min_size=2, max_size=12)


@settings(max_examples=40, deadline=None)
@given(speeds, st.floats(-3.0, 3.0))
def test_every_check_holds_or_decides_nothing_where_both_drives_are_the_same(mps: list[float], y_m: float) -> None:
    same = drive(mps, y_m, rows=len(mps))
    for check in trace_checks():
        asked = check.background if isinstance(check, ASKS_FOR_MORE) else check
        assert judged(asked, same, same).outcome in (HOLDS, NOTHING), plugins.name_of(type(check))


def walked(cost: Any, join: Any, diagonal: float, i: int, j: int) -> float:
    """The recurrence as it stands in the books."""
    if i < 0 or j < 0:
        return 0.0 if i == j == -1 else np.inf
    straight = min(walked(cost, join, diagonal, i - 1, j), walked(cost, join, diagonal, i, j - 1))
    return float(
        min(join(straight, cost[i, j]), join(walked(cost, join, diagonal, i - 1, j - 1), diagonal * cost[i, j]))
    )


places = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=5)


@settings(max_examples=60, deadline=None)
@given(places, places, st.integers(0, 4))
def test_the_distance_of_two_ways_is_that_of_the_books(one: Any, other: Any, within: int) -> None:
    a, b = np.array(one, dtype=float), np.array(other, dtype=float)
    cost = np.linalg.norm(a[:, None] - b[None], axis=-1)
    cost[np.abs(np.subtract.outer(np.arange(len(a)), np.arange(len(b)))) > within] = np.inf
    ends = [(len(a) - 1, j) for j in range(len(b))] + [(i, len(b) - 1) for i in range(len(a))]
    expected = {
        "frechet": min(walked(cost, max, 1.0, i, j) for i, j in ends),
        "dtw": min(walked(cost, lambda x, y: x + y, 2.0, i, j) / (i + j + 2) for i, j in ends),
        "time": float(np.linalg.norm(a[: len(b)] - b[: len(a)], axis=1).max()),
    }
    for by in ALIGNMENTS:
        wanted = expected[by] if abs(len(a) - len(b)) <= within else np.inf
        assert apart_m(a, b, by, within) == pytest.approx(wanted)


@settings(max_examples=30, deadline=None)
@given(places, places)
def test_more_room_to_be_out_of_step_never_makes_two_ways_farther_apart(one: Any, other: Any) -> None:
    a, b = np.array(one, dtype=float), np.array(other, dtype=float)
    for by in ("frechet", "dtw"):
        assert apart_m(a, b, by, 6) <= apart_m(a, b, by, 5) + 1e-9
        assert apart_m(a, b, by, 6) == pytest.approx(apart_m(b, a, by, 6))


def test_two_alike_drives_of_half_a_minute_are_compared_at_once() -> None:
    way = np.column_stack([np.linspace(0.0, 300.0, 300), np.zeros(300)])
    assert apart_m(way, way + np.array([0.0, 0.25]), "frechet", 5) == pytest.approx(0.25)


def test_clearance_is_between_outlines() -> None:
    near = least_m(drive())
    vehicle, walker = SCENARIO.ego.vehicle, SCENARIO.actors[0]
    half = 0.25  # about half the walker's width
    assert near[walker.name] == pytest.approx(3.0 - vehicle.width_m / 2.0 - half, abs=0.15)
    assert least_m(drive(hits=[hit("walker")]))["walker"] == 0.0
    assert near["carton"] == pytest.approx(20.0 + 50.0 - (20.0 + 30.0 + vehicle.front_m), abs=1.0)
    far = replace(drive(), scenario=replace(SCENARIO, obstacles=()))
    assert set(least_m(far)) == {"walker"}
