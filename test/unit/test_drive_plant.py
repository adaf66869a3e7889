# SPDX-License-Identifier: Apache-2.0
"""The ego's car against closed forms, and what commands mean."""

from __future__ import annotations

from dataclasses import replace
from math import atan, cos, exp, hypot, inf, nan, pi, sin, tan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.data.outputs import Control
from mt_nodes.world.drive.friction import DRY, GRAVITY_MPS2, SNOW, WET, friction
from mt_nodes.world.drive.plant import Plant
from mt_nodes.world.drive.scenario import Environment, Vehicle
from mt_nodes.world.drive.trace import EgoState
from mt_nodes.world.drive.vehicle_commands import commanded_acceleration_mps2, commanded_steering_rad, refusal

STEP_S = 0.01
PROMPT = Vehicle(
    steering_dead_s=0.0,
    steering_lag_s=0.0,
    steering_rate_radps=100.0,
    drive_dead_s=0.0,
    drive_lag_s=0.0,
    brake_jerk_mps3=1e6,
)
"""A car whose actuators do at once what they are told."""
GRIPPING_MPS2 = 1e3


def driven(
    vehicle: Vehicle,
    speed_mps: float,
    acceleration_mps2: float,
    steering_rad: float,
    seconds: float,
    grip_mps2: float = GRIPPING_MPS2,
    step_s: float = STEP_S,
) -> list[EgoState]:
    """Return the states of a car that starts at the origin along x, at first and after each step."""
    plant = Plant(vehicle, EgoState(0.0, 0.0, 0.0, speed_mps), grip_mps2, step_s)
    states = [plant.state]
    for _ in range(round(seconds / step_s)):
        plant.advance(acceleration_mps2, steering_rad)
        states.append(plant.state)
    return states


@pytest.mark.parametrize("speed_mps", [3.0, 13.9, 27.8])
@pytest.mark.parametrize(("dead_s", "jerk_mps3"), [(0.0, 1e6), (0.2, 1e6), (0.2, 30.0)])
def test_stopping_distance_is_that_of_dead_time_build_up_and_full_brakes(
    speed_mps: float, dead_s: float, jerk_mps3: float
) -> None:
    brake = 8.0
    car = replace(PROMPT, drive_dead_s=dead_s, brake_jerk_mps3=jerk_mps3, brake_mps2=brake)
    end = driven(car, speed_mps, -brake, 0.0, 5.0)[-1]
    build_s = brake / jerk_mps3
    fast = speed_mps - jerk_mps3 * build_s**2 / 2.0
    expected = speed_mps * (dead_s + build_s) - jerk_mps3 * build_s**3 / 6.0 + fast**2 / (2.0 * brake)
    assert end.speed_mps == 0.0 and end.y_m == 0.0
    # Steps of 10 ms: a ramp is one of stairs, on average half a step early.
    assert end.x_m == pytest.approx(expected, abs=0.6 * speed_mps * STEP_S if jerk_mps3 < 1e6 else 1e-3)


def test_stopping_distance_approaches_the_closed_form_as_steps_get_shorter() -> None:
    car = replace(PROMPT, brake_jerk_mps3=30.0, brake_mps2=8.0)
    build_s = 8.0 / 30.0
    fast = 20.0 - 30.0 * build_s**2 / 2.0
    exact = 20.0 * build_s - 30.0 * build_s**3 / 6.0 + fast**2 / 16.0
    off = [abs(driven(car, 20.0, -8.0, 0.0, 4.0, step_s=step)[-1].x_m - exact) for step in (0.02, 0.01, 0.005)]
    assert off[1] == pytest.approx(off[0] / 2.0, rel=0.2) and off[2] == pytest.approx(off[1] / 2.0, rel=0.2)


@pytest.mark.parametrize("mu", [DRY, WET, SNOW])
def test_the_road_decides_how_well_brakes_work(mu: float) -> None:
    end = driven(PROMPT, 15.0, -9.0, 0.0, 6.0, mu * GRAVITY_MPS2)[-1]
    assert end.x_m == pytest.approx(15.0**2 / (2.0 * mu * GRAVITY_MPS2), rel=1e-9)


@pytest.mark.parametrize("after_s", [0.15, 0.3, 0.6, 1.2])
def test_an_actuator_answers_after_its_dead_time_as_a_first_order_lag_does(after_s: float) -> None:
    dead_s, lag_s = 0.1, 0.27
    car = replace(PROMPT, drive_dead_s=dead_s, drive_lag_s=lag_s)
    states = driven(car, 10.0, 2.0, 0.0, after_s)
    late = after_s - dead_s
    assert states[-1].acceleration_mps2 == pytest.approx(2.0 * (1.0 - exp(-late / lag_s)), abs=1e-9)
    gained = 2.0 * (late - lag_s * (1.0 - exp(-late / lag_s)))
    assert states[-1].speed_mps - 10.0 == pytest.approx(gained, abs=2.0 * STEP_S)
    assert all(state.acceleration_mps2 == 0.0 for state in states[: round(dead_s / STEP_S) + 1])


@pytest.mark.parametrize("steering_rad", [0.05, -0.3, 0.61])
def test_a_car_drives_a_circle_of_its_wheelbase_over_the_tangent(steering_rad: float) -> None:
    radius = PROMPT.wheelbase_m / tan(steering_rad)
    states = driven(PROMPT, 4.0, 0.0, steering_rad, abs(2.0 * pi * radius) / 4.0 + STEP_S)
    off = [hypot(state.x_m, state.y_m - radius) - abs(radius) for state in states]
    assert np.abs(off).max() < 1e-9
    k = round(abs(2.0 * pi * radius) / 4.0 / STEP_S)
    assert hypot(states[k].x_m, states[k].y_m) < 4.0 * STEP_S, "once round, it is where it began"


def test_who_steers_too_much_for_the_road_drives_the_widest_circle_that_tyres_hold() -> None:
    mu = 0.5
    states = driven(PROMPT, 20.0, 0.0, 0.3, 2.0, mu * GRAVITY_MPS2)
    rate = (states[-1].yaw_rad - states[-2].yaw_rad) / STEP_S
    assert states[-1].speed_mps == pytest.approx(20.0)
    assert 20.0 / rate == pytest.approx(20.0**2 / (mu * GRAVITY_MPS2), rel=1e-6)


def test_who_brakes_and_steers_too_much_gets_both_in_the_same_proportion() -> None:
    grip, steering = 5.0, 0.1
    states = driven(PROMPT, 15.0, -4.0, steering, STEP_S, grip)
    across = 15.0**2 * tan(steering) / PROMPT.wheelbase_m
    share = grip / hypot(4.0, across)
    assert states[1].acceleration_mps2 == pytest.approx(-4.0 * share)
    assert (states[1].yaw_rad - states[0].yaw_rad) / STEP_S == pytest.approx(across * share / 15.0, rel=0.01)


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.floats(-9.0, 3.0), st.floats(-0.61, 0.61)), min_size=1, max_size=8),
    st.floats(0.0, 40.0),
    st.floats(1.0, 9.0),
)
def test_tyres_never_give_more_than_the_circle(asked: list[tuple[float, float]], speed: float, grip: float) -> None:
    car = Vehicle()
    plant = Plant(car, EgoState(0.0, 0.0, 0.0, speed), grip, STEP_S)
    for acceleration, steering in asked:
        for _ in range(20):
            before = plant.state
            plant.advance(acceleration, steering)
            after = plant.state
            across = (after.yaw_rad - before.yaw_rad) / STEP_S * (before.speed_mps + after.speed_mps) / 2.0
            assert hypot(after.acceleration_mps2, across) <= grip * 1.001
            assert after.speed_mps >= 0.0 and abs(after.steering_rad) <= car.steering_rad
            turned = abs(after.steering_rad - before.steering_rad)
            assert turned <= car.steering_rate_radps * STEP_S + 1e-12


def test_wheels_turn_no_faster_than_they_can() -> None:
    car = replace(PROMPT, steering_rate_radps=0.5, steering_dead_s=0.1)
    states = driven(car, 5.0, 0.0, 0.4, 1.5)
    for seconds in (0.1, 0.3, 0.6, 0.8):
        state = states[round(seconds / STEP_S)]
        assert state.steering_rad == pytest.approx(0.5 * (seconds - 0.1), abs=1e-9)
    assert states[-1].steering_rad == pytest.approx(0.4)


@pytest.mark.parametrize("after_s", [0.6, 1.0, 1.6])
def test_a_swerve_moves_aside_as_far_as_dead_time_and_lag_let_it(after_s: float) -> None:
    dead_s, lag_s, speed, steering = 0.24, 0.27, 14.0, 0.002
    car = replace(PROMPT, steering_dead_s=dead_s, steering_lag_s=lag_s)
    late = after_s - dead_s
    shape = late**2 / 2.0 - lag_s * late + lag_s**2 * (1.0 - exp(-late / lag_s))
    expected = speed**2 * steering / car.wheelbase_m * shape
    assert driven(car, speed, 0.0, steering, after_s, step_s=0.001)[-1].y_m == pytest.approx(expected, rel=0.02)


def test_braking_never_drives_backwards_and_a_standing_car_can_leave() -> None:
    states = driven(PROMPT, 0.05, -9.0, 0.2, 0.5)
    assert states[-1].speed_mps == 0.0 and states[-1].x_m == pytest.approx(0.05**2 / 18.0)
    assert driven(PROMPT, 0.0, 2.0, 0.0, 3.0)[-1].x_m == pytest.approx(9.0)


def command(**said: float) -> Control:
    return Control(None, **({"steering_rad": 0.0} | said))


def test_acceleration_counts_before_speed_and_speed_before_pedals() -> None:
    car = Vehicle()
    both = command(acceleration_mps2=-1.0, speed_mps=30.0, throttle=1.0)
    assert commanded_acceleration_mps2(both, 10.0, car) == -1.0
    assert commanded_acceleration_mps2(command(speed_mps=11.0, brake=1.0), 10.0, car) == pytest.approx(2.0)
    assert commanded_acceleration_mps2(command(throttle=0.5), 10.0, car) == pytest.approx(0.5 * car.acceleration_mps2)
    assert commanded_acceleration_mps2(command(throttle=0.0, brake=0.4), 10.0, car) == pytest.approx(
        -0.4 * car.brake_mps2
    )


def test_what_is_beyond_the_car_is_cut() -> None:
    car = Vehicle()
    assert commanded_acceleration_mps2(command(acceleration_mps2=99.0), 0.0, car) == car.acceleration_mps2
    assert commanded_acceleration_mps2(command(speed_mps=0.0), 60.0, car) == -car.brake_mps2
    assert commanded_acceleration_mps2(command(throttle=5.0), 0.0, car) == car.acceleration_mps2
    assert commanded_steering_rad(command(steering_rad=-3.0), 5.0, car) == -car.steering_rad


def test_a_speed_is_reached_and_a_yaw_rate_is_what_the_car_turns_by() -> None:
    plant = Plant(PROMPT, EgoState(0.0, 0.0, 0.0, 4.0), GRIPPING_MPS2, STEP_S)
    said = Control(None, speed_mps=8.0, yaw_rate_radps=0.2)
    for _ in range(600):
        speed = plant.state.speed_mps
        plant.advance(commanded_acceleration_mps2(said, speed, PROMPT), commanded_steering_rad(said, speed, PROMPT))
    before = plant.state.yaw_rad
    plant.advance(0.0, commanded_steering_rad(said, plant.state.speed_mps, PROMPT))
    assert plant.state.speed_mps == pytest.approx(8.0, abs=1e-3)
    assert (plant.state.yaw_rad - before) / STEP_S == pytest.approx(0.2, rel=1e-3)
    assert commanded_steering_rad(said, 0.0, PROMPT) == pytest.approx(atan(PROMPT.wheelbase_m * 0.2))


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ({}, "none of acceleration_mps2"),
        ({"steering_rad": nan, "acceleration_mps2": 1.0}, "neither steering_rad nor yaw_rate_radps"),
        ({"acceleration_mps2": inf}, "acceleration_mps2 is inf"),
        ({"acceleration_mps2": 0.0, "steering_rad": -inf}, "steering_rad is -inf"),
        ({"speed_mps": -2.0}, "does not reverse"),
        ({"throttle": -0.1}, "throttle is -0.1"),
    ],
)
def test_commands_that_nobody_can_carry_out_are_refused(said: dict[str, float], names: str) -> None:
    assert names in refusal(command(**said))


@pytest.mark.parametrize(
    "said",
    [
        {"acceleration_mps2": -20.0},
        {"speed_mps": -0.01},
        {"brake": 1.0},
        {"speed_mps": -3.0, "acceleration_mps2": 0.0},
        {"steering_rad": nan, "yaw_rate_radps": 9.0, "speed_mps": 0.0},
    ],
)
def test_commands_that_can_be_carried_out_are_not(said: dict[str, float]) -> None:
    assert refusal(command(**said)) == ""


def test_wet_roads_hold_less_than_dry_ones_and_snow_the_least() -> None:
    assert friction(Environment()) == DRY
    assert friction(Environment(wetness=1.0)) == friction(Environment(rain=1.0)) == pytest.approx(WET)
    assert friction(Environment(snow=1.0)) == pytest.approx(SNOW) == friction(Environment(snow=1.0, rain=1.0))
    shares = [friction(Environment(rain=share, snow=share**2)) for share in np.linspace(0.0, 1.0, 11)]
    assert np.all(np.diff(shares) < 0.0)


def test_a_lane_change_ends_where_it_was_steered_to() -> None:
    """Steering there and back for equal times: the heading is as before, the offset that of two arcs."""
    plant = Plant(PROMPT, EgoState(0.0, 0.0, 0.0, 10.0), GRIPPING_MPS2, STEP_S)
    for steering in (0.06, -0.06):
        for _ in range(100):
            plant.advance(0.0, steering)
    turn, radius = 10.0 * tan(0.06) / PROMPT.wheelbase_m, PROMPT.wheelbase_m / tan(0.06)
    assert plant.state.yaw_rad == pytest.approx(0.0, abs=1e-9)
    assert plant.state.y_m == pytest.approx(2.0 * radius * (1.0 - cos(turn)), rel=1e-6)
    assert plant.state.x_m == pytest.approx(2.0 * radius * sin(turn), rel=1e-6)
