# SPDX-License-Identifier: Apache-2.0
"""The parts of the reference planner: the way ahead, who will be on it, lights, ways past somebody, commands."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from told_worlds import PERIOD_NS, START_NS, lanes_of, lights, people, street

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build
from mt_nodes.data.lanes import Lanes, SignalStates, Strip
from mt_nodes.data.messages import Odometry
from mt_nodes.data.outputs import Control, Detections, Path
from mt_nodes.stacks.reference.car_following import Lead
from mt_nodes.stacks.reference.evasion import Escape, Evasion, nearest_free
from mt_nodes.stacks.reference.lanes_beside import AdjacentLane, adjacent_lanes
from mt_nodes.stacks.reference.lights import stop_ahead
from mt_nodes.stacks.reference.planner import Planner
from mt_nodes.stacks.reference.traffic import Conflict, EgoBody, EgoPose, Swing, Traffic
from mt_nodes.stacks.reference.way import LanePath

RADIUS_M = 40.0


def arc(turn: int = 1, radius_m: float = RADIUS_M) -> Path:
    """20 m straight on, then a quarter of a circle to one side, then on, a place each metre."""
    bend = np.arange(1.0, radius_m * math.pi / 2.0) / radius_m
    after = np.arange(1.0, 40.0)
    x = np.concatenate([np.arange(0.0, 21.0), 20.0 + radius_m * np.sin(bend), np.full(39, 20.0 + radius_m)])
    y = np.concatenate([np.zeros(21), radius_m * (1.0 - np.cos(bend)), radius_m + after])
    return Path.make("map", None, np.column_stack([x, turn * y, 0.0 * x]))


def way(route: Path | None = None) -> LanePath:
    found = LanePath.of(street() if route is None else route)
    assert found is not None
    return found


def body(front_m: float = 0.0, speed_mps: float = 10.0, left_m: float = 0.0, acceleration_mps2: float = 0.0) -> EgoBody:
    return EgoBody(front_m, front_m - 5.0, left_m, speed_mps, acceleration_mps2, 2.0)


def traffic(
    objects: Detections, here: EgoPose | None = None, route: Path | None = None, drifts_mps: float = 0.3
) -> Traffic:
    return Traffic.predicted(objects, here or EgoPose(5.0, 0.0, 0.0, 10.0, 0.0), way(route), 4.0, drifts_mps)


# --- the way


@pytest.mark.parametrize("turn", [1, -1])
@settings(max_examples=30)
@given(station=st.floats(-10.0, 130.0), left=st.floats(-8.0, 8.0))
def test_places_beside_the_way_are_found_again(turn: int, station: float, left: float) -> None:
    here = way(arc(turn))
    along, aside = here.place(here.at(station, left))
    assert along[0] == pytest.approx(station, abs=0.15) and aside[0] == pytest.approx(left, abs=0.1)


def test_bends_are_as_sharp_as_they_are() -> None:
    for turn in (1, -1):
        bend = way(arc(turn)).curvature_1pm
        assert np.abs(bend[:15]).max() == pytest.approx(0.0, abs=1e-9)
        np.testing.assert_allclose(bend[30:70], turn / RADIUS_M, rtol=0.02)


def test_speed_falls_by_the_square_root_before_bends_limits_and_the_end() -> None:
    bend = way(arc())
    slowest = math.sqrt(2.0 * RADIUS_M)
    assert bend.allowed_mps(40.0, 2.0, 1.5) == pytest.approx(slowest, rel=0.02)
    begin = float(bend.stations_m[np.argmax(np.abs(bend.curvature_1pm) > 0.9 / RADIUS_M)])
    at = math.sqrt(slowest**2 + 2.0 * 1.5 * begin)
    assert bend.allowed_mps(0.0, 2.0, 1.5) == pytest.approx(at, rel=0.02)
    end = way()
    assert end.allowed_mps(end.stations_m[-1] - 12.0, 2.0, 1.5) == pytest.approx(6.0)
    assert end.allowed_mps(end.stations_m[-1] + 2.0, 2.0, 1.5) == 0.0
    limited = way(replace(street(), speed_mps=np.where(np.arange(120) > 60, 5.0, np.nan)))
    assert limited.allowed_mps(50.0, 2.0, 1.5) == pytest.approx(math.sqrt(25.0 + 2.0 * 1.5 * 11.0))


@pytest.mark.parametrize(
    "rows", [[], [(0.0, 0.0, 0.0)], [(1.0, 1.0, 0.0)] * 3, [(math.nan, 0.0, 0.0), (1.0, 0.0, 0.0)]]
)
def test_a_route_that_leads_nowhere_is_no_way(rows: list[Any]) -> None:
    assert LanePath.of(Path.make("map", None, np.array(rows).reshape(-1, 3))) is None


# --- others


def test_each_keeps_its_velocity() -> None:
    found = traffic(people((30.0, 4.0, 0.0, -1.0), (20.0, -6.0, 1.0, 0.0), (9.0, 0.0, 0.0, 0.0)))
    assert found.times_s.tolist() == pytest.approx(np.arange(21) * 0.2)
    middle = (found.right_m + found.left_m) / 2.0
    np.testing.assert_allclose(middle[0], 4.0 - found.times_s, atol=1e-9)
    np.testing.assert_allclose(found.near_m[1], 29.75 + found.times_s, atol=1e-9)
    assert np.ptp(found.near_m[2]) == np.ptp(found.left_m[2]) == 0.0
    np.testing.assert_allclose(found.far_m - found.near_m, 0.5)
    np.testing.assert_allclose(found.left_m - found.right_m, 0.6)


def test_who_drives_along_keeps_to_the_bend_and_who_crosses_does_not() -> None:
    objects = people((15.0, 3.5, -9.0, 0.1), (25.0, -6.0, 0.0, 3.0), size_m=(4.5, 1.8, 1.5))
    found = traffic(objects, EgoPose(0.0, 0.0, 0.0, 8.0, 0.0), arc())
    middle = (found.right_m + found.left_m) / 2.0
    np.testing.assert_allclose(middle[0], 3.5, atol=1e-9)
    assert middle[1, 0] < -5.0 and middle[1, -1] > 4.0
    drifting = traffic(objects, EgoPose(0.0, 0.0, 0.0, 8.0, 0.0), arc(), drifts_mps=0.0)
    assert (drifting.left_m + drifting.right_m)[0, -1] / 2.0 == pytest.approx(3.9, abs=0.1)


def test_a_box_at_an_angle_is_as_wide_as_its_corners_or_as_the_ellipse_in_it() -> None:
    objects = replace(people((30.0, 0.0, 0.0, 0.0), size_m=(4.0, 2.0, 1.5)), yaw_rad=np.array([math.pi / 4.0]))
    wide = {
        full: Traffic.predicted(objects, EgoPose(5.0, 0.0, 0.0, 10.0, 0.0), way(), 4.0, 0.3, full)
        for full in (True, False)
    }
    assert wide[True].left_m[0, 0] == pytest.approx(3.0 / math.sqrt(2.0))
    assert wide[False].left_m[0, 0] == pytest.approx(math.sqrt(2.5))


def test_an_unknown_velocity_is_none() -> None:
    objects = replace(people((30.0, 1.0, 3.0, 0.0)), velocity_mps=np.full((1, 3), np.nan))
    assert np.ptp(traffic(objects).near_m) == 0.0


def conflicts(objects: Detections, **more: Any) -> list[Conflict]:
    return body(**more).conflicts(traffic(objects, EgoPose(-5.0, 0.0, 0.0, 10.0, 0.0)), 0.0, 8.0, 0.3, 0.8)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ((30.0, 0.0, 0.0, 0.0), (29.75, 10.0, 0.0)),  # stands in the lane, 30 m before our own place
        ((30.0, 1.8, 0.0, 0.0), None),  # and beside it
        ((30.0, 0.0, 6.0, 0.0), (29.75, 4.0, 0.0)),  # drives ahead
        ((-1.0, 0.0, 14.0, 0.0), None),  # comes from behind
        ((30.0, 3.6, 0.0, -1.0), (29.75, 10.0, 2.2)),  # steps in when we would be about there
        ((10.0, 3.6, 0.0, -1.0), None),  # when we have long passed
        ((40.0, -7.0, 0.0, -1.0), None),  # walks away
        ((38.0, 0.0, -10.0, 0.0), (37.75, 20.0, 0.0)),  # comes towards us
    ],
)
def test_in_the_way_is_who_is_there_when_we_are(row: Any, expected: Any) -> None:
    """The front is at the origin of the way, at 10 m/s; half of the way's width is 1.3 m, a person's 0.3 m."""
    found = conflicts(people((row[0], *row[1:])))
    if expected is None:
        assert found == []
    else:
        [conflict] = found
        got = (conflict.lead.gap_m, conflict.lead.closing_mps, conflict.after_s)
        assert got == pytest.approx(expected)


def test_who_slows_down_passes_nobody_first() -> None:
    crossing = people((17.0, 5.6, 0.0, -1.2))
    assert conflicts(crossing) == []
    assert len(conflicts(crossing, acceleration_mps2=-3.0)) == 1


def test_who_could_only_stop_hard_goes_on_before_somebody() -> None:
    """At 10 m/s one stops within 14.5 m at 4 m/s²: 12 m before somebody who steps in 2.4 s from now it is too late."""
    near, far = people((12.0, 4.0, 0.0, -1.0)), people((16.0, 4.0, 0.0, -1.0))
    assert conflicts(near) == [] and len(conflicts(far)) == 1


# --- lights

RED = ("red", 40.0)


@pytest.mark.parametrize(
    ("colour", "stop_m", "speed", "stops"),
    [
        ("red", 40.0, 10.0, True),
        ("green", 40.0, 10.0, False),
        ("off", 40.0, 10.0, False),
        ("yellow", 40.0, 10.0, True),
        ("yellow", 22.0, 10.0, False),  # 5 m/s² would be needed
        ("red", 22.0, 10.0, True),
        ("red", 14.0, 10.0, False),  # not to be had
        ("red", 9.5, 0.0, True),  # who stands half a metre past the line
        ("red", 8.5, 0.0, False),
    ],
)
def test_one_stops_for_red_and_for_yellow_where_it_takes_no_hard_braking(
    colour: str, stop_m: float, speed: float, stops: bool
) -> None:
    lead = stop_ahead(lights((colour, stop_m - 5.0)), way(), 10.0, speed, 2.0)
    assert (lead is not None) is stops
    if lead is not None:
        assert lead.gap_m == pytest.approx(stop_m - 10.0 - 0.7 + 2.0) and lead.closing_mps == speed


def test_only_lights_of_the_own_way_count_and_the_nearest_of_them() -> None:
    rows = [(40.0, 3.5, 0.0), (30.0, 0.0, math.pi), (35.0, 0.2, 0.1), (50.0, 0.0, 0.0)]
    signals = SignalStates.make("map", None, "abcd", ["red"] * 4, rows)
    lead = stop_ahead(signals, way(), 10.0, 5.0, 2.0)
    assert lead is not None and lead.gap_m == pytest.approx(40.0 - 10.0 - 0.7 + 2.0)


# --- ways past somebody

EVASION = Evasion(0.8, 0.15, 5.0, 7.2, 0.3)


def test_brakes_help_as_far_as_they_reach() -> None:
    needed = 12.0 * 0.3 + 12.0**2 / (2.0 * 7.2)
    assert not EVASION.too_late(Lead(needed + 0.1, 12.0, 0), 12.0)
    assert EVASION.too_late(Lead(needed - 0.1, 12.0, 0), 12.0)
    assert EVASION.too_late(Lead(49.0, 20.0, 0), 10.0), "who comes towards us is met in 2.5 s, whatever brakes do"
    assert not EVASION.too_late(Lead(51.0, 20.0, 0), 10.0)


def ways_past(*rows: tuple[float, float, float, float], speed_mps: float = 14.0) -> list[Escape]:
    car = body(speed_mps=speed_mps)
    found = traffic(people(*rows), EgoPose(-5.0, 0.0, 0.0, speed_mps, 0.0))
    first = car.conflicts(found, 0.0, 8.0, 0.3, 0.8)[0]
    return [way for way in EVASION.ways(car, found, first) if not way.hits]


def test_one_evades_to_where_there_is_room_and_nobody() -> None:
    """Past a person 1 m to the left of the middle: 0.45 m to the right; past one to the right likewise."""
    for side in (1, -1):
        [escape] = ways_past((14.0, side * 1.0, 0.0, 0.0))
        assert escape.aim_m == pytest.approx(-side * 0.45) and not escape.towards
        assert ways_past((14.0, side * 1.0, 0.0, 0.0), (15.0, side * -1.5, 0.0, 0.0)) == []
        assert ways_past((14.0, side * 0.4, 0.0, 0.0)) == [], "no room"
        assert ways_past((4.0, side * 1.0, 0.0, 0.0)) == [], "no time"
        [escape] = ways_past((28.0, side * 1.0, -10.0, 0.0))
        assert escape.towards


def test_the_shorter_way_is_taken_and_neither_of_two_alike() -> None:
    right, left = Escape(-0.5, 9.0), Escape(0.6, 9.0)
    assert nearest_free([right, left], 0.0) == right and nearest_free([right, left], 0.2) == left
    assert nearest_free([], 0.0) is None and nearest_free([right, replace(left, aim_m=0.5)], 0.0) is None


def test_of_lanes_ones_own_is_first_and_that_of_others_last_and_none_on_which_somebody_is_hit() -> None:
    own, along, back = Escape(0.7, 9.0), Escape(3.5, 9.0, lane="along"), Escape(-3.5, 9.0, lane="oncoming")
    assert nearest_free([back, along, own], 0.0) == own and nearest_free([back, along], -1.0) == along
    assert nearest_free([back, replace(along, hits=(3,)), replace(own, hits=(2,))], 0.0) == back
    assert nearest_free([replace(way, hits=(0,)) for way in (own, along, back)], 0.0) is None
    assert nearest_free([along, replace(along, aim_m=-3.5)], 0.0) is None, "no reason for either side"
    assert nearest_free([along, replace(along, aim_m=-3.5)], 0.1) == along
    assert nearest_free([replace(back, waits_s=0.5)], 0.0) is None, "there is time yet"


@pytest.mark.parametrize("side", [1, -1])
def test_the_lane_beside_is_a_way_and_who_is_met_on_it_is_known(side: int) -> None:
    car, here = body(speed_mps=14.0), EgoPose(-5.0, 0.0, 0.0, 14.0, 0.0)
    beside = [AdjacentLane(side * 3.5, "along")]

    def hits(*rows: tuple[float, float, float, float]) -> tuple[int, ...]:
        found = traffic(people((19.0, 0.0, 0.0, 0.0), *rows), here)
        conflict = next(c for c in car.conflicts(found, 0.0, 8.0, 0.3, 0.8) if c.lead.row == 0)
        [way] = [way for way in EVASION.ways(car, found, conflict, beside) if way.lane == "along"]
        assert way.aim_m == side * 3.5 and way.waits_s < 0.3
        return way.hits

    assert hits() == ()
    assert hits((30.0, side * 3.5, 0.0, 0.0)) == (1,), "who stands there"
    assert hits((-3.0, side * 3.5, 14.0, 0.0)) == (1,), "who drives beside"
    assert hits((60.0, side * 3.5, -12.0, 0.0)) == (1,), "who comes"
    assert hits((-15.0, side * 3.5, 26.0, 0.0)) == (1,), "who is faster from behind"
    assert hits((-15.0, side * 3.5, 8.0, 0.0)) == hits((30.0, side * 6.5, 0.0, 0.0)) == ()
    assert hits((24.0, side * 7.0, 0.0, -side * 2.5)) == (1,), "who will be there"


@pytest.mark.parametrize("side", [1, -1])
def test_who_leans_to_the_other_side_leaves_more_time_for_the_lane_beside(side: int) -> None:
    car, here = body(speed_mps=14.0), EgoPose(-5.0, 0.0, 0.0, 14.0, 0.0)

    def waits_s(left_m: float) -> float:
        found = traffic(people((19.0, left_m, 0.0, 0.0)), here)
        [conflict] = car.conflicts(found, 0.0, 8.0, 0.3, 0.8)
        return EVASION.ways(car, found, conflict, [AdjacentLane(side * 3.5, "along")])[-1].waits_s

    assert waits_s(-side * 0.6) > waits_s(0.0) + 0.1 > waits_s(side * 0.6) + 0.2


@pytest.mark.parametrize("side", [1, -1])
def test_one_returns_from_the_lane_beside_when_ones_own_is_free(side: int) -> None:
    car, here = body(left_m=side * 3.5), EgoPose(-5.0, side * 3.5, 0.0, 10.0, 0.0)
    over = Escape(side * 3.5, 0.5, lane="oncoming")

    def stays(*rows: tuple[float, float, float, float], former: Escape = over, car: EgoBody = car) -> Escape | None:
        return EVASION.stays(former, car, traffic(people(*rows), here), 1.0)

    assert stays() is None and stays((60.0, -side * 3.5, 0.0, 0.0)) is None
    going_on = stays((30.0, -side * 3.5, 0.0, 0.0))
    assert going_on is not None and going_on.past and going_on.aim_m == side * 3.5 and not going_on.slows
    stand = (30.0, -side * 3.5, 0.0, 0.0)
    assert stays(stand, former=replace(over, lane="own")) is stays(stand, car=body(left_m=side * 0.5)) is None
    assert stays(stand, car=body(left_m=side * 3.5, speed_mps=0.0)) is None, "who stands is to go on"


@pytest.mark.parametrize("side", [1.0, -1.0])
@settings(max_examples=30)
@given(far_m=st.floats(0.01, 5.0), back_mps=st.floats(0.0, 3.0), late_s=st.sampled_from([0.0, 0.3]))
def test_a_swing_ends_where_it_leads_and_keeps_to_its_acceleration(
    side: float, far_m: float, back_mps: float, late_s: float
) -> None:
    """Also of who goes to the other side at first."""
    end_m = 1.0 + side * far_m
    swing = Swing(1.0, end_m, 5.0, -side * back_mps, late_s)
    times = late_s + np.linspace(0.0, swing.lasts_s - late_s, 400)
    at, across = swing.at(times)
    assert at[0] == pytest.approx(1.0) and at[-1] == pytest.approx(end_m, abs=1e-6)
    assert across[0] == pytest.approx(swing.across_mps) and across[-1] == pytest.approx(0.0, abs=1e-6)
    step_s = float(times[1] - times[0])
    assert np.abs(np.diff(across)).max() <= 5.0 * step_s + 1e-9
    np.testing.assert_allclose(np.diff(at), (across[1:] + across[:-1]) / 2.0 * step_s, atol=5.0 * step_s**2 + 1e-9)


def test_lanes_beside_are_those_that_go_on_beside() -> None:
    lanes, here = lanes_of(own=0.0, left=3.5, right=-3.5, back=7.0), way()
    found = adjacent_lanes(lanes, here, 10.0, 60.0)
    assert [(b.left_m, b.direction) for b in found] == [(-3.5, "along"), (3.5, "along"), (7.0, "oncoming")]
    short = Lanes.make("map", None, [replace_middle(strip, 30.0) for strip in lanes.strips])
    assert adjacent_lanes(short, here, 10.0, 60.0) == []
    unknown = replace(lanes, point_m=np.where(lanes.point_m == 3.5, np.nan, lanes.point_m))
    assert [b.left_m for b in adjacent_lanes(unknown, here, 10.0, 60.0)] == [-3.5, 7.0]
    assert adjacent_lanes(Lanes.make("map", None), here, 10.0, 60.0) == []


def replace_middle(strip: Strip, until_m: float) -> Strip:
    """The piece of a lane that ends sooner."""
    return strip._replace(middle_m=strip.middle_m[strip.middle_m[:, 0] < until_m])


def test_a_way_is_followed_until_one_is_past() -> None:
    first = Escape(-0.5, 2.5)
    assert first.advanced([Escape(-0.6, 2.0), Escape(0.5, 2.0)], 1.0) == Escape(-0.6, 2.0)
    assert first.advanced([Escape(0.5, 2.0)], 1.0) == Escape(-0.5, 1.5)
    assert first.advanced([], 2.5) is None and first.advanced([], 0.0) is None


# --- commands


def said(planner: Planner, index: int = 0, **given: Any) -> Control:
    told = {
        "objects": people(),
        "odometry": Odometry("map", None, 5.0, 0.0, 0.0, 8.0),
        "route": street(),
        "signals": lights(),
        **given,
    }
    control = planner(told, START_NS + index * PERIOD_NS).control
    assert control is not None
    return control


def test_a_free_road_is_driven_at_cruising_speed() -> None:
    assert said(Planner(cruise_mps=12.0)).speed_mps > 8.0
    assert said(Planner(cruise_mps=8.0)).speed_mps == pytest.approx(8.0)
    assert said(Planner(cruise_mps=6.0)).speed_mps < 8.0


def test_it_steers_back_to_the_middle_and_into_bends() -> None:
    off = said(Planner(), odometry=Odometry("map", None, 5.0, 0.5, 0.0, 8.0))
    assert off.yaw_rate_radps < -0.01
    before = Odometry("map", None, 19.0, 0.0, 0.0, 8.0)
    left, right = (said(Planner(), odometry=before, route=arc(turn)).yaw_rate_radps for turn in (1, -1))
    assert left == pytest.approx(-right) and left > 0.05


def test_what_it_says_is_mirrored_with_what_it_is_told() -> None:
    rows = [(20.0, 1.4, 0.0, -1.0), (33.0, -5.0, 0.5, 0.7)]
    for side in (1, -1):
        planner = Planner()
        objects = people(*[(x, side * y, vx, side * vy) for x, y, vx, vy in rows])
        here = Odometry("map", None, 5.0, side * 0.3, side * 0.02, 8.0)
        control = said(planner, objects=objects, odometry=here, route=arc(side))
        if side == 1:
            first = control
    assert control == replace(first, yaw_rate_radps=-first.yaw_rate_radps)


def test_the_order_of_objects_is_nothing_to_it() -> None:
    rows = [(20.0, 0.4, 0.0, 0.0), (20.0, -0.4, 0.0, 0.0), (30.0, 3.0, 0.0, -1.0)]
    assert said(Planner(), objects=people(*rows)) == said(Planner(), objects=people(*rows[::-1]))


def test_without_a_route_it_stops_with_straight_wheels() -> None:
    nowhere = Path.make("map", None, [])
    control = said(Planner(), route=nowhere)
    assert control.speed_mps < 7.5 and control.yaw_rate_radps == 0.0
    assert said(Planner(), route=nowhere, odometry=Odometry("map", None, 5.0, 0.0, 0.0, 0.0)).speed_mps == 0.0


def test_what_is_no_number_is_nobody_and_who_is_lost_stops() -> None:
    person = people((18.0, 0.0, 0.0, 0.0))
    nowhere = replace(person, center_m=np.full((1, 3), math.nan))
    assert said(Planner(), objects=nowhere) == said(Planner())
    with np.errstate(all="raise"):
        endless = replace(person, center_m=np.full((1, 3), math.inf))
        assert said(Planner(), objects=endless) == said(Planner())
    vast = replace(person, velocity_mps=np.full((1, 3), math.inf))
    assert math.isfinite(said(Planner(), objects=vast).speed_mps)
    for odometry in (Odometry("map", None, math.nan, 0.0, 0.0, 8.0), Odometry("map", None, 5.0, 0.0, math.inf, 8.0)):
        control = said(Planner(), odometry=odometry)
        assert control.speed_mps < 8.0 and control.yaw_rate_radps == 0.0
    lost = said(Planner(), odometry=Odometry("map", None, 5.0, 0.0, 0.0, math.nan))
    assert (lost.speed_mps, lost.yaw_rate_radps) == (0.0, 0.0)


def test_lights_need_not_be_told() -> None:
    told = {"objects": people(), "odometry": Odometry("map", None, 5.0, 0.0, 0.0, 8.0), "route": street()}
    assert Planner()(told, START_NS).control == said(Planner())


def test_of_the_same_instant_it_says_the_same_and_after_a_jump_it_starts_anew() -> None:
    planner, person = Planner(), people((18.0, 0.0, 0.0, 0.0))
    first = said(planner, 0)
    assert said(planner, 0, objects=person) == first, "the same instant again"
    eased = said(planner, 1, objects=person)
    assert eased.speed_mps > said(Planner(), objects=person).speed_mps, "the jerk is limited"
    assert said(planner, 100, objects=person) == said(Planner(), objects=person)
    planner.reset()
    assert said(planner, 101, objects=person) == said(Planner(), objects=person)


def test_messages_for_steering_angles_tell_the_same_course() -> None:
    off = Odometry("map", None, 5.0, 0.5, 0.0, 8.0)
    twist, ackermann = said(Planner(), odometry=off), said(Planner(tells="ackermann"), odometry=off)
    assert math.tan(ackermann.steering_rad) * 8.0 / 2.8 == pytest.approx(twist.yaw_rate_radps, abs=1e-5)
    assert 2.0 * (twist.speed_mps - 8.0) == pytest.approx(1.1 * ackermann.acceleration_mps2, abs=1e-5)
    assert ackermann.speed_mps == pytest.approx(8.0 + 0.1 * ackermann.acceleration_mps2, abs=1e-5)


def test_faults_of_other_stacks_are_refused() -> None:
    with pytest.raises(UsageError, match=r"faults\[0\]: 'brakes_on_or_off' is a fault of driver stacks"):
        build(Planner, {"faults": ["brakes_on_or_off"]}, "params")
