# SPDX-License-Identifier: Apache-2.0
"""How actors move, wait and obey; and which scenarios are refused."""

from __future__ import annotations

from dataclasses import replace
from math import hypot, inf, nan, pi, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.base.errors import UsageError
from mt_nodes.data.outputs import Control
from mt_nodes.world.drive.bodies import facts_of, size_of
from mt_nodes.world.drive.maps import MAPS, load_map
from mt_nodes.world.drive.paths import Paths
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
from mt_nodes.world.drive.scenario_checks import problems
from mt_nodes.world.drive.signals import colour_at
from mt_nodes.world.drive.world import World
from mt_nodes.world.scene.objects import KINDS, mesh_of

ROLL = Control(None, steering_rad=0.0, acceleration_mps2=0.0)
CREEP_MPS = 0.03
"""Of an ego that does not matter: if it stood, the world would end."""
LIGHT_M, CROSSING_M = 297.0, 300.0


def scene(*actors: Actor, x: float = 20.0, speed: float = CREEP_MPS, **other: object) -> Scenario:
    """Return a scenario on the straight street, the ego in its right lane."""
    return Scenario("made", "straight", Ego(Pose(x, 0.0), speed), actors, **({"duration_s": 60.0} | other))  # type: ignore[arg-type]


def seen(scenario: Scenario, seconds: float, every_s: float = 0.1) -> np.ndarray:
    """Return (T, N, 4) the actors at first and after each period."""
    world = World(scenario, stop_at_collision=False)
    rows = [world.state.actors]
    for k in range(1, round(seconds / every_s) + 1):
        world.step(ROLL, k * every_s)
        rows.append(world.state.actors)
    return np.array(rows)


def walk(*places: tuple[float, float], speed: float = 1.5) -> tuple[Waypoint, ...]:
    return tuple(Waypoint(x, y, speed) for x, y in places)


def lit(colour: str, *more: tuple[str, float]) -> dict[str, tuple[tuple[str, float], ...]]:
    """Return programmes that show people the one colour and vehicles too."""
    programme = (*more, (colour, 600.0))
    return dict.fromkeys(("walk", "light_1", "light_2"), programme)


def test_who_has_no_waypoints_goes_straight_on_and_who_has_no_speed_stands() -> None:
    going, standing = Actor("a", "adult", Pose(40.0, -6.0, 0.5), 1.2), Actor("b", "adult", Pose(60.0, -6.0, 1.0))
    rows = seen(scene(going, standing), 3.0)
    assert rows[-1, 0] == pytest.approx((40.0 + 3.6 * np.cos(0.5), -6.0 + 3.6 * np.sin(0.5), 0.5, 1.2))
    assert np.array_equal(rows[-1, 1], (60.0, -6.0, 1.0, 0.0))


def test_waypoints_are_passed_when_ways_and_speeds_say_and_the_last_is_the_end() -> None:
    child = Actor(
        "c", "child", Pose(40.0, -6.0, pi / 2), waypoints=(Waypoint(40.0, -3.0, 1.5), Waypoint(44.0, -3.0, 2.0))
    )
    world = World(scene(child))
    for seconds, place in ((1.0, (40.0, -4.5)), (2.0, (40.0, -3.0)), (3.0, (42.0, -3.0)), (6.0, (44.0, -3.0))):
        world.step(ROLL, seconds)
        assert world.state.actors[0, :2] == pytest.approx(place, abs=0.05), seconds
    assert world.state.travelled_m[0] == pytest.approx(7.0, abs=1e-3)
    assert world.state.actors[0, 2:] == pytest.approx((0.0, 0.0), abs=1e-9), "it looks where it went, and stands"


def test_a_car_brakes_for_its_last_waypoint_and_speeds_up_gradually() -> None:
    car = Actor("c", "car", Pose(60.0, 3.5), waypoints=(Waypoint(160.0, 3.5, 10.0),), trigger=Trigger(after_s=1.0))
    rows = seen(scene(car), 19.0)[:, 0]
    assert np.all(rows[:10, 3] == 0.0) and rows[20, 3] == pytest.approx(2.5, abs=0.1)
    assert rows[:, 3].max() == pytest.approx(10.0) and np.diff(rows[:, 3]).min() > -0.32
    assert rows[-1, 0] == pytest.approx(160.0, abs=0.01) and rows[-1, 3] == 0.0
    assert World(scene(replace(car, trigger=Trigger()))).state.actors[0, 3] == 10.0, "on its way already"


@pytest.mark.parametrize(
    ("trigger", "begins_s"),
    [
        (Trigger(after_s=2.0), 2.0),
        (Trigger(ego_within_m=20.0), (80.0 - 20.0 - 23.8) / 10.0),
        (Trigger(ego_within_s=1.5), (80.0 - 15.0 - 23.8) / 10.0),
        (Trigger(after_s=5.0, ego_within_m=20.0), 5.0),
        (Trigger(ego_within_m=15.0, ego_within_s=3.0), (80.0 - 15.0 - 23.8) / 10.0),
    ],
)
def test_an_actor_begins_when_all_of_its_trigger_is_so(trigger: Trigger, begins_s: float) -> None:
    child = Actor("c", "child", Pose(80.0, 0.0, pi / 2), waypoints=walk((80.0, 4.0)), trigger=trigger)
    rows = seen(scene(child, speed=10.0), 6.0, 0.01)[:, 0]
    assert np.flatnonzero(rows[:, 3] > 0.0)[0] * 0.01 == pytest.approx(begins_s, abs=0.021)


def test_a_trigger_stays_drawn_when_its_reason_passes() -> None:
    child = Actor("c", "child", Pose(60.0, -6.0, 0.0), 1.0, trigger=Trigger(ego_within_m=8.0))
    waiting = Actor("w", "child", Pose(70.0, -6.0), 1.0, trigger=Trigger(after_s=99.0))
    rows = seen(scene(child, waiting, speed=15.0), 6.0)
    assert rows[-1, 0, 3] == 1.0 and rows[-1, 0, 0] > 62.0 and np.all(rows[:, 1, 3] == 0.0)


@pytest.mark.parametrize("obeys", [True, False])
def test_people_wait_for_green_at_the_kerb_if_they_obey(obeys: bool) -> None:
    way = walk((CROSSING_M, 8.0))
    person = Actor("p", "adult", Pose(CROSSING_M, -7.0, pi / 2), waypoints=way, obeys_signals=obeys)
    rows = seen(scene(person, signals=lit("green", ("red", 6.0))), 12.0)[:, 0]
    at_5_s, at_12_s = rows[50], rows[120]
    if obeys:
        assert at_5_s[3] == 0.0 and -5.0 < at_5_s[1] < -4.1, "before the carriageway, which begins at -4.2 m"
        assert at_12_s[1] > 3.0
    else:
        assert at_5_s[1] == pytest.approx(0.5, abs=0.05)


def test_people_on_a_crossing_go_on_when_its_light_turns_red() -> None:
    person = Actor("p", "adult", Pose(CROSSING_M, -5.0, pi / 2), waypoints=walk((CROSSING_M, 8.0)), obeys_signals=True)
    rows = seen(scene(person, signals=lit("red", ("green", 2.0))), 9.0)[:, 0]
    assert rows[-1, 1] == pytest.approx(8.0, abs=0.01)


@pytest.mark.parametrize("obeys", [True, False])
def test_cars_stop_at_red_lights_if_they_obey(obeys: bool) -> None:
    car = Actor("c", "car", Pose(230.0, 3.5), 10.0, obeys_signals=obeys)
    rows = seen(scene(car, signals=lit("green", ("red", 10.0))), 16.0)[:, 0]
    front = rows[:, 0] + 2.2
    if obeys:
        assert front[100] == pytest.approx(LIGHT_M - 0.3, abs=0.15) and rows[100, 3] < 0.05
        assert np.diff(rows[:100, 3]).min() > -0.35, "gently"
        assert front[-1] > LIGHT_M + 10.0
    else:
        assert rows[-1, 0] == pytest.approx(390.0)


@pytest.mark.parametrize(("before_m", "stops"), [(9.0, False), (30.0, True)])
def test_cars_stop_at_yellow_lights_if_they_can_do_so_gently(before_m: float, stops: bool) -> None:
    car = Actor("c", "car", Pose(LIGHT_M - 2.2 - before_m, 3.5), 10.0, obeys_signals=True)
    rows = seen(scene(car, signals=lit("yellow")), 8.0)[:, 0]
    assert bool(rows[-1, 3] == 0.0) is stops and bool(rows[-1, 0] + 2.2 < LIGHT_M) is stops


def test_who_cannot_stop_at_a_red_light_drives_on() -> None:
    car = Actor("c", "car", Pose(LIGHT_M - 2.2 - 4.0, 3.5), 12.0, obeys_signals=True)
    assert seen(scene(car, signals=lit("red")), 3.0)[-1, 0, 3] == 12.0


def test_lights_of_other_directions_are_nobodys_business() -> None:
    lane = load_map("two_way").lanes["lane_2"]
    start = lane.pose_at(400.0)
    car = Actor("c", "car", start, 10.0, obeys_signals=True)
    red = {"light_1": (("red", 99.0),), "light_2": (("green", 99.0),)}
    other = replace(scene(car, signals=red), road="two_way")
    assert seen(other, 15.0)[-1, 0, 3] == 10.0
    beside = Actor("b", "car", Pose(230.0, 3.5), 10.0, obeys_signals=True)
    assert seen(scene(beside, signals=red), 12.0)[-1, 0, 3] == 10.0, "that of the lane beside is not"
    wrong_way = Actor("w", "car", Pose(340.0, 0.0, pi), 10.0, obeys_signals=True)
    assert seen(replace(other, actors=(wrong_way,)), 10.0)[-1, 0, 3] == 10.0


def test_drivers_who_obey_keep_away_from_who_stands_ahead_and_others_do_not() -> None:
    parked = Actor("parked", "truck", Pose(160.0, 3.3))
    car = Actor("c", "car", Pose(80.0, 3.5), 12.0, obeys_signals=True)
    rows = seen(scene(parked, car), 14.0)[:, 1]
    assert rows[-1, 3] == 0.0 and 160.0 - 8.58 / 2 - (rows[-1, 0] + 2.2) == pytest.approx(2.0, abs=0.1)
    on = seen(scene(parked, replace(car, obeys_signals=False)), 14.0)[:, 1]
    assert on[-1, 0] == pytest.approx(80.0 + 14.0 * 12.0)


def test_drivers_keep_away_from_the_ego_and_follow_who_drives() -> None:
    behind = Actor("behind", "car", Pose(30.0, 0.0), 12.0, obeys_signals=True)
    rows = seen(scene(behind, x=90.0), 12.0)[:, 0]
    assert rows[-1, 3] < 0.1 and 90.36 - 1.1 - (rows[-1, 0] + 2.2) == pytest.approx(2.0, abs=0.1)
    lead = Actor("lead", "bus", Pose(90.0, 3.5), 7.0)
    follower = Actor("follower", "car", Pose(50.0, 3.5), 13.0, obeys_signals=True)
    rows = seen(scene(lead, follower), 25.0)
    assert rows[-1, 1, 3] == pytest.approx(7.0, abs=0.2)
    gaps = rows[:, 0, 0] - 6.0 - rows[:, 1, 0] - 2.2
    assert gaps[-1] == pytest.approx(2.0 + 7.0, abs=0.7) and gaps.min() > 7.0, "a second behind, and 2 m"


def test_drivers_pass_who_is_beside_their_way() -> None:
    beside = Actor("beside", "car", Pose(150.0, 0.0))
    car = Actor("c", "car", Pose(80.0, 3.5), 12.0, obeys_signals=True)
    assert seen(scene(beside, car), 8.0)[-1, 1, 0] == pytest.approx(80.0 + 96.0)


def test_cars_turn_gently_and_people_about() -> None:
    places = ((100.0, 3.5), (110.0, 0.0), (140.0, 0.0))
    car = Actor("c", "car", Pose(80.0, 3.5), waypoints=walk(*places, speed=8.0))
    rows = seen(scene(car), 6.0, every_s=0.01)[:, 0]
    assert np.abs(np.diff(rows[:, 2])).max() <= 1.5 * 0.01 + 1e-9
    assert rows[-1, 2] == pytest.approx(0.0, abs=0.02) and rows[:, 2].min() < -0.3


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.floats(-50, 50), st.floats(-50, 50), st.floats(0.1, 20)),
        min_size=1,
        max_size=6,
    ),
    st.floats(0.0, 1.2),
)
def test_places_on_a_way_are_as_far_along_it_as_they_are_said_to_be(
    points: list[tuple[float, float, float]], share: float
) -> None:
    actor = Actor("a", "adult", Pose(1.0, 2.0), waypoints=tuple(Waypoint(*point) for point in points))
    paths = Paths([actor, replace(actor, waypoints=(), speed_mps=0.0)])
    places = np.array([(1.0, 2.0), *((x, y) for x, y, _ in points)])
    lengths = np.linalg.norm(np.diff(places, axis=0), axis=1)
    assert paths.end_m[0] == pytest.approx(lengths.sum(), abs=1e-4) and paths.end_m[1] == 0.0
    station = min(share, 1.0) * paths.end_m[0]
    got = paths.place_at(np.array([station, 0.0]), paths.piece_at(np.array([station, 0.0])))
    ends = np.concatenate([[0.0], np.cumsum(lengths)])
    expected = [np.interp(station, ends, places[:, axis]) for axis in (0, 1)]
    assert got[0] == pytest.approx(expected, abs=1e-3) and got[1] == pytest.approx((1.0, 2.0))


def test_a_programme_of_lights_goes_round() -> None:
    programme = (("green", 3.0), ("yellow", 1.0), ("red", 2.0))
    shown = [colour_at(programme, 0.5 + k) for k in range(8)]
    assert shown == ["green"] * 3 + ["yellow"] + ["red"] * 2 + ["green"] * 2
    world = World(scene(signals={"light_1": programme}))
    world.step(ROLL, 3.5)
    assert world.state.signals["light_1"] == "yellow" and set(world.state.signals) == {"walk", "light_1", "light_2"}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_has_facts_that_fit_its_mesh(kind: str) -> None:
    facts, vertices = facts_of(kind), mesh_of(kind).vertices_m
    assert facts.mass_kg > 0.0 and facts.top_mps > 0.0 and facts.label == KINDS[kind].label
    centred = vertices[:, :2] - facts.middle_m
    assert np.abs(centred).max(axis=0) == pytest.approx(np.array(facts.size_m[:2]) / 2.0)
    density = facts.mass_kg / float(np.prod(facts.size_m))
    assert 5.0 < density < 1000.0, "between a sign on a post and water"


def test_a_size_of_ones_own_counts() -> None:
    assert size_of(Actor("a", "car", Pose(0.0, 0.0), size_m=(3.0, 1.5, 1.4))) == (3.0, 1.5, 1.4)


GOOD = scene(
    Actor("child", "child", Pose(60.0, -6.0, pi / 2), waypoints=walk((60.0, 8.0)), person=Person(age_years=7.0)),
    Actor("car", "car", Pose(80.0, 3.5), 10.0, obeys_signals=True),
    Actor("bike", "cyclist", Pose(70.0, -6.0), 4.0),
    speed=10.0,
    obstacles=(Obstacle("carton", "box", Pose(120.0, -3.0), (0.6, 0.6, 0.6)),),
    signals={"walk": (("red", 5.0), ("green", 5.0))},
)
CHILD, CAR = GOOD.actors[:2]


def with_actor(**changed: object) -> Scenario:
    return replace(GOOD, actors=(CHILD, replace(CAR, **changed)))  # type: ignore[arg-type]


def with_ego(**changed: object) -> Scenario:
    return replace(GOOD, ego=replace(GOOD.ego, **changed))  # type: ignore[arg-type]


BAD: list[tuple[str, Scenario, str]] = [
    ("actors.car.kind", with_actor(kind="carr"), "got 'carr', which does not exist; did you mean 'car'?"),
    ("actors.car.speed_mps", with_actor(speed_mps=400.0), "got 400 m/s, expected 0 to 70 of a kind 'car'"),
    ("actors.car.speed_mps", with_actor(speed_mps=-1.0), "got -1 m/s"),
    ("actors.car.start", with_actor(start=Pose(80.0, 12.0)), "off the carriageway of map 'straight'; the nearest lane"),
    ("actors.car.start", with_actor(start=Pose(80.0, 900.0)), "off the ground"),
    ("actors.car.start.x_m", with_actor(start=Pose(nan, 3.5)), "got nan, expected a finite number"),
    ("actors.car.waypoints.1", with_actor(waypoints=walk((90.0, 3.5), (90.0, 999.0))), "off the ground"),
    ("actors.car.waypoints.0", with_actor(waypoints=walk((90.0, 3.5), speed=0.0)), "expected more than 0 to 70"),
    ("actors.car.size_m", with_actor(size_m=(4.0, 0.0, 1.0)), "expected length, width and height above 0"),
    ("actors.car.mass_kg", with_actor(mass_kg=-5.0), "got -5 kg"),
    ("actors.car.tone", with_actor(tone=1.5), "expected 0 to 1"),
    ("actors.car.person", with_actor(person=Person()), "expected it for people only"),
    ("actors.car.trigger.after_s", with_actor(trigger=Trigger(after_s=-1.0)), "expected 0 or more"),
    ("actors.car", with_actor(start=Pose(21.0, 0.5)), "it overlaps ego at the start"),
    ("actors.child", with_actor(name="child"), "the name is given 2 times"),
    ("actors", with_actor(name=""), "got an empty name"),
    (
        "actors.child.person.age_years",
        replace(GOOD, actors=(replace(CHILD, person=Person(age_years=-3.0)),)),
        "expected 0 to 130",
    ),
    (
        "actors.child.person.skin_tone",
        replace(GOOD, actors=(replace(CHILD, person=Person(skin_tone=9)),)),
        "expected 1 to 6",
    ),
    ("actors.child.start", replace(GOOD, actors=(replace(CHILD, start=Pose(70.0, -14.0)),)), "inside a building"),
    ("ego.start", with_ego(start=Pose(20.0, -9.0)), "the middle of the ego is at"),
    ("ego.target", with_ego(target=Pose(100.0, 40.0)), "the target is at (100, 40)"),
    ("ego.speed_mps", with_ego(speed_mps=-2.0), "expected 0 to 70"),
    ("ego.vehicle.wheelbase_m", with_ego(vehicle=Vehicle(wheelbase_m=0.0)), "expected more than 0"),
    ("ego.vehicle.drive_lag_s", with_ego(vehicle=Vehicle(drive_lag_s=-0.1)), "expected 0 or more"),
    ("ego.vehicle.brake_mps2", with_ego(vehicle=Vehicle(brake_mps2=inf)), "got inf"),
    (
        "obstacles.carton.shape",
        replace(GOOD, obstacles=(replace(GOOD.obstacles[0], shape="spere"),)),
        "did you mean 'sphere'?",
    ),
    (
        "obstacles.carton.size_m",
        replace(GOOD, obstacles=(replace(GOOD.obstacles[0], size_m=(0.0, 1.0, 1.0)),)),
        "above 0",
    ),
    ("obstacles.carton.pose", replace(GOOD, obstacles=(replace(GOOD.obstacles[0], pose=Pose(0.0, 99.0)),)), "ground"),
    ("environment.rain", replace(GOOD, environment=Environment(rain=1.2)), "expected 0 to 1"),
    ("environment.hour", replace(GOOD, environment=Environment(hour=25.0)), "expected 0 to 24"),
    ("signals.wolk", replace(GOOD, signals={"wolk": (("red", 1.0),)}), "has no such light; did you mean 'walk'?"),
    ("signals.walk", replace(GOOD, signals={"walk": (("blue", 1.0),)}), "got colour 'blue'"),
    ("signals.walk", replace(GOOD, signals={"walk": (("red", 0.0),)}), "expected more than 0"),
    ("signals.walk", replace(GOOD, signals={"walk": ()}), "got no colours"),
    ("duration_s", replace(GOOD, duration_s=0.0), "expected more than 0"),
]


@pytest.mark.parametrize(("where", "scenario", "text"), BAD, ids=[f"{case[0]}-{i}" for i, case in enumerate(BAD)])
def test_bad_scenarios_are_refused_with_what_and_where(where: str, scenario: Scenario, text: str) -> None:
    found = problems(scenario, load_map("straight"))
    assert [problem.where for problem in found] == [where] and text in found[0].what
    with pytest.raises(UsageError, match="has 1 problem: "):
        World(scenario)


def test_good_scenarios_have_no_problems() -> None:
    assert problems(GOOD, load_map("straight")) == []
    for name in MAPS:
        road = load_map(name)
        lane = next(iter(road.lanes.values()))
        assert problems(Scenario("made", name, Ego(lane.pose_at(20.0), 5.0)), road) == []


def test_all_problems_are_named_at_once() -> None:
    bad = replace(
        with_actor(kind="cra"), ego=Ego(Pose(20.0, -9.0), 99.0), environment=Environment(fog=-1.0), duration_s=-1.0
    )
    where = [problem.where for problem in problems(bad, load_map("straight"))]
    assert where == ["ego.speed_mps", "ego.start", "actors.car.kind", "environment.fog", "duration_s"]
    with pytest.raises(UsageError) as refused:
        World(bad)
    assert "scenario 'made' on map 'straight' has 5 problems" in str(refused.value)
    assert all(name in str(refused.value) for name in where)


def test_a_map_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="got map 'strait'"):
        World(replace(GOOD, road="strait"))


def test_a_crowd_may_stand_close_but_not_inside_each_other() -> None:
    def pair(apart_m: float) -> list[str]:
        people = [Actor(f"p{i}", "adult", Pose(60.0, -6.0 + apart_m * i)) for i in range(2)]
        return [str(problem) for problem in problems(scene(*people), load_map("straight"))]

    assert pair(0.6) == [] and pair(0.5) == ["actors.p1: it overlaps actors.p0 at the start; expected them apart"]


def test_stopping_at_a_line_needs_no_more_than_gentle_brakes() -> None:
    """From far away the speed over the way that is left follows v = sqrt(2 b s)."""
    car = Actor("c", "car", Pose(230.0, 3.5), 12.0, obeys_signals=True)
    rows = seen(scene(car, signals=lit("red")), 8.0)[:, 0]
    room = LIGHT_M - 0.3 - 2.2 - rows[:, 0]
    braking = (rows[:, 3] < 11.5) & (rows[:, 3] > 1.0)
    assert braking.sum() > 20
    assert rows[braking, 3] == pytest.approx([sqrt(2.0 * 3.0 * s) for s in room[braking]], abs=0.1)
    assert hypot(*(rows[-1, :2] - (LIGHT_M - 2.5, 3.5))) < 0.05


def test_drivers_follow_round_a_bend_and_pass_who_comes_the_other_way() -> None:
    road = load_map("bend")
    there, back = (
        tuple(Waypoint(x, y, 8.0) for x, y in road.lanes[name].middle_m[1:]) for name in ("lane_1", "lane_2")
    )
    first, oncoming = road.lanes["lane_1"].pose_at(60.0), road.lanes["lane_2"].pose_at(100.0)
    slow = Actor("slow", "car", first, waypoints=tuple(replace(w, speed_mps=5.0) for w in there))
    follower = Actor("follower", "car", replace(first, x_m=30.0), waypoints=there, obeys_signals=True)
    other = Actor("other", "bus", oncoming, waypoints=back[40:], obeys_signals=True)
    scenario = Scenario("made", "bend", Ego(Pose(10.0, 0.0), CREEP_MPS), (slow, follower, other), duration_s=60.0)
    rows = seen(scenario, 30.0)
    apart = np.hypot(*(rows[:, 0, :2] - rows[:, 1, :2]).T)
    assert apart.min() > 4.4 + 1.5 and apart[-1] < 20.0
    assert rows[-1, 1, 3] == pytest.approx(5.0, abs=0.3)
    assert np.all(rows[10:100, 2, 3] > 6.0), "the bus does not brake for who is in the other lane"


def test_what_lies_behind_on_a_way_is_seen_where_the_way_comes_by_again() -> None:
    lap = walk((10.0, 0.0), (10.0, 5.0), (0.0, 5.0), (0.0, 0.0), (10.0, 0.0))
    paths = Paths([Actor("a", "car", Pose(0.0, 0.0), waypoints=lap)])

    def ahead(station_m: float, x: float, y: float) -> tuple[float, float]:
        far, beside, _ = paths.before(np.array([0]), np.array([station_m]), np.array([(x, y)]))
        return float(far[0, 0]), float(beside[0, 0])

    assert ahead(0.0, 5.0, 0.2) == pytest.approx((5.0, 0.2))
    assert ahead(8.0, 5.0, 0.2) == pytest.approx((27.0, 0.2))
    assert ahead(31.0, -3.0, 0.0) == pytest.approx((0.0, 4.0)), "behind for good: no nearer than where one is"
