# SPDX-License-Identifier: Apache-2.0
"""The world as a whole: how episodes end, that they repeat, whom the ego hits, and how dangerous that is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from math import inf, nan, pi, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.data.outputs import Control
from mt_nodes.world.drive import shapes
from mt_nodes.world.drive.collisions import Contacts
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.risk import (
    CYCLIST_KILLED,
    DRIVER_KILLED,
    PEDESTRIAN_KILLED,
    change_mps,
    pedestrian_killed,
    risks,
)
from mt_nodes.world.drive.scenario import (
    Actor,
    Ego,
    Environment,
    Obstacle,
    Person,
    Pose,
    Scenario,
    Trigger,
    Vehicle,
    Waypoint,
)
from mt_nodes.world.drive.trace import EgoState
from mt_nodes.world.drive.trace_recording import TraceRecording
from mt_nodes.world.drive.world import STANDSTILL_S, TARGET_M, World

PROMPT = Vehicle(drive_dead_s=0.0, drive_lag_s=0.0, steering_dead_s=0.0, steering_lag_s=0.0, brake_jerk_mps3=1e6)
ROLL = Control(None, steering_rad=0.0, acceleration_mps2=0.0)
BRAKE = replace(ROLL, acceleration_mps2=-9.0)


def scene(*actors: Actor, speed: float = 10.0, **other: object) -> Scenario:
    """Return a scenario on the straight street, the ego in its right lane at 50 m."""
    ego = Ego(Pose(50.0, 0.0), speed, vehicle=other.pop("vehicle", Vehicle()), target=other.pop("target", None))  # type: ignore[arg-type]
    return Scenario("made", "straight", ego, actors, **other)  # type: ignore[arg-type]


def played(world: World, command: Control | None = ROLL, period_s: float = 0.1) -> World:
    """Give one command until the episode ends."""
    while not world.ended:
        world.step(command, world.state.time_s + period_s)
    return world


def test_an_episode_ends_when_its_time_is_over() -> None:
    world = played(World(scene(duration_s=3.0)))
    assert (world.ended, world.state.time_s) == ("time", 3.0)
    assert world.state.ego.x_m == pytest.approx(80.0)
    world.step(BRAKE, 9.0)
    assert world.state.time_s == 3.0, "and nothing happens any more"


def test_an_episode_ends_at_the_target() -> None:
    world = played(World(scene(target=Pose(100.0, 0.0))))
    assert world.ended == "target"
    assert 100.0 - world.state.ego.x_m == pytest.approx(TARGET_M, abs=0.11)


def test_an_episode_ends_off_the_road_and_at_the_end_of_the_road() -> None:
    off = played(World(scene()), replace(ROLL, steering_rad=-0.1))
    assert off.ended == "off_road" and off.state.ego.y_m < -2.0
    beyond = played(World(replace(scene(), ego=Ego(Pose(580.0, 3.5), 10.0), duration_s=9.0)))
    assert beyond.ended == "end_of_road" and beyond.state.ego.x_m == pytest.approx(598.7, abs=0.2)


def test_an_episode_ends_when_the_ego_stands_for_nothing() -> None:
    world = played(World(scene(speed=0.0)), BRAKE)
    assert world.ended == "standstill" and world.state.time_s == pytest.approx(STANDSTILL_S, abs=0.1)


def test_standing_is_no_end_while_somebody_passes_or_a_light_is_red() -> None:
    walker = Actor("walker", "adult", Pose(60.0, -6.0), 0.5)
    assert played(World(scene(walker, speed=0.0, duration_s=8.0)), BRAKE).ended == "time"
    before_light = replace(scene(duration_s=8.0), ego=Ego(Pose(290.0, 0.0)), signals={"light_1": (("red", 60.0),)})
    assert played(World(before_light), BRAKE).ended == "time"
    green = replace(before_light, signals={"light_1": (("green", 60.0),)})
    assert played(World(green), BRAKE).ended == "standstill"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (Control(None), "none of acceleration_mps2"),
        (replace(ROLL, acceleration_mps2=inf), "acceleration_mps2 is inf"),
        (replace(ROLL, steering_rad=nan), "neither steering_rad"),
        (replace(ROLL, acceleration_mps2=nan, speed_mps=-4.0), "does not reverse"),
    ],
)
def test_an_episode_ends_at_a_command_that_cannot_be_carried_out(command: Control, reason: str) -> None:
    world = World(scene())
    world.step(ROLL, 0.5)
    before = world.state
    world.step(command, 0.6)
    assert world.ended == "bad_command" and reason in world.reason
    assert world.state.ego == before.ego and world.state.time_s == 0.5


def test_a_command_holds_until_the_next_one_and_none_rolls_at_first() -> None:
    silent, braking = World(scene()), World(scene())
    silent.step(None, 2.0)
    assert silent.state.ego.speed_mps == 10.0 and silent.state.ego.x_m == pytest.approx(70.0)
    braking.step(BRAKE, 0.3)
    braking.step(None, 2.5)
    assert braking.state.ego.speed_mps == 0.0


def test_a_step_must_go_forward() -> None:
    world = World(scene())
    world.step(ROLL, 0.5)
    with pytest.raises(ValueError, match=r"step to 0\.5 s at 0\.5 s"):
        world.step(ROLL, 0.5)


def crowd(seed: int) -> Scenario:
    """Return a street of twenty that walk, drive, wait and obey, from a seed."""
    rng = np.random.default_rng(seed)
    walkers = [Actor(f"w{i}", "adult", Pose(60.0 + 9.0 * i, -6.0), float(rng.uniform(0.5, 2.0))) for i in range(10)]
    cars = [
        Actor(f"c{i}", "car", Pose(90.0 + 25.0 * i, 3.5), float(rng.uniform(5.0, 12.0)), obeys_signals=True)
        for i in range(10)
    ]
    return scene(*walkers, *cars, duration_s=8.0, target=Pose(500.0, 0.0))


def recorded(scenario: Scenario, seed: int, period_s: float = 0.1) -> TraceRecording:
    """Play with commands drawn from a seed, ten of them a second."""
    world, rng = World(scenario, seed), np.random.default_rng(seed)
    recording = TraceRecording(world)
    while not world.ended:
        command = Control(None, float(rng.normal(0.0, 0.01)), acceleration_mps2=float(rng.normal(0.0, 2.0)))
        recording.add(world.state, command, True)
        until = world.state.time_s + 0.1
        while world.state.time_s < until - 1e-9 and not world.ended:
            world.step(command, world.state.time_s + period_s)
    return recording


def test_the_same_commands_give_the_same_trace_bit_for_bit() -> None:
    first, second = (recorded(crowd(4), 4).trace() for _ in range(2))
    assert first.ended == second.ended and len(first) > 20 and first.collisions == second.collisions
    for name in ("time_s", "ego", "actors", "commands", "answered"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes(), name
    other = recorded(crowd(5), 4).trace()
    assert other.actors.tobytes() != first.actors.tobytes()


def test_it_does_not_matter_in_how_many_calls_time_goes_on() -> None:
    whole, halves = (recorded(crowd(4), 4, period_s).trace() for period_s in (0.1, 0.05))
    assert whole.ego.tobytes() == halves.ego.tobytes() and whole.actors.tobytes() == halves.actors.tobytes()


def test_a_trace_says_what_was_commanded_and_what_was_not() -> None:
    world = World(scene(duration_s=0.3))
    recording = TraceRecording(world)
    for command in (ROLL, None, replace(ROLL, acceleration_mps2=nan, speed_mps=7.0)):
        recording.add(world.state, command, command is not None)
        world.step(command, world.state.time_s + 0.1)
    trace = recording.trace()
    assert trace.ended == "time" and recording.trace("silent").ended == "silent"
    assert trace.answered.tolist() == [True, False, True] and trace.time_s == pytest.approx([0.0, 0.1, 0.2])
    expected = [[0.0, nan, 0.0], [nan, nan, nan], [0.0, 7.0, nan]]
    assert np.array_equal(trace.commands, expected, equal_nan=True)
    assert trace.actors.shape == (3, 0, 4) and trace.column("speed_mps")[0] == 10.0


def test_a_mirrored_world_mirrors_the_trace() -> None:
    child = Actor("child", "child", Pose(80.0, -6.0, pi / 2), waypoints=(Waypoint(80.0, 5.0, 1.5),))
    seen = World(scene(child, duration_s=3.0))
    start = Pose(80.0, 6.0, -pi / 2)
    other = replace(child, start=start, waypoints=(Waypoint(80.0, -5.0, 1.5),))
    mirror = World(replace(scene(other, duration_s=3.0), road="straight_mirrored"))
    while not seen.ended:
        seen.step(replace(ROLL, steering_rad=0.01), seen.state.time_s + 0.1)
        mirror.step(replace(ROLL, steering_rad=-0.01), mirror.state.time_s + 0.1)
        assert mirror.state.ego.row == tuple(np.array(seen.state.ego.row) * (1, -1, -1, 1, 1, -1))
        assert mirror.state.actors == pytest.approx(seen.state.actors * (1, -1, -1, 1), abs=1e-12)
    assert mirror.ended == seen.ended


@pytest.mark.parametrize(("gap_m", "speed"), [(5.0, 10.0), (8.0, 15.0), (25.0, 27.8)])
def test_impact_speed_after_braking_is_that_of_the_closed_form(gap_m: float, speed: float) -> None:
    dead_s, brake = 0.2, 8.0
    car = replace(PROMPT, drive_dead_s=dead_s, brake_mps2=brake)
    wall = Obstacle("wall", "box", Pose(50.0 + car.front_m + gap_m + 0.5, 0.0), (1.0, 4.0, 2.0))
    world = played(World(scene(speed=speed, vehicle=car, obstacles=(wall,))), BRAKE)
    expected = sqrt(speed**2 - 2.0 * brake * (gap_m - speed * dead_s))
    (hit,) = world.collisions
    # It is seen at the end of the step of 10 ms in which it happened.
    assert expected - 1.01 * brake * 0.01 <= hit.ego_mps <= expected + 1e-9
    assert (hit.name, hit.kind, hit.side, world.ended) == ("wall", "box", "front", "collision")
    assert hit.closing_mps == hit.ego_mps and hit.x_m == pytest.approx(wall.pose.x_m - 0.5, abs=speed * 0.01)


def test_who_brakes_in_time_hits_nobody() -> None:
    car = replace(PROMPT, brake_mps2=8.0)
    wall = Obstacle("wall", "box", Pose(50.0 + car.front_m + 100.0 / 16.0 + 0.55, 0.0), (1.0, 4.0, 2.0))
    world = played(World(scene(vehicle=car, obstacles=(wall,))), BRAKE)
    assert world.collisions == () and world.ended == "standstill"
    assert wall.pose.x_m - 0.5 - world.state.ego.x_m - car.front_m == pytest.approx(0.05, abs=1e-6)


def hit_by(x: float, y: float, yaw: float, speed: float, ego_mps: float, kind: str = "car") -> tuple[str, float] | None:
    """Return side and closing speed where an actor is at a place of the ego's frame, the ego turned by one radian."""
    c, s = np.cos(1.0), np.sin(1.0)
    row = np.array([[7.0 + c * x - s * y, -3.0 + s * x + c * y, 1.0 + yaw, speed]])
    contacts = Contacts(scene(Actor("other", kind, Pose(0.0, 0.0))), load_map("bend"))
    found = contacts.found(1.0, EgoState(7.0, -3.0, 1.0, ego_mps), row)
    return (found[0].side, found[0].closing_mps) if found else None


@pytest.mark.parametrize(
    ("x", "y", "yaw", "speed", "ego_mps", "side", "closing"),
    [
        (5.95, 0.0, pi, 8.0, 10.0, "front", 18.0),
        (5.75, 1.75, pi, 8.0, 10.0, "front", 18.0),
        (5.95, 0.0, 0.0, 8.0, 10.0, "front", 2.0),
        (-3.25, 0.5, 0.0, 14.0, 10.0, "rear", 4.0),
        (1.0, 3.1, -pi / 2, 6.0, 0.0, "left", 6.0),
        (1.0, -3.1, pi / 2, 6.0, 0.0, "right", 6.0),
        (1.0, -1.83, 0.1, 10.0, 10.0, "right", 10.0 * float(np.sin(0.1))),
        (4.65, 0.5, -pi / 2, 2.0, 15.0, "front", 15.0),
    ],
)
def test_a_collision_says_by_which_side_and_how_fast(
    x: float, y: float, yaw: float, speed: float, ego_mps: float, side: str, closing: float
) -> None:
    found = hit_by(x, y, yaw, speed, ego_mps)
    assert found is not None and found[0] == side and found[1] == pytest.approx(closing)


def test_corners_that_only_their_bounds_share_do_not_touch() -> None:
    assert hit_by(5.9, 3.0, pi / 4, 0.0, 5.0) is None
    assert hit_by(5.9, 1.5, pi / 4, 0.0, 5.0) is not None
    assert hit_by(4.2, 1.3, 0.0, 0.0, 5.0, "adult") is None
    assert hit_by(3.9, 1.15, 0.0, 0.0, 5.0, "adult") is not None


@settings(max_examples=40)
@given(st.floats(-9.0, 9.0), st.floats(-6.0, 6.0), st.floats(-pi, pi))
def test_there_is_a_contact_just_where_footprints_share_something(x: float, y: float, yaw: float) -> None:
    car = Vehicle()
    here = shapes.placed(shapes.of_vehicle(car), 0.0, 0.0, 0.0)
    there = shapes.placed(shapes.box(4.4, 1.82), x, y, yaw)
    if abs(here.distance(there)) > 1e-6 or here.intersection(there).area > 1e-6:
        assert (hit_by(x, y, yaw, 3.0, 5.0) is not None) == here.intersects(there)


def test_a_world_that_goes_on_after_a_collision_tells_of_each_once() -> None:
    people = [Actor(f"p{i}", "adult", Pose(70.0 + 10.0 * i, 0.2)) for i in range(3)]
    on = World(scene(*people, duration_s=6.0), stop_at_collision=False)
    played(on)
    assert [hit.name for hit in on.collisions] == ["p0", "p1", "p2"] and on.ended == "time"
    stopped = played(World(scene(*people, duration_s=6.0)))
    assert [hit.name for hit in stopped.collisions] == ["p0"] and stopped.ended == "collision"
    assert stopped.collisions[0] == on.collisions[0]


def test_posts_of_lights_can_be_hit() -> None:
    pose = next(signal.pose for signal in load_map("straight").signals if signal.name == "light_1")
    start = Pose(pose.x_m - 12.0, -2.8, -0.13)
    world = played(World(replace(scene(), ego=Ego(start, 5.0))))
    assert [(hit.name, hit.kind) for hit in world.collisions] == [("light_1", "traffic_light")]


def test_curves_of_pedestrians_and_cyclists_give_what_their_studies_say() -> None:
    at = {speed: PEDESTRIAN_KILLED(speed / 3.6) for speed in (30, 40, 50)}
    assert at[50] > 2.0 * at[40] and at[50] > 5.0 * at[30] and at[50] == pytest.approx(0.083, abs=0.001)
    riders = {speed: CYCLIST_KILLED(speed / 3.6) for speed in (30, 40, 50, 67.6)}
    assert riders[67.6] == pytest.approx(0.5, abs=0.005) and riders[50] > 2.0 * riders[40]
    assert riders[50] / riders[30] == pytest.approx(5.0, abs=0.3)


def test_the_curve_of_drivers_gives_what_its_study_says() -> None:
    for mph, share in ((30, 0.03), (40, 0.17), (50, 0.60), (60, 0.92)):
        assert DRIVER_KILLED(mph * 0.44704) == pytest.approx(share, abs=0.015)


def test_risk_rises_with_speed_and_age_but_not_by_being_a_child() -> None:
    speeds = np.linspace(0.0, 30.0, 16)
    assert np.all(np.diff([PEDESTRIAN_KILLED(speed) for speed in speeds]) > 0.0)
    assert pedestrian_killed(80.0)(12.0) > pedestrian_killed(40.0)(12.0)
    assert pedestrian_killed(7.0) is pedestrian_killed(None) is pedestrian_killed(14.9)
    assert pedestrian_killed(15.0)(12.0) != pedestrian_killed(14.9)(12.0)


def test_both_change_their_speed_by_the_share_of_the_other_mass() -> None:
    ego, other = change_mps(10.0, 1650.0, 75.0), change_mps(10.0, 75.0, 1650.0)
    assert ego + other == pytest.approx(10.0) and 1650.0 * ego == pytest.approx(75.0 * other)
    assert change_mps(10.0, 1650.0, None) == 10.0


def test_who_is_at_risk_depends_on_who_was_hit() -> None:
    fatal, injured = risks("pedestrian", "front", 14.0, 1650.0, 75.0, Person(age_years=30.0))
    assert fatal == pytest.approx(pedestrian_killed(30.0)(14.0)) and injured is not None and injured > 0.5
    assert risks("pedestrian", "left", 1.4, 1650.0, 75.0, None)[0] is None, "curves of deaths are of fronts"
    assert risks("motorcycle", "front", 14.0, 1650.0, 275.0, None)[0] is None, "none is known"
    cow, dog = (risks("animal", "front", 20.0, 1650.0, mass, None) for mass in (600.0, 30.0))
    assert cow[0] is not None and dog[0] is not None and cow[0] > dog[0]
    wall, car = (risks("unknown", "front", 20.0, 1650.0, mass, None) for mass in (None, 1650.0))
    assert wall[0] == DRIVER_KILLED(20.0) and car[0] == DRIVER_KILLED(10.0)


def test_a_collision_carries_the_risk_of_who_was_hit() -> None:
    def hit(kind: str, **who: object) -> tuple[float | None, float | None]:
        actor = Actor("other", kind, Pose(70.0, 0.0), **who)  # type: ignore[arg-type]
        (found,) = played(World(scene(actor, speed=14.0))).collisions
        return found.fatal, found.injured

    old, young = (hit("adult", person=Person(age_years=age))[0] for age in (80.0, 20.0))
    assert old is not None and young is not None and old > young
    assert hit("child", person=Person(age_years=7.0))[0] == hit("child")[0]
    heavy, light = (hit("deer", mass_kg=mass)[1] for mass in (300.0, 30.0))
    assert heavy is not None and light is not None and heavy > light


def test_snow_lengthens_the_way_to_stop() -> None:
    ways = []
    for snow in (0.0, 1.0):
        world = played(World(scene(environment=Environment(snow=snow), vehicle=PROMPT)), BRAKE)
        ways.append(world.state.ego.x_m - 50.0)
    assert ways[0] == pytest.approx(100.0 / 2.0 / (0.85 * 9.81), rel=1e-6)
    assert ways[1] == pytest.approx(100.0 / 2.0 / (0.30 * 9.81), rel=1e-6)


KINDS_MOVED = st.sampled_from(["adult", "wheelchair_user", "cyclist", "deer", "car", "bus", "cone"])
WHO = st.tuples(
    KINDS_MOVED,
    st.floats(0.0, 12.0),
    st.floats(-pi, pi),
    st.booleans(),
    st.one_of(st.none(), st.floats(0.0, 60.0)),
    st.lists(st.tuples(st.floats(10.0, 590.0), st.floats(-7.0, 7.0), st.floats(0.1, 12.0)), max_size=3),
)


@settings(max_examples=12)
@given(st.lists(WHO, max_size=6), st.lists(st.tuples(st.floats(-9, 3), st.floats(-0.6, 0.6)), min_size=1, max_size=5))
def test_whatever_happens_there_are_numbers_and_a_reason(
    who: list[tuple[str, float, float, bool, float | None, list[tuple[float, float, float]]]],
    asked: list[tuple[float, float]],
) -> None:
    actors = [
        Actor(
            f"a{i}",
            kind,
            Pose(80.0 + 20.0 * i, (-3.0, 3.5)[i % 2], yaw),
            speed,
            tuple(Waypoint(*point) for point in way),
            Trigger(ego_within_m=within),
            obeys_signals=obeys,
        )
        for i, (kind, speed, yaw, obeys, within, way) in enumerate(who)
    ]
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        world = World(scene(*actors, duration_s=4.0))
        for acceleration, steering in asked * 5:
            world.step(replace(ROLL, acceleration_mps2=acceleration, steering_rad=steering), world.state.time_s + 0.1)
            assert np.isfinite(world.state.actors).all() and np.isfinite(world.state.ego.row).all()
            if world.ended:
                break
    assert world.ended in ("", "time", "collision", "off_road", "standstill")
    assert (world.ended == "collision") is bool(world.collisions)
    assert np.all(world.state.actors[:, 3] >= 0.0)


def test_a_tenth_of_a_second_with_twenty_actors_costs_little() -> None:
    world = World(replace(crowd(4), duration_s=60.0))
    world.step(ROLL, 0.5)
    steps, spent_s, loop_s = 0, 0.0, 0.0
    while not world.ended:
        spent_s += _thread_time(lambda: world.step(ROLL, world.state.time_s + 0.1))
        # Beside each step a piece of a plain loop: what a step may take goes by the processor it runs on.
        loop_s += _thread_time(lambda: sum(number * number for number in range(300)))
        steps += 1
    assert steps > 100 and spent_s / steps < 30_000 * loop_s / (300 * steps)


def _thread_time(do: Callable[[], object]) -> float:
    """Return how much processor time something takes, in seconds."""
    begin_s = time.thread_time()
    do()
    return time.thread_time() - begin_s
