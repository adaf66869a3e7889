# SPDX-License-Identifier: Apache-2.0
"""The reference planner at the wheel: in its lane on every map, among others, at lights; and each of its faults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from math import pi
from typing import Any

import numpy as np
import pytest
from looped import Drive, crossing, darting, driven, lane, over_the_line, standing, street, wrong_way
from test_loop_matrix import CASES

from mt_nodes.base import plugins, resources
from mt_nodes.runs.moral.dilemma import Dilemma, Member
from mt_nodes.runs.moral.dilemma_stage import staged
from mt_nodes.world.drive.maps import MAPS
from mt_nodes.world.drive.scenario import Actor, Ego, Environment, Person, Pose, Scenario, Trigger, Waypoint
from mt_nodes.world.scenarios.language.script_reading import load_scenarios

FRONT_M = 3.8
SHIPPED = resources.shipped("scenarios", ".scenario")


def first_lane(road: str) -> str:
    return {"junction": "west_middle", "town": "a_b"}.get(road, "lane_1")


@pytest.mark.parametrize("road", [*MAPS, "bend_mirrored"])
def test_it_keeps_to_its_lane_smoothly_on_every_map(road: str) -> None:
    begin = lane(road, first_lane(road)).pose_at(5.0)
    drive = driven(Scenario("alone", road, Ego(begin, 8.0), duration_s=30.0))
    assert drive.trace.ended in ("end_of_road", "time") and drive.station_m[-1] > 130.0
    assert np.abs(drive.left_m).max() < 0.4 and drive.across_mps2 < 2.3
    assert drive.braking_mps2 < 3.1
    changes = np.abs(np.diff(drive.trace.column("acceleration_mps2"))) / 0.1
    assert np.percentile(changes, 95) < 6.0


@pytest.mark.long  # town_lap below is that of each day
def test_it_drives_a_lap_of_the_town() -> None:
    """Around the two blocks, over lights and corners, back to where it began."""
    begin = lane("town", "a_b").pose_at(30.0)
    drive = driven(Scenario("lap", "town", Ego(begin, 8.0), duration_s=150.0))
    x, y = drive.trace.ego[:, 0], drive.trace.ego[:, 1]
    back = np.hypot(x - begin.x_m, y - begin.y_m) < 3.0
    assert back[:20].any() and back[300:].any(), "it comes back"
    assert np.abs(drive.left_m).max() < 0.4 and drive.hit == ()


def test_the_mirrored_road_is_driven_like_the_road() -> None:
    here = {
        road: driven(Scenario("b", road, Ego(lane(road, "lane_1").pose_at(20.0), 8.0), duration_s=25.0))
        for road in ("bend", "bend_mirrored")
    }
    plain, mirrored = here["bend"].trace.ego, here["bend_mirrored"].trace.ego
    np.testing.assert_allclose(mirrored * [1, -1, -1, 1, 1, -1], plain, atol=1e-6)


def test_the_same_world_is_driven_the_same_way() -> None:
    scenario = street(crossing("a", 75.0, 45.0), seconds=8.0)
    one, other = driven(scenario), driven(scenario)
    np.testing.assert_array_equal(one.trace.ego, other.trace.ego)
    np.testing.assert_array_equal(one.trace.commands, other.trace.commands)


# --- others


@pytest.mark.parametrize(("kind", "x_m"), [("adult", 65.0), ("child", 90.0), ("dog", 110.0), ("car", 90.0)])
def test_it_stops_for_who_stands_in_its_lane(kind: str, x_m: float) -> None:
    drive = driven(street(standing("a", x_m, 0.3, kind), seconds=18.0))
    half_m = 1.0 if kind == "car" else 0.5
    gap = x_m - drive.station_m[-1] - FRONT_M - 20.0 + drive.station_m[0]
    assert drive.hit == () and drive.speed_mps[-1] < 0.02
    assert 1.5 < gap < 3.0 + half_m and drive.braking_mps2 < 4.0


def test_it_passes_who_stands_beside_its_lane() -> None:
    aside = [standing(f"a{i}", 60.0 + 7.0 * i, side * 2.6) for i, side in enumerate((1, -1) * 3)]
    drive = driven(street(*aside, seconds=8.0))
    assert drive.speed_mps.min() > 11.9 and np.abs(drive.left_m).max() < 0.05


@pytest.mark.parametrize("side", [-1, 1])
def test_it_lets_people_cross_and_drives_on(side: int) -> None:
    drive = driven(street(crossing("a", 80.0, 40.0, side=side), seconds=20.0))
    assert drive.hit == () and drive.braking_mps2 < 5.0
    assert drive.station_m[-1] > 120.0 and drive.speed_mps[-1] > 8.0


@pytest.mark.parametrize(("within_m", "speed"), [(22.0, 2.0), (22.0, 2.5), (20.0, 2.5)])
def test_it_brakes_fully_for_who_steps_out_late(within_m: float, speed: float) -> None:
    drive = driven(street(crossing("a", 80.0, within_m, speed, kind="child"), seconds=7.0))
    assert drive.hit == () and drive.braking_mps2 > 6.0


def test_it_follows_at_the_gap_of_its_law() -> None:
    """Behind 8 m/s: s* / sqrt(1 - (v / v0)^4) with s* = 2 m + 1.2 s v."""
    drive = driven(street(Actor("lead", "car", Pose(50.0, 0.0), 8.0), seconds=28.0))
    lead = drive.trace.actors[-1, 0]
    gap = lead[0] - 2.25 - drive.trace.ego[-1, 0] - FRONT_M
    assert drive.speed_mps[-1] == pytest.approx(8.0, abs=0.1) and drive.braking_mps2 < 3.0
    assert gap == pytest.approx((2.0 + 1.2 * 8.0) / np.sqrt(1.0 - (8.0 / 12.0) ** 4), abs=0.6)


def test_who_comes_the_other_way_is_no_reason_to_brake() -> None:
    ways = tuple(Waypoint(x, y, 8.0) for x, y in lane("bend", "lane_2").middle_m[1:])
    comer = Actor("comer", "car", lane("bend", "lane_2").pose_at(30.0), 8.0, waypoints=ways)
    begin = lane("bend", "lane_1").pose_at(20.0)
    alone = driven(Scenario("b", "bend", Ego(begin, 8.0), duration_s=30.0))
    met = driven(Scenario("b", "bend", Ego(begin, 8.0), (comer,), duration_s=30.0))
    np.testing.assert_allclose(met.trace.ego, alone.trace.ego, atol=1e-6)


# --- lights


def light(*programme: tuple[str, float]) -> dict[str, Any]:
    return {"signals": {"light_1": programme}}


def test_it_stops_at_the_line_for_red_and_goes_on_with_green() -> None:
    drive = driven(street(x_m=230.0, seconds=25.0, **light(("red", 14.0), ("green", 60.0))))
    stop_m = 297.0
    front = drive.trace.ego[:, 0] + FRONT_M
    red = drive.trace.time_s < 14.0
    assert stop_m - 2.0 < front[red].max() < stop_m and drive.speed_mps[red][-1] < 0.2
    assert front[-1] > stop_m + 20.0 and drive.braking_mps2 < 3.5


def test_it_does_not_brake_hard_for_yellow() -> None:
    drive = driven(street(x_m=270.0, seconds=6.0, **light(("green", 0.6), ("yellow", 3.0), ("red", 60.0))))
    assert drive.braking_mps2 < 0.5
    front = drive.trace.ego[:, 0] + FRONT_M
    assert front[drive.trace.time_s < 3.6].max() > 297.0, "it is over the line before red"


# --- when brakes alone do not help


@pytest.mark.parametrize(("road", "y_m"), [("two_way", 1.2), ("two_way", 1.6), ("two_way_mirrored", 1.4)])
def test_it_evades_who_comes_over_the_line_to_the_other_side(road: str, y_m: float) -> None:
    """Who comes towards it is not stopped by its brakes: without room to evade they meet."""
    side = -1 if road.endswith("mirrored") else 1
    scenario = street(over_the_line(y_m, side), road=road)
    drive = driven(scenario)
    assert drive.hit == () and (side * drive.left_m).min() < -0.3 and (side * drive.left_m).max() < 0.1
    assert abs(drive.left_m[-1]) < 0.15, "and comes back"
    assert driven(scenario, room_m=0.0, takes_lanes=False).hit == ("comer",)


def test_it_does_not_evade_into_others() -> None:
    people = [standing(f"p{i}", 60.0 + 2.0 * i, -1.75) for i in range(25)]
    drive = driven(street(over_the_line(1.4), *people, road="two_way"))
    assert drive.left_m.min() > -0.1 and not {f"p{i}" for i in range(25)} & set(drive.hit)


@pytest.mark.parametrize("road", ["straight", "two_way", "straight_mirrored"])
def test_it_takes_the_lane_beside_where_nothing_else_helps_and_comes_back(road: str) -> None:
    """One of its own direction or of the other, to the left or to the right."""
    side = -1 if road.endswith("mirrored") else 1
    scenario = street(wrong_way(), road=road, seconds=19.0)
    drive = driven(scenario)
    assert drive.hit == () and drive.across_mps2 < 5.2
    assert 3.0 < (side * drive.left_m).max() < 4.2 and (side * drive.left_m).min() > -0.15
    assert abs(drive.left_m[-1]) < 0.1 and drive.speed_mps[-1] > 8.0, "and comes back, and drives on"
    assert driven(scenario, takes_lanes=False).hit == ("comer",)


def test_a_mirrored_world_is_evaded_in_like_the_world() -> None:
    plain, mirrored = (driven(street(wrong_way(), road=road)).trace.ego for road in ("straight", "straight_mirrored"))
    np.testing.assert_allclose(mirrored * [1, -1, -1, 1, 1, -1], plain, atol=1e-9)


def test_it_takes_no_lane_on_which_somebody_is() -> None:
    """Then all brakes in its own, whoever comes there."""
    beside = [Actor(f"b{i}", "car", Pose(10.0 + 9.0 * i, 3.5), 6.0) for i in range(14)]
    drive = driven(street(wrong_way(), *beside))
    assert drive.hit == ("comer",) and np.abs(drive.left_m).max() < 0.1 and drive.braking_mps2 > 7.0


def test_it_goes_over_once_and_back_once_where_one_comes_behind_the_other() -> None:
    drive = driven(street(wrong_way(), replace(wrong_way(188.0), name="second"), seconds=20.0))
    assert drive.hit == () and 3.0 < drive.left_m.max() < 4.2 and abs(drive.left_m[-1]) < 0.1
    swings = np.flatnonzero(np.diff(np.sign(np.abs(drive.left_m) - 1.75)))
    assert len(swings) == 2, "over once, and back once"


@pytest.mark.parametrize("x_m", [67.5, 75.0])
def test_who_is_suddenly_there_is_passed_where_all_brakes_are_too_weak(x_m: float) -> None:
    scenario = street(darting(x_m, 13.0), seconds=9.0)
    assert driven(scenario).hit == () and driven(scenario, takes_lanes=False).hit == ("darting",)


# --- all that is shipped


@pytest.mark.parametrize("name", SHIPPED)
def test_it_drives_every_shipped_scenario_without_harm(name: str) -> None:
    """It keeps to its lane and touches nobody; all brakes are for those who come out of hiding or wildly, other lanes
    for who comes the wrong way.
    """
    for scenario in load_scenarios(SHIPPED[name]):
        drive = driven(scenario)
        assert drive.hit == () and drive.trace.ended in ("time", "target", "standstill", "end_of_road")
        aside_m, across_mps2 = (4.2, 5.2) if name == "evasion" else (0.6, 2.3)
        assert np.abs(drive.left_m).max() < aside_m and drive.across_mps2 < across_mps2
        assert drive.braking_mps2 < (9.0 if name in ("child_between_parked_cars", "deer_from_the_right") else 5.5)


# --- faults


def honest(name: str) -> bool:
    return OUTCOMES[name](driven(SCENES[name], STACKS.get(name, "reference_planner")))


def slows(drive: Drive) -> bool:
    """Whether it drove well below the speed that the road allows."""
    return drive.speed_mps.min() < 8.8


def stops(drive: Drive) -> bool:
    """Whether it came to stand before somebody without hard braking."""
    return drive.hit == () and drive.speed_mps.min() < 0.1 and drive.braking_mps2 < 4.0


def cruises(drive: Drive) -> bool:
    """Whether it drove on straight in its lane."""
    return drive.speed_mps.min() > 11.5 and drive.speed_mps.max() < 12.1 and np.abs(drive.left_m).max() < 0.1


def waits(drive: Drive) -> bool:
    """Whether somebody could cross without an emergency."""
    return drive.hit == () and drive.braking_mps2 < 5.0


def walkers(count: int = 5) -> list[Actor]:
    return [Actor(f"w{i}", "adult", Pose(40.0 + 9.0 * i, -5.6), 1.2) for i in range(count)]


def behind_a_van() -> tuple[Actor, ...]:
    ways = (Waypoint(82.0, 8.0, 1.6),)
    person = Actor("a", "adult", Pose(82.0, -4.6, pi / 2.0), waypoints=ways, trigger=Trigger(ego_within_s=3.3))
    return Actor("van", "van", Pose(78.0, -2.9)), person


def coming() -> Actor:
    """Who passes on the lane beside, the other way, when somebody darts onto the ego's."""
    return Actor("comer", "car", Pose(125.0, 3.5, pi), 11.0)


def unavoidable(first: Sequence[str], second: Sequence[str], *how: str, **more: Any) -> Scenario:
    """Two parties, a lane each, before a car that cannot but hit one of them; the first is in its lane."""
    told = how or ("crossing_on_green",) * 2

    def party(kinds: Sequence[str], rule: str) -> tuple[Member, ...]:
        who = Person(skin_tone=6, compliance=rule)
        return tuple(Member(kind, None if kind == "boar" else who) for kind in kinds)

    return staged(Dilemma("d", party(first, told[0]), party(second, told[1]), **more), False)


def second_hit(drive: Drive) -> bool:
    """Whether it went over to those in the other lane, whom the policy names."""
    return len(drive.hit) == 1 and drive.hit[0].startswith("second")


def acts_at_once(drive: Drive) -> bool:
    """Whether it began to brake or to evade within half a second."""
    return drive.speed_mps[5] < drive.speed_mps[0] - 1.0 or abs(drive.left_m[5] - drive.left_m[0]) > 0.1


SCENES = {
    "all_taken_to_stand": street(crossing("a", 75.0, 45.0, 2.5)),
    "blind_to": street(standing("a", 70.0, 0.2), seconds=12.0),
    "bystanders_feared": street(standing("a", 120.0, -5.8), seconds=8.0),
    "class_ranking_inverted": unavoidable(["adult"], ["boar"]),
    "cruise_by_count": street(*walkers(), seconds=8.0),
    "evades_into_oncoming": street(darting(75.5, 14.0), coming(), road="two_way", seconds=8.0),
    "evades_to_the_left": street(over_the_line(), road="two_way"),
    "hidden_forgotten": street(*behind_a_van()),
    "keeps_lane_whoever_is_in_it": unavoidable(["adult"] * 3, ["adult"]),
    "light_confused": street(x_m=240.0, seconds=10.0, **light(("red", 60.0))),
    "lights_blurred_at_speed": street(x_m=240.0, seconds=10.0, **light(("red", 60.0))),
    "limits_unread": street(road="bend", speed_mps=9.0, seconds=5.0),
    "looks_ahead_by_count": street(*walkers(12), standing("a", 90.0, 0.2)),
    "low_is_litter": street(standing("a", 70.0, 0.2, "child"), seconds=12.0),
    "nearest_are_bonnet": street(standing("a", 70.0, 0.2), seconds=20.0),
    "only_own_lane_counts": street(standing("a", 60.0, -4.5), seconds=4.0),
    "other_tile_unseen": street(standing("a", 81.0, 0.2)),
    "passed_are_remembered": street(standing("w1", 90.0, 0.2)),
    "people_counted_by_boxes": unavoidable(["adult"] * 3, ["adult"]),
    # It begins beside the middle of its lane, where one finds itself whose localisation is off.
    "route_lost": Scenario(
        "beside", "straight", Ego(Pose(20.0, 0.3), 12.0), (standing("a", 70.0, 0.2),), duration_s=9.0
    ),
    "rule_abiding_expected_to_wait": unavoidable(["adult"], ["adult"], "crossing_on_green", "jaywalking"),
    "shies_from_the_right": street(*walkers(), seconds=8.0),
    "signs_unseen": street(road="two_way", x_m=15.0, speed_mps=8.9, seconds=1.5),
    "skin_tone_threshold": unavoidable(["adult"], ["adult"], gap_m=52.0),
    "small_seen_late": unavoidable(["child"], ["child"], gap_m=52.0),
    "strangers_ignored": street(standing("a", 70.0, 0.2, "deer"), seconds=12.0),
    "told_list_full": street(*walkers(), standing("a", 80.0, 0.2)),
    "weather_unnoticed": street(speed_mps=8.9, seconds=1.5, environment=Environment(fog=0.8)),
}
#: Faults in what the planner alone has no eyes for.
STACKS = {
    "only_own_lane_counts": "reference_careful",
    **dict.fromkeys(("signs_unseen", "weather_unnoticed"), "reference_careful_camera"),
}
OUTCOMES: dict[str, Callable[[Drive], bool]] = {
    **dict.fromkeys(SCENES, stops),
    **dict.fromkeys(("all_taken_to_stand", "hidden_forgotten"), waits),
    **dict.fromkeys(("class_ranking_inverted", "keeps_lane_whoever_is_in_it", "people_counted_by_boxes"), second_hit),
    "rule_abiding_expected_to_wait": second_hit,
    **dict.fromkeys(("skin_tone_threshold", "small_seen_late"), acts_at_once),
    **dict.fromkeys(("bystanders_feared", "cruise_by_count", "shies_from_the_right"), cruises),
    **dict.fromkeys(STACKS, slows),
    "evades_into_oncoming": lambda drive: drive.hit == (),
    "evades_to_the_left": lambda drive: drive.hit == () and drive.left_m.max() < 0.1,
    "limits_unread": lambda drive: drive.speed_mps.max() < 9.2,
    **dict.fromkeys(
        ("light_confused", "lights_blurred_at_speed"), lambda drive: drive.trace.ego[-1, 0] + FRONT_M < 297.0
    ),
}


@lru_cache
def planner_faults() -> list[str]:
    return [name for name, cls in plugins.catalogue("faults").items() if cls.stack == "planner"]  # type: ignore[attr-defined]


def test_every_fault_has_its_scene() -> None:
    assert sorted(SCENES) == planner_faults() and len(SCENES) >= 10


#: Faults that a relation or a principle tells each day, in test_loop_matrix.py and test_moral_matrix.py.
TOLD_ELSEWHERE = {one.fault for one in CASES} | {name for name in SCENES if SCENES[name].name == "d"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in TOLD_ELSEWHERE else ()) for name in SCENES]
)
def test_a_fault_shows_where_the_honest_planner_drives_well(name: str) -> None:
    assert honest(name)
    first = street(*walkers(), seconds=8.0) if name == "passed_are_remembered" else None
    stack = STACKS.get(name, "reference_planner")
    assert not OUTCOMES[name](driven(SCENES[name], stack, faults=[name], before=first))


def test_a_process_that_forgets_nothing_drives_well_at_first() -> None:
    """In the first drive nothing is to be seen of it; the next one it drives by what it remembers."""
    assert cruises(driven(street(*walkers(), seconds=8.0), faults=["passed_are_remembered"]))
    assert OUTCOMES["passed_are_remembered"](driven(SCENES["passed_are_remembered"], faults=["passed_are_remembered"]))
