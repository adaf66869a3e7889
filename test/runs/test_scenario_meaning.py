# SPDX-License-Identifier: Apache-2.0
"""What scripts mean on a map: places, headings, ways, people, and the scenarios that are shipped."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scenario_texts import EGO, SHIPPED, actor, first, only, scene

from mt_nodes.data.outputs import Control
from mt_nodes.world.drive.bodies import facts_of
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.road_map import Lane
from mt_nodes.world.drive.route import Route
from mt_nodes.world.drive.scenario import Scenario, Trigger
from mt_nodes.world.drive.world import World
from mt_nodes.world.scenarios.language import format_script, load_scenarios, read

EAST = "90 deg related to EAST"


def lane(name: str, road: str = "straight") -> Lane:
    return load_map(road).lanes[name]


def test_places_on_lanes_and_coordinates() -> None:
    on_lane = actor('Vehicle(("lane_2" -> 80))').start
    assert on_lane == lane("lane_2").pose_at(80.0)
    assert actor("Vehicle(((80, 3.5) + (2, -0.5) - (1, 0)))").start.x_m == 81.0
    free = actor("Vehicle((ENU(80, 3)))").start
    assert (free.x_m, free.y_m, free.yaw_rad) == (80.0, 3.0, 0.0)


def test_imu_is_ahead_and_to_the_left_of_the_ego() -> None:
    ego = "ego = AV(((-228.81, 268.97), , 8));\n"
    there = actor("Vehicle((IMU(30, 1)))", road="san_francisco", ego=ego).start
    yaw = lane("lane_2", "san_francisco").pose_at(0.0).yaw_rad
    ahead, left = np.array([math.cos(yaw), math.sin(yaw)]), np.array([-math.sin(yaw), math.cos(yaw)])
    away = np.array([there.x_m + 228.81, there.y_m - 268.97])
    assert (away @ ahead, away @ left) == pytest.approx((30.0, 1.0))


@pytest.mark.parametrize(
    ("heading", "degrees"),
    [
        ("", 180.0),
        ("10 deg", 190.0),
        ("0.5 pi rad", 270.0),
        ("90 deg related to EAST", 90.0),
        ('30 deg related to "lane_1" -> 5', 30.0),
        ("20 deg related to EGO", 25.0),
        ("20 deg related to ego", 25.0),
        ("-20 deg related to other", 160.0),
        ("(1 + 1) ^ 3 deg", 188.0),
    ],
)
def test_headings_count_from_the_lane_unless_from_something_else(heading: str, degrees: float) -> None:
    before = 'other = Vehicle(("lane_2" -> 300));'
    ego = 'ego = AV(("lane_1" -> 20, 5 deg));\n'
    text = scene(vehicles=f'other, Vehicle(("lane_2" -> 80, {heading}))', before=before, road="two_way", ego=ego)
    yaw = only(text).actors[1].start.yaw_rad
    assert math.remainder(yaw - math.radians(degrees), math.tau) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("x", "y", "degrees"),
    [(150.0, -4.5, 90.0), (150.0, 0.0, 90.0), (150.0, 3.0, 90.0), (150.0, 6.0, -90.0), (100.0, -5.0, 0.0)],
)
def test_people_without_a_heading_look_across_a_crossing_else_along_a_lane(x: float, y: float, degrees: float) -> None:
    start = actor(f"Person((({x}, {y}), , 1))").start
    assert math.degrees(start.yaw_rad) == pytest.approx(degrees)


def test_vehicles_without_a_motion_follow_their_lane_through_bends_to_its_end() -> None:
    ego = 'ego = AV(("lane_1" -> 5));\n'
    one = actor('Vehicle(("lane_1" -> 20, , 30))', road="bend", ego=ego)
    middle = lane("lane_1", "bend")
    points = np.array([(w.x_m, w.y_m) for w in one.waypoints])
    assert len(points) > 8
    assert max(abs(middle.station_of(x, y)[1]) for x, y in points) < 0.1
    between = np.linspace(points[:-1], points[1:], 9).reshape(-1, 2)
    assert max(abs(middle.station_of(x, y)[1]) for x, y in between) < 0.15
    assert math.dist(points[-1], middle.middle_m[-1]) < 2.0
    assert {w.speed_mps for w in one.waypoints} == {30.0}


def test_vehicles_that_look_elsewhere_go_straight_on() -> None:
    assert actor('Vehicle(("lane_1" -> 60, 90 deg, 5))').waypoints == ()
    assert actor('Vehicle(("lane_1" -> 60))').waypoints == ()
    assert actor("Vehicle(((60, 0), , 5))").waypoints != ()


def test_a_vehicle_beside_the_middle_of_its_lane_joins_it_gently() -> None:
    first_point = actor("Vehicle(((60, 0.9), , 5))").waypoints[0]
    assert first_point.y_m == pytest.approx(0.0, abs=1e-9)
    assert 64.0 < first_point.x_m < 75.0


def test_ways_from_lane_to_lane_follow_roads_and_changes_of_lane_are_straight() -> None:
    ego = 'ego = AV(("west_middle" -> 20));\n'
    one = actor('Vehicle(("south_middle" -> 100, , 5), Waypoint(("middle_east" -> 40, , 6)))', road="junction", ego=ego)
    road = load_map("junction")
    turn = road.lanes["south_middle_east"]
    assert sum(abs(turn.station_of(w.x_m, w.y_m)[1]) < 0.2 for w in one.waypoints) >= 3
    assert math.dist((one.waypoints[-1].x_m, one.waypoints[-1].y_m), _xy(road.lanes["middle_east"], 40.0)) < 1e-9
    change = actor('Vehicle(("lane_1" -> 60, , 5), Waypoint((("lane_1" -> 80), ("lane_2" -> 110))))')
    assert [(w.x_m, w.y_m) for w in change.waypoints] == [(80.0, 0.0), (110.0, 3.5)]


def _xy(one: Lane, station_m: float) -> tuple[float, float]:
    pose = one.pose_at(station_m)
    return pose.x_m, pose.y_m


@pytest.mark.parametrize(
    ("text", "speeds"),
    [
        ("Person(((100, -5), , 2), W((((100, 0)), ((100, 2), , 1), ((100, 5)))))", [2.0, 2.0, 1.0]),
        ("Person(((100, -5)), W((((100, 0), , 1.4), ((100, 2), , 0.5))))", [1.4, 1.4]),
        ("Person(((100, -5), , 2), W((((100, 0), , 0), ((100, 2), , 3))), ((100, 9)))", [2.0, 3.0, 3.0]),
        ("Person(((100, -5), , 2), Uniform(((100, -5), , 1)))", []),
        ("Person(((100, -5), , 2), u(((100, 5), , 1)))", [1.0]),
        ("Animal(((100, -5), , 2), , ((100, 9)), {species: boar})", [2.0]),
    ],
)
def test_a_speed_holds_from_its_state_on_or_on_the_way_to_the_first(text: str, speeds: list[float]) -> None:
    assert [w.speed_mps for w in actor(text).waypoints] == speeds


def test_uniform_motion_has_the_speed_of_its_state() -> None:
    assert actor("Person(((100, -5), , 2), Uniform(((100, -5), , 1)))").speed_mps == 1.0


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ("age: 7", "child"),
        ("age: 12.9", "child"),
        ("age: 13", "adult"),
        ("age: 65", "elderly"),
        ("age: 7, kind: adult", "adult"),
        ("age: 70, mobility: wheelchair", "wheelchair_user"),
        ("kind: roller_skater", "roller_skater"),
    ],
)
def test_people_get_the_mesh_of_what_they_are(attributes: str, kind: str) -> None:
    assert actor(f"Person(((100, -5)), , , , {{{attributes}}})").kind == kind


def test_attributes_of_people_are_kept() -> None:
    text = (
        'Person(((100, -5)), , , (1.4, blue), {age: 30, gender: diverse, skin: 6, build: slim, status: "doctor", '
        "rule: crossing_on_green, group: a, after: 2, ego_within: 30, ego_within_s: 4, mass: 60})"
    ).replace("group: a", 'group: "a"')
    one = actor(text)
    person = one.person
    assert person is not None
    assert (person.age_years, person.gender, person.skin_tone, person.build) == (30.0, "diverse", 6, "slim")
    assert (person.status, person.compliance, person.group) == ("doctor", "crossing_on_green", "a")
    assert (one.trigger, one.obeys_signals, one.mass_kg) == (Trigger(2.0, 30.0, 4.0), True, 60.0)
    assert one.tone == pytest.approx(0.114)
    length, width, height = facts_of("adult").size_m
    assert one.size_m == pytest.approx((length * 1.4 / height, width * 1.4 / height, 1.4))


def test_animals_and_vehicles_are_no_people() -> None:
    boar = actor("Animal(((100, -5)), {species: boar, mass: 80})")
    assert (boar.kind, boar.mass_kg, boar.person) == ("boar", 80.0, None)
    assert actor("Animal(((100, -5)))").kind == "deer"
    lorry = actor('Vehicle(("lane_1" -> 60), , , (truck, black), {obeys_signals: yes})')
    assert (lorry.kind, lorry.tone, lorry.obeys_signals, lorry.person) == ("truck", 0.0, True, None)


def test_a_group_stands_and_goes_side_by_side() -> None:
    one = f"Person(((100, -6), {EAST}), W(((100, 6), , 1)), , , {{age: 9}})"
    people = only(scene("crowd", before=f"crowd = Group(3, {one}, {{spacing: 1.5}});")).actors
    assert [p.name for p in people] == ["crowd_1", "crowd_2", "crowd_3"]
    assert [p.start.x_m for p in people] == pytest.approx([100.0, 98.5, 97.0])
    assert [p.waypoints[0].x_m for p in people] == pytest.approx([100.0, 98.5, 97.0])
    assert {(p.person.group, p.kind) for p in people if p.person} == {("crowd", "child")}


def test_those_without_names_get_one() -> None:
    walker = "Person(((100, -5)))"
    text = scene(f"{walker}, person_2, Person(((110, -5)))", before="person_2 = Person(((120, -5)));")
    assert [one.name for one in only(text).actors] == ["person_1", "person_2", "person_3"]


def test_surroundings_signals_and_time() -> None:
    text = (
        EGO + 's = CreateScenario { load("straight"); ego; {}; {}; {}; Environment(6:30, {sunny: 0.25, snow: heavy}); '
        '{Signal("walk", (green, 3), (red, 4)), Duration(7)}; };'
    )
    scenario = only(text, strict=True)
    environment = scenario.environment
    assert (environment.hour, environment.snow, environment.cloudiness, environment.rain) == (6.5, 0.8, 0.75, 0.0)
    assert scenario.signals == {"walk": (("green", 3.0), ("red", 4.0))}
    assert scenario.duration_s == 7.0


def test_what_the_world_would_refuse_is_told_where_it_is_written() -> None:
    text = scene("w", before='v = Vehicle(("lane_1" -> 21));\nw = Person(((21, 0)));', vehicles="v")
    assert sorted({(p.at.line, "overlaps" in p.got) for p in read(text).problems}) == [(1, True), (2, True)]


def test_a_mirrored_map_and_one_of_ones_own() -> None:
    text = scene(vehicles='Vehicle(("lane_1" -> 80))')
    mirrored = only(text.replace('"straight"', '"bend_mirrored"'))
    assert mirrored.road == "bend_mirrored"
    assert only(text, road=load_map("two_way")).road == "two_way"
    assert "did you mean 'straight'" in str(first(text.replace("straight", "strait")))


# The shipped scenarios.

#: Whom a driver hits who keeps speed and lane and looks at nothing; None: nobody.
HITS: dict[str, str | None] = {
    "bend": "coach",
    "boar_stands": "boar",
    "box_on_the_road": "lost",
    "car_brakes": "lead",
    "car_following": "lead",
    "child_between_parked_cars": "child",
    "evasion": "comer",
    "cyclist_ahead": "cyclist",
    "deer_from_the_right": "deer",
    "fog": "lorry",
    "green_light": None,
    "group_crosses_on_green": "people_1",
    "junction": None,
    "night_rain": "walker",
    "oncoming": None,
    "pedestrian_crosses": "walker",
    "red_light": None,
    "stopped_queue": "last",
    "town_lap": None,
    "town_lap_any_light": None,
    "town_lap_any_town": None,
    "two_pedestrians_san_francisco": "ped1",
    "wheelchair_at_a_crossing": "wheels",
}


def drowsy(world: World, route: Route, speed_mps: float) -> Control:
    """Keep the speed, and to the route by steering at a point 8 m ahead (pure pursuit)."""
    ego = world.state.ego
    away = np.hypot(route.pose[:, 0] - ego.x_m, route.pose[:, 1] - ego.y_m)
    x, y, _ = route.pose[min(int(away.argmin()) + 8, len(route.pose) - 1)]
    angle = math.atan2(y - ego.y_m, x - ego.x_m) - ego.yaw_rad
    reach = max(1.0, math.hypot(x - ego.x_m, y - ego.y_m))
    steering = math.atan(2.0 * world.scenario.ego.vehicle.wheelbase_m * math.sin(angle) / reach)
    return Control(None, steering_rad=steering, acceleration_mps2=speed_mps - ego.speed_mps)


def played(scenario: Scenario) -> World:
    world = World(scenario)
    route = Route(world.road, scenario.ego.start, scenario.ego.target)
    time_s = 0.0
    while not world.ended:
        time_s += 0.1
        world.step(drowsy(world, route, scenario.ego.speed_mps), time_s)
    return world


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_scenarios_are_strict_printed_and_about_something(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    reading = read(text, path.name, strict=True, path=path)
    assert (reading.problems, reading.warnings) == ((), ())
    assert format_script(text, path.name, path) == text
    assert text.startswith("// ")
    (scenario,) = reading.scenarios
    assert scenario.name == path.stem
    hit = [collision.name for collision in played(scenario).collisions]
    assert (hit[0] if hit else None) == HITS[scenario.name]


def test_there_are_scenarios_enough() -> None:
    assert sorted(HITS) == [path.stem for path in SHIPPED]
    assert len(HITS) >= 12


def test_shipped_scenarios_can_be_played_whatever_is_drawn() -> None:
    for seed in range(6):
        for path in SHIPPED:
            if "parameter" in path.read_text(encoding="utf-8"):
                load_scenarios(path, seed=seed, strict=True)
