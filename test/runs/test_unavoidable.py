# SPDX-License-Identifier: Apache-2.0
"""Whether a collision can be avoided: against closed forms, against the world, and bound against manoeuvre."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import cos, pi, sin

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.base.errors import UsageError
from mt_nodes.data.outputs import Control
from mt_nodes.world.drive import shapes
from mt_nodes.world.drive.bodies import size_of
from mt_nodes.world.drive.friction import GRAVITY_MPS2, friction
from mt_nodes.world.drive.manoeuvres import extremes
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.plant import Plant
from mt_nodes.world.drive.reachable import Moving, Reach, covered_always, nowhere_left_s
from mt_nodes.world.drive.rollout import STEP_S, Fleet, driven, others, start_of
from mt_nodes.world.drive.scenario import Actor, Ego, Environment, Obstacle, Pose, Scenario, Trigger, Vehicle, Waypoint
from mt_nodes.world.drive.trace import EgoState
from mt_nodes.world.drive.unavoidable import Avoidability, Avoidance, avoidance
from mt_nodes.world.drive.world import World

BEGIN_M = 20.0
PROMPT = Vehicle(
    steering_dead_s=0.0,
    steering_lag_s=0.0,
    steering_rate_radps=100.0,
    drive_dead_s=0.0,
    drive_lag_s=0.0,
    brake_jerk_mps3=1e6,
)
"""A car whose actuators do at once what they are told."""
TESTED = replace(PROMPT, steering_dead_s=0.24, steering_lag_s=0.27, drive_dead_s=0.2)
"""Actuators as of the table of figures: those of Autoware's simulator, and brakes that answer after 0.2 s."""
MU_08 = Environment(wetness=1.0 / 6.0)


def scene(*actors: Actor, kmh: float = 100.0, obstacles: tuple[Obstacle, ...] = (), **other: object) -> Scenario:
    """The ego in the right lane of the straight street of two lanes."""
    vehicle = other.pop("vehicle", Vehicle())
    ego = Ego(Pose(BEGIN_M, 0.0), kmh / 3.6, vehicle=vehicle)  # type: ignore[arg-type]
    return Scenario("made", "straight", ego, actors, obstacles, **({"duration_s": 12.0} | other))  # type: ignore[arg-type]


def person(gap_m: float, left_m: float, name: str, **other: object) -> Actor:
    """Somebody who stands with the near side so far before the ego's bumper."""
    standing = Actor(name, "adult", Pose(0.0, left_m), **other)  # type: ignore[arg-type]
    return replace(standing, start=Pose(BEGIN_M + 3.8 + gap_m + size_of(standing)[0] / 2.0, left_m))


def block(gap_m: float, width_m: float = 40.0) -> Obstacle:
    """Something across the way, its near side so far before the ego's bumper."""
    return Obstacle("block", "box", Pose(BEGIN_M + 3.8 + gap_m + 0.25, 0.0), (0.5, width_m, 1.0))


def row_of_people(gap_m: float, apart_m: float = 2.0) -> list[Actor]:
    """People beside each other from kerb to kerb and beyond."""
    return [person(gap_m, left, f"p{i}") for i, left in enumerate(np.arange(-8.0, 9.0, apart_m).tolist())]


CARS = {
    "usual": Vehicle(),
    "prompt": PROMPT,
    "late": TESTED,
    "long and slow": Vehicle(wheelbase_m=4.0, steering_rate_radps=0.2, brake_jerk_mps3=10.0),
}


@pytest.mark.parametrize("car", CARS)
@pytest.mark.parametrize("speed_mps", [0.0, 3.0, 30.0])
def test_a_fleet_is_so_many_plants(car: str, speed_mps: float) -> None:
    rng, count = np.random.default_rng(5), 6
    start = EgoState(3.0, -4.0, 0.5, speed_mps, 0.0, 0.02)
    fleet = Fleet(count, CARS[car], start, 6.0, STEP_S)
    plants = [Plant(CARS[car], start, 6.0, STEP_S) for _ in range(count)]
    for k in range(200):
        if k % 15 == 0:
            pulled, wheel = rng.uniform(-9.0, 3.0, count), rng.uniform(-0.6, 0.6, count) * rng.choice([0.05, 1.0])
        fleet.advance(pulled, wheel)
        for plant, a, steering in zip(plants, pulled.tolist(), wheel.tolist(), strict=True):
            plant.advance(a, steering)
        assert fleet.states == pytest.approx(np.array([plant.state.row for plant in plants]), rel=1e-9, abs=1e-9)
    assert np.ptp(fleet.states[:, 0]) > 0.01


def test_manoeuvres_ask_for_what_the_car_can() -> None:
    car = Vehicle()
    moves = extremes(car, 8.0)
    assert len(set(moves.names)) == len(moves) >= 100
    rng = np.random.default_rng(0)
    for time_s in np.arange(0.0, 9.0, 0.05).tolist():
        pull, wheel = moves.commands_at(time_s, rng.uniform(0.0, 40.0, len(moves)), rng.normal(size=len(moves)))
        assert (pull >= -car.brake_mps2).all() and (pull <= car.acceleration_mps2).all()
        assert (np.abs(wheel) <= car.steering_rad).all()
    at_last, _ = moves.commands_at(20.0, np.full(len(moves), 10.0), np.zeros(len(moves)))
    assert (at_last < 0.0).all(), "each comes to rest at last"


def can(scenario: Scenario) -> bool:
    return avoidance(scenario, off_road=True).answer is Avoidability.AVOIDABLE


@pytest.mark.parametrize(
    ("kmh", "weather", "stop_m"),
    [(50, MU_08, 15.1), (100, MU_08, 54.7), (50, Environment(wetness=5 / 6), 19.2)],
)
def test_braking_avoids_from_the_stopping_distance_on_and_before_it_that_nothing_does_is_proved(
    kmh: float, weather: Environment, stop_m: float
) -> None:
    """v T + v^2 / (2 mu g): the figures are those of the table, with 0.2 s of dead time."""
    speed, grip = kmh / 3.6, friction(weather) * GRAVITY_MPS2
    exact = 0.2 * speed + speed**2 / (2.0 * grip)
    assert exact == pytest.approx(stop_m, abs=0.06)
    # In the proof both answer with the first, and a car may stand across the road: it has no bonnet.
    car = replace(TESTED, steering_dead_s=0.2)
    short = 0.985 * exact - (car.front_m - car.width_m / 2.0) - 0.2
    late = scene(kmh=kmh, environment=weather, vehicle=car, obstacles=(block(short),), duration_s=20.0)
    found = avoidance(late, off_road=True)
    assert (
        found.answer is Avoidability.UNAVOIDABLE and found.manoeuvre == "" and found.choices == (frozenset({"block"}),)
    )
    between = avoidance(replace(late, obstacles=(block(0.98 * exact),)), off_road=True)
    assert between.answer is not Avoidability.AVOIDABLE
    early = avoidance(replace(late, obstacles=(block(1.01 * exact),)), off_road=True)
    assert (early.answer, early.manoeuvre) == (Avoidability.AVOIDABLE, "brake")
    assert early.choices == (frozenset(),)


@pytest.mark.parametrize(("kmh", "ideal_m", "late_m"), [(50, 9.7, 16.0), (80, 15.5, 25.7), (100, 19.3, 32.1)])
def test_steering_avoids_by_1_9_metres_between_the_tables_distances(kmh: float, ideal_m: float, late_m: float) -> None:
    """The table's are of a point; the front corner gets there somewhat later than the middle of the rear axle."""

    def scenario(axle_m: float, car: Vehicle) -> Scenario:
        across = block(axle_m - 3.8, 2.0 * (1.9 - car.width_m / 2.0))
        return scene(kmh=kmh, environment=MU_08, vehicle=car, obstacles=(across,))

    assert not can(scenario(0.98 * ideal_m, PROMPT)) and can(scenario(1.15 * ideal_m, PROMPT))
    assert not can(scenario(ideal_m + 0.2 * kmh / 3.6, TESTED)) and can(scenario(1.08 * late_m, TESTED))


def test_lateral_way_with_dead_time_and_lag_is_the_closed_form() -> None:
    """y = a ((t - T)^2 / 2 - tau (t - T) + tau^2 (1 - exp(-(t - T) / tau))), while the heading is nearly straight."""
    scenario = scene(environment=MU_08, vehicle=TESTED)
    moves = extremes(TESTED, 0.8 * GRAVITY_MPS2)
    m = moves.names.index("left gently 0.8 s and back, brake")
    y = driven(scenario, moves, 0.0)[80, m, 1]
    since, lag, a = 0.8 - 0.24, 0.27, 0.4 * GRAVITY_MPS2
    assert y == pytest.approx(a * (since**2 / 2 - lag * since + lag**2 * (1 - np.exp(-since / lag))), rel=0.06)


def test_the_car_is_straightened_before_it_stands() -> None:
    scenario, moves = scene(), extremes(Vehicle(), 8.0)
    last = driven(scenario, moves, 0.0)[-1]
    swerved = moves.names.index("left 0.5 s, brake")
    assert last[swerved, 1] > 1.0 and abs(last[swerved, 2]) < 0.02 and last[swerved, 3] == 0.0


def test_who_is_sure_is_known_to_the_end_also_beside_drivers_who_watch() -> None:
    walker = Actor("walker", "adult", Pose(200.0, -3.0, pi / 2.0), 1.0)
    scenario = scene(Actor("car", "car", Pose(BEGIN_M - 12.0, 3.5), 24.0, obeys_signals=True), walker, duration_s=1.0)
    moves = extremes(Vehicle(), 8.0)
    egos = driven(scenario, moves, 0.0)
    moved = others(scenario, load_map("straight"), egos, np.full(len(moves), 20))
    assert moved.sure == (False, True)
    assert moved.rows[1][-1, 0, 1] == pytest.approx(-2.0, abs=0.05) and moved.rows[1][-1, 1, 1] < -2.7


@pytest.mark.parametrize(("beyond_m", "leaves"), [(0.6, True), (-0.6, False)])
def test_it_is_the_middle_of_the_car_that_leaves_the_road(beyond_m: float, leaves: bool) -> None:
    """The street is 600 m long; the middle is 1.35 m before the axle."""
    scenario = scene(kmh=36)
    moves = extremes(Vehicle(), friction(scenario.environment) * GRAVITY_MPS2)
    brake = moves.names.index("brake")
    way = driven(scenario, moves, 0.0)[-1, brake, 0] - BEGIN_M
    ego = replace(scenario.ego, start=Pose(600.0 - 1.35 - way + beyond_m, 0.0))
    assert avoidance(replace(scenario, ego=ego)).tried[brake].leaves_road is leaves


def waiting_child(within_m: float) -> Actor:
    ways = (Waypoint(BEGIN_M + 48.0, 10.0, 2.5),)
    return Actor("child", "child", Pose(BEGIN_M + 48.0, -1.5, pi / 2.0), 0.0, ways, Trigger(ego_within_m=within_m))


PLAYED = {
    "people": scene(person(25.0, 0.0, "a"), person(25.0, 1.2, "b"), person(27.0, 3.5, "c")),
    "a child that waits": scene(waiting_child(33.0), person(40.0, 3.5, "b"), kmh=70),
    "a child that waits for the time": scene(
        replace(waiting_child(0.0), trigger=Trigger(after_s=0.4, ego_within_s=1.2)), kmh=80
    ),
    "a driver who keeps away": scene(
        Actor("car", "car", Pose(BEGIN_M - 12.0, 3.5), 24.0, obeys_signals=True), person(20.0, 0.0, "a"), duration_s=2.0
    ),
}


@lru_cache
def judged(name: str) -> Avoidance:
    return avoidance(PLAYED[name])


@pytest.mark.parametrize("name", PLAYED)
def test_each_manoeuvre_is_what_the_world_makes_of_it(name: str) -> None:
    scenario = PLAYED[name]
    moves = extremes(scenario.ego.vehicle, friction(scenario.environment) * GRAVITY_MPS2)
    tried = judged(name).tried
    some = range(1, len(moves), 19)
    for m in some:
        world = World(scenario, stop_at_collision=False)
        for k in range(round(scenario.duration_s / STEP_S)):
            ego = world.state.ego
            pull, wheel = moves.commands_at(
                k * STEP_S, np.full(len(moves), ego.speed_mps), np.full(len(moves), ego.yaw_rad)
            )
            world.step(Control(None, steering_rad=wheel[m], acceleration_mps2=pull[m]), (k + 1) * STEP_S)
            if world.ended or world.state.ego.speed_mps == 0.0:
                break
        assert (tried[m].hits, tried[m].leaves_road) == (
            tuple(hit.name for hit in world.collisions),
            world.ended == "off_road",
        ), moves.names[m]
    hits = {tried[m].hits for m in some if not tried[m].leaves_road}
    assert len(hits) > 1, "an example in which it matters what one does"


BEHIND = scene(Actor("car", "car", Pose(BEGIN_M - 18.0, 0.0), 26.0, obeys_signals=True), kmh=100)


@pytest.mark.parametrize("scenario", [*PLAYED.values(), BEHIND], ids=[*PLAYED, "a driver behind"])
def test_the_others_move_as_in_the_world(scenario: Scenario) -> None:
    moves = extremes(Vehicle(), friction(scenario.environment) * GRAVITY_MPS2)
    assert moves.names[:2] == ("roll on", "brake")
    egos = driven(scenario, moves, 0.0)[:, :2]
    moved = others(scenario, load_map("straight"), egos, np.full(2, len(egos) - 1)).rows
    for m, pull in enumerate((0.0, -9.0)):
        world = World(scenario, stop_at_collision=False)
        for tenth in range(1, 20):
            world.step(Control(None, steering_rad=0.0, acceleration_mps2=pull), tenth / 10.0)
            rows = np.array([rows[10 * tenth, m % rows.shape[1]] for rows in moved])
            assert rows == pytest.approx(world.state.actors, abs=1e-9)
    assert scenario is not BEHIND or np.ptp(moved[0][190, :, 3]) > 2.0


def test_actors_that_wait_are_moved_by_each_manoeuvre() -> None:
    scenario = PLAYED["a child that waits"]
    road, moves = load_map("straight"), extremes(Vehicle(), 8.0)
    egos = driven(scenario, moves, 0.0)
    moved = others(scenario, road, egos, np.full(len(moves), len(egos) - 1))
    assert moved.sure == (False, True)
    assert moved.rows[0].shape == (*egos.shape[:2], 4) and moved.rows[1].shape[1] == 1
    began = (moved.rows[0][..., 3] > 0.0).argmax(axis=0)
    assert len(set(began.tolist())) > 5
    nearer = replace(scenario, actors=(waiting_child(60.0), scenario.actors[1]))
    assert others(nearer, road, egos, np.full(len(moves), 5)).sure == (True, True), "begun at once, whatever follows"


def sparing(found: Avoidance, *names: str) -> tuple[str, ...]:
    """The manoeuvres on the road that spare these, whoever else they hit."""
    return tuple(one.name for one in found.tried if not one.leaves_road and not set(names) & set(one.hits))


def test_people_from_kerb_to_kerb_cannot_be_avoided_but_each_of_them_can() -> None:
    found = avoidance(scene(*row_of_people(22.0)))
    assert found.answer is Avoidability.UNAVOIDABLE and "nowhere" in found.reason and found.manoeuvre == ""
    assert len(found.choices) >= 2
    for names in found.choices:
        ways = sparing(found, *names)
        hit = {one.name: one.hits for one in found.tried}
        assert ways and all(hit[way] and not names & set(hit[way]) for way in ways)
    assert not sparing(found, *(f"p{i}" for i in range(9)))
    assert not any(one < other for one in found.choices for other in found.choices)


def test_between_two_people_a_lane_apart_a_car_fits() -> None:
    found = avoidance(scene(person(25.0, 0.0, "right"), person(25.0, 3.5, "left")))
    assert found.answer is Avoidability.AVOIDABLE and found.manoeuvre in sparing(found, "left", "right")


def test_the_switch_for_the_road_and_the_time_to_see() -> None:
    """Nobody on the road is missed, but beside it there is room; later there is no more of that either."""
    scenario = scene(*(person(34.0, left, f"p{i}") for i, left in enumerate(np.arange(-4.4, 7.0, 1.6).tolist())))
    assert avoidance(scenario).answer is Avoidability.UNAVOIDABLE
    free = avoidance(scenario, off_road=True)
    assert free.answer is Avoidability.AVOIDABLE and not any(one.leaves_road for one in free.tried)
    late = avoidance(scenario, off_road=True, begins_s=0.5)
    assert late.answer is not Avoidability.AVOIDABLE


def test_what_is_neither_avoided_nor_proved_is_presumed() -> None:
    """Just short of the stopping distance: brakes build up, which the bound leaves out."""
    found = avoidance(scene(obstacles=(block(49.0),)), off_road=True)
    assert found.answer is Avoidability.PRESUMED and "not proved" in found.reason
    waiting = replace(waiting_child(33.0), start=Pose(BEGIN_M + 30.0, 0.0), size_m=(0.5, 14.0, 1.0))
    alone = avoidance(scene(replace(waiting, trigger=Trigger(ego_within_m=20.0))))
    assert alone.answer is Avoidability.PRESUMED, "who may not be there proves nothing"


def test_who_walks_into_a_standing_car_is_not_hit() -> None:
    ways = (Waypoint(BEGIN_M + 2.0, 10.0, 1.0),)
    walker = Actor("walker", "adult", Pose(BEGIN_M + 2.0, -4.0, pi / 2.0), 0.0, ways)
    found = avoidance(scene(walker, kmh=5))
    assert found.answer is Avoidability.AVOIDABLE and "brake" in sparing(found, "walker")


def test_a_scenario_with_problems_is_refused() -> None:
    with pytest.raises(UsageError):
        avoidance(scene(person(10.0, 0.0, "twice"), person(20.0, 0.0, "twice")))


@given(st.floats(0.0, 1.7))
@settings(max_examples=30, deadline=None)
def test_what_is_covered_always_is_covered_at_each_heading(psi: float) -> None:
    car = Vehicle()
    corners = covered_always(car, psi)
    for turned in np.linspace(-psi, psi, 9).tolist():
        outline = shapes.placed(shapes.of_vehicle(car), 0.0, 0.0, turned).buffer(1e-9)
        assert shapely.contains_xy(outline, *corners.T).all()
    area = shapely.MultiPoint(corners).convex_hull.area
    assert area > 0.9 * (car.front_m + 0.5) * car.width_m or psi > 0.01


@pytest.mark.parametrize("speed_mps", [4.0, 13.9, 30.0])
@pytest.mark.parametrize("car", ["usual", "prompt"])
def test_whatever_is_driven_is_within_reach(speed_mps: float, car: str) -> None:
    vehicle, grip, rng = CARS[car], 8.0, np.random.default_rng(2)
    start = EgoState(5.0, 6.0, 0.7, speed_mps)
    count, dead_s = 60, min(vehicle.drive_dead_s, vehicle.steering_dead_s)
    fleet, reach = Fleet(count, vehicle, start, grip, STEP_S), Reach(vehicle, start, grip, dead_s)
    sign = rng.choice([-1.0, 0.0, 1.0], count)
    for k in range(round(0.9 * speed_mps / grip / STEP_S)):
        if k % 30 == 0:
            pull, wheel = rng.choice([-9.0, -4.0, 0.0, 3.0], count), 0.6 * rng.choice([0.05, 0.2, 1.0], count) * sign
        fleet.advance(pull, wheel)
        reach.spread(STEP_S)
        if k % 5:
            continue
        x, y, yaw = fleet.states[:, :3].T
        assert shapely.contains_xy(reach.places.buffer(1e-6), x, y).all()
        assert (np.abs(yaw - start.yaw_rad) <= reach.psi_rad + 1e-9).all()


def test_reach_is_a_disc_of_half_a_t_squared() -> None:
    reach = Reach(Vehicle(), EgoState(0.0, 0.0, pi / 3.0, 20.0), 8.0, 0.2)
    for _ in range(60):
        reach.spread(0.02)
    radius = 8.08 * 1.0**2 / 2.0
    assert reach.time_s == pytest.approx(1.2)
    assert reach.places.area == pytest.approx(pi * radius**2, rel=0.02) and reach.places.area > pi * radius**2
    assert shapely.get_coordinates(reach.places.centroid)[0] == pytest.approx((24 * cos(pi / 3), 24 * sin(pi / 3)))


@pytest.mark.parametrize("yaw_rad", [0.0, 2.0])
def test_taken_away_is_where_the_car_touches_and_nothing_more(yaw_rad: float) -> None:
    """As long as nothing has turned, that is at all places whose rectangle meets the body, but for the rear corners."""
    car, start = Vehicle(), EgoState(0.0, 0.0, yaw_rad, 20.0)
    reach = Reach(car, start, 8.0, 0.0)
    reach.places = shapely.Point(0.0, 0.0).buffer(15.0)
    body = shapes.placed(shapes.box(1.0, 0.6), 5.0, 1.0, 0.4)
    reach.keep_off(shapely.get_coordinates(body))
    places = np.random.default_rng(0).uniform(-8.0, 8.0, (3000, 2))
    free = shapely.contains_xy(reach.places, *places.T)
    touches = np.array([shapes.placed(shapes.of_vehicle(car), x, y, yaw_rad).intersects(body) for x, y in places])
    assert (touches | free).all(), "what is taken away touches"
    assert (touches & ~free).sum() > 0.9 * touches.sum() > 100


@given(st.integers(0, 10_000))
@settings(max_examples=5, deadline=None)
def test_where_avoidance_is_disproved_no_manoeuvre_avoids(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gap, kmh = rng.uniform(4.0, 30.0), rng.uniform(30.0, 110.0)
    lefts = np.arange(-6.0, 8.0, rng.uniform(1.8, 3.2)) + rng.uniform(-0.5, 0.5)
    people = [person(gap + rng.uniform(0.0, 3.0), left, f"p{i}") for i, left in enumerate(lefts.tolist())]
    scenario = scene(*people, kmh=kmh)
    bodies = [
        Moving(shapes.box(*size_of(p)[:2]), np.tile((p.start.x_m, p.start.y_m, p.start.yaw_rad), (500, 1)))
        for p in people
    ]
    start = EgoState(BEGIN_M, 0.0, 0.0, kmh / 3.6)
    left_s = nowhere_left_s(Vehicle(), start, friction(Environment()) * GRAVITY_MPS2, 0.1, bodies, 0.02)
    assert left_s is None or avoidance(scenario, off_road=True).answer is Avoidability.UNAVOIDABLE


@pytest.mark.parametrize("step_s", [0.01, 0.02])
def test_reach_does_not_vanish_where_nobody_is(step_s: float) -> None:
    """Whatever rounding leaves of the time since the beginning when that has just come."""
    for begins_s in np.arange(0.0, 0.6, 0.01).tolist():
        reach = Reach(Vehicle(), EgoState(0.0, 0.0, 0.0, 20.0), 8.0, begins_s)
        for _ in range(round(begins_s / step_s) + 3):
            reach.spread(step_s)
            assert not reach.places.is_empty, begins_s


@given(st.integers(0, 10_000))
@settings(max_examples=5, deadline=None)
def test_where_a_parapet_leaves_no_room_no_manoeuvre_avoids_either(seed: int) -> None:
    rng, road = np.random.default_rng(seed), load_map("bridge")
    gap, kmh = rng.uniform(15.0, 40.0), rng.uniform(70.0, 110.0)
    people = [person(gap, left, f"p{i}") for i, left in enumerate(rng.uniform([0.2, 2.2], [0.8, 2.8]).tolist())]
    scenario = replace(scene(*people, kmh=kmh), road="bridge")
    bodies = [
        Moving(shapes.box(*size_of(p)[:2]), np.tile((p.start.x_m, p.start.y_m, p.start.yaw_rad), (600, 1)))
        for p in people
    ]
    most = friction(Environment()) * GRAVITY_MPS2
    left_s = nowhere_left_s(Vehicle(), start_of(scenario), most, 0.1, bodies, STEP_S, road, True)
    tried = avoidance(scenario, whole=True, prove=False)
    assert tried.answer is not Avoidability.UNAVOIDABLE, "not asked"
    assert left_s is None or tried.answer is Avoidability.PRESUMED


def test_a_parapet_is_left_by_the_first_corner_of_the_car() -> None:
    """Who brakes half a metre off a lane's middle stays on the bridge, 0.6 m off a corner is over its edge."""
    for left_m, leaves in ((-0.5, False), (-0.6, True), (-1.0, True), (3.5, False), (3.6, True)):
        ego = Ego(Pose(BEGIN_M, left_m), 20.0)
        scenario = replace(scene(), road="bridge", ego=ego)
        brakes = {one.name: one for one in avoidance(scenario, whole=True).tried}["brake"]
        assert brakes.leaves_road == leaves
