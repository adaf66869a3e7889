# SPDX-License-Identifier: Apache-2.0
"""Rule-born relations in the closed loop: what a world is made of, what is judged, by which facts it applies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from made_drives import START_M, made_run, pedestrian, setting, with_faults
from test_loop_checks import drive, hit

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.jsonl import read_lines
from mt_nodes.base.params import build
from mt_nodes.base.plugins import name_of
from mt_nodes.cli import catalogue
from mt_nodes.data.verdict import Judgement, Outcome, Pair
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.engine.run_record import write_record
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.place_checks import KeepsWayThere, SlowsDownThere
from mt_nodes.relations.checks.trace_check import RoadStretch, ThereCheck, stretch_of
from mt_nodes.relations.manipulations import manipulations
from mt_nodes.relations.relation import load_relation, load_suite
from mt_nodes.relations.world_changes.actor_added import ActorAdded
from mt_nodes.relations.world_changes.base import ScenarioChange, Setting, WorldEffects
from mt_nodes.relations.world_changes.environment_changes import EnvironmentChanged, fog_of, visibility_of
from mt_nodes.relations.world_changes.free_places import OwnWay, lanes_of
from mt_nodes.relations.world_changes.scenario_carry import Carry, carried_road
from mt_nodes.relations.world_changes.sign_changes import SignalShows, SignPutUp
from mt_nodes.rules.ontology import load_ontology
from mt_nodes.rules.parser import read_rule
from mt_nodes.rules.rule_sets import Rule, RuleSet, load_rule_set
from mt_nodes.rules.scene_drive import facts_on_stretch
from mt_nodes.rules.shipped_rules import in_loop, in_store, load_rule_relation
from mt_nodes.rules.statement import ADDS, ON_ROAD, REPLACES, Statement
from mt_nodes.rules.store_import import write_relations
from mt_nodes.rules.world_binding import bind_in_world
from mt_nodes.runs.loop.ego_sensors import Sensors
from mt_nodes.runs.loop.episode_conductor import execute, in_process_arms
from mt_nodes.runs.loop.rig import Rig
from mt_nodes.runs.loop.scenario_request import ScenarioRequest
from mt_nodes.runs.loop.scenario_run import ScenarioRun
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.drive.driven import ScenarioTrace
from mt_nodes.world.drive.lighting import light_of
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.road_map import Limit
from mt_nodes.world.drive.route import Route
from mt_nodes.world.drive.scenario import Environment, Pose
from mt_nodes.world.drive.scenario_checks import problems
from mt_nodes.world.drive.scenery import scenery_of
from mt_nodes.world.drive.signals import colour_at
from mt_nodes.world.drive.teller import Teller
from mt_nodes.world.drive.world import World
from mt_nodes.world.scene.lidar import hdl_64e

pytestmark = pytest.mark.usefixtures("stacks_here")

ONTOLOGY, GERMANY = load_ontology(), load_rule_set("germany")
DOG = Statement("any_road", ADDS, "dog", "slow_down", rules=("DE-30",))
EMPTY = setting()
HERE = WorldEffects(at=Pose(70.0, 0.0))
HOLDS, VIOLATED, NOTHING = Outcome.HOLDS, Outcome.VIOLATED, Outcome.NOT_APPLICABLE


def apply(change: ScenarioChange, source: Setting = EMPTY, seed: int = 0) -> tuple[Setting, WorldEffects]:
    return change.apply(source, change.draw(np.random.default_rng(seed), source))


def judged(
    check: Check | None, source: ScenarioTrace, followup: ScenarioTrace, effects: WorldEffects = HERE
) -> Judgement:
    assert isinstance(check, ThereCheck)
    return check.judge_drives(source, followup, effects)


# What a world is made of.


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**31),
    st.sampled_from(["straight", "two_way", "bend", "junction", "straight_mirrored"]),
    st.sampled_from(["adult", "cow", "car", "bus", "cyclist"]),
    st.sampled_from(["way", "roadside", "crossing", "oncoming"]),
)
def test_who_is_added_is_where_it_was_asked_and_in_nobodys_way(seed: int, road: str, kind: str, where: str) -> None:
    streets = load_map(road)
    start = next(lane for lane in streets.lanes.values() if lane.on_road and lane.length_m > 100.0).pose_at(START_M)
    source = replace(EMPTY, road=streets, scenario=replace(EMPTY.scenario, road=road))
    source = replace(source, scenario=replace(source.scenario, ego=replace(source.scenario.ego, start=start)))
    moves = where in ("crossing", "oncoming")
    change = ActorAdded((kind,), where, beside_m=0.3, speed_mps=2.0 if moves else 0.0)
    try:
        made, effects = apply(change, source, seed)
    except NotApplicable as error:
        assert f"room for {kind} ({where})" in str(error)
        return
    assert problems(made.scenario, made.road) == []
    (added,) = [actor for actor in made.scenario.actors if actor.name in effects.added]
    way, here = OwnWay.of(source), shapely.Point(added.start.x_m, added.start.y_m)
    off = shapely.LineString(way.pose[:, :2]).distance(here)
    half = streets.nearest_lane(start.x_m, start.y_m).width_m / 2.0
    assert {"way": off < 1e-6, "oncoming": half < off < 6.0}.get(where, off > half)
    if where == "roadside":
        assert lanes_of(streets).distance(here) >= 0.3 and effects.at is not None
    assert 35.0 <= effects.numbers["ahead_m"] <= 90.0 and bool(added.waypoints) == moves


@pytest.mark.parametrize("kind", ["car", ("car", "van", "car")])
def test_several_stand_behind_each_other_and_not_in_each_other(kind: Any) -> None:
    made, effects = apply(build(ActorAdded, {"kind": kind, "where": "way"}, "t"))
    cars = [actor.start.x_m for actor in made.scenario.actors]
    assert len(cars) == len(effects.added) and cars == sorted(cars)
    assert all(after - before > 4.4 for before, after in pairwise(cars))


def test_there_is_no_room_where_others_are_or_go() -> None:
    with pytest.raises(NotApplicable, match=r"none of 55 places .* has room for adult \(oncoming\)"):
        apply(ActorAdded(where="oncoming", speed_mps=2.0))  # the map 'straight' is one-way
    with pytest.raises(NotApplicable, match="none of 0 places"):
        apply(ActorAdded(at="intersection"))
    lead = replace(pedestrian(30.0), kind="car", speed_mps=8.0)
    with pytest.raises(NotApplicable, match=r"adult \(way\)"):
        apply(ActorAdded(where="way"), setting(lead))
    for made, told in (({"where": "crossing"}, "no speed_mps"), ({"kind": ["adlt"]}, "did you mean 'adult'")):
        with pytest.raises(UsageError, match=told):
            build(ActorAdded, made, "t")


def test_whoever_crosses_at_a_crosswalk_crosses_all_lanes_there() -> None:
    change = ActorAdded(where="crossing", at="crosswalk", ahead_m=(20.0, 200.0), speed_mps=1.4)
    made, effects = apply(change)
    (walker,), crosswalk = made.scenario.actors, shapely.Polygon(EMPTY.road.crossings[0].outline_m)
    path = shapely.LineString([(walker.start.x_m, walker.start.y_m), *((w.x_m, w.y_m) for w in walker.waypoints)])
    assert effects.at is not None and crosswalk.covers(shapely.Point(effects.at.x_m, effects.at.y_m))
    assert walker.start.y_m < -1.75 and walker.waypoints[0].y_m > 5.25 and path.crosses(lanes_of(EMPTY.road))


def test_a_sign_stands_beside_the_carriageway_and_its_limit_is_told_from_there_on() -> None:
    made, effects = apply(SignPutUp("speed_limit", value=40))
    sign, (limit,) = made.road.signs[-1], made.road.limits
    post = shapely.Point(sign.pose.x_m, sign.pose.y_m)
    assert (sign.face, sign.value) == ("speed_limit", 40) and not made.road.carriageway.covers(post)
    assert sign.pose.y_m < 0.0 and sign.pose.yaw_rad == pytest.approx(0.0)  # on the right, and faces who drives east
    assert limit.limit_mps == pytest.approx(40.0 / 3.6) == pytest.approx(effects.numbers["limit_mps"])
    route = Route(made.road, made.scenario.ego.start)
    before, behind = (
        route.limit_mps[route.pose[:, 0] < limit.pose.x_m],
        route.limit_mps[route.pose[:, 0] >= limit.pose.x_m],
    )
    assert (before == 13.9).all() and (behind == limit.limit_mps).all()
    stop, effects = apply(SignPutUp("stop"))
    assert stop.road.limits == () and "limit_mps" not in effects.numbers
    carry = Carry(0.5, 10.0, -4.0)
    assert carried_road(made.road, carry).limits == (Limit(carry.pose(limit.pose), limit.limit_mps),)


LIT = replace(EMPTY, scenario=replace(EMPTY.scenario, ego=replace(EMPTY.scenario.ego, start=Pose(200.0, 0.0))))


def colours(made: Setting, name: str, times: list[float]) -> list[str]:
    return [colour_at(made.scenario.signals[name], time_s) for time_s in times]


def test_a_light_shows_another_colour_and_nobody_is_let_cross() -> None:
    red, effects = apply(SignalShows("red"), LIT)
    assert colours(red, "light_1", [0.0, 14.0, 40.0]) == ["red"] * 3
    assert effects.at is not None and effects.at.x_m == pytest.approx(297.0, abs=1.0)
    green, _ = apply(SignalShows("green"), LIT)
    assert colours(green, "light_1", [0.0, 20.0]) == ["green"] * 2 and colours(green, "walk", [20.0]) == ["red"]
    with pytest.raises(NotApplicable, match="red all the time already"):
        apply(SignalShows("red"), red)
    with pytest.raises(NotApplicable, match=r"no light on the way \(intersection"):
        apply(SignalShows(at="intersection"), LIT)


def test_a_light_turns_yellow_where_it_was_green_and_red_follows() -> None:
    made, effects = apply(SignalShows("yellow"), LIT)
    at_s = effects.numbers["from_s"]
    assert colours(made, "light_1", [at_s - 0.2, at_s + 0.2, at_s + 2.8, at_s + 3.2]) == [
        "green",
        "yellow",
        "yellow",
        "red",
    ]
    always = replace(LIT, scenario=replace(LIT.scenario, signals={"light_1": (("red", 9.0),)}))
    with pytest.raises(NotApplicable, match="expected green, which yellow follows"):
        apply(SignalShows("yellow"), always)


def test_the_environment_changes_one_way_only() -> None:
    assert apply(EnvironmentChanged("snow", 0.4))[0].scenario.environment == Environment(snow=0.4)
    night, _ = apply(EnvironmentChanged("hour", 0.0))
    assert light_of(night.scenario.environment).darkness == 1.0
    for change, told in (
        (EnvironmentChanged("hour", 18.0), "as dark already"),
        (EnvironmentChanged("hour", 0.0), "dark"),
    ):
        with pytest.raises(NotApplicable, match=told):
            apply(change, night)
    with pytest.raises(NotApplicable, match=r"rain of 0\.5 already"):
        apply(EnvironmentChanged(), apply(EnvironmentChanged())[0])
    with pytest.raises(UsageError, match="got fog 3, expected more than 0 to 1"):
        EnvironmentChanged("fog", 3.0)
    assert visibility_of(fog_of(40.0)) == pytest.approx(40.0)


def test_sensors_show_and_the_world_tells_who_was_added() -> None:
    made, effects = apply(ActorAdded(("truck",), "way", ahead_m=(20.0, 22.0)))
    rig = Rig.for_stack(load_stack("reference_pilot"), replace(hdl_64e(), azimuths=360))
    seen = []
    for one in (EMPTY, made):
        bundle = Sensors(one.scenario, one.road, rig, 0).observe(World(one.scenario, road=one.road).state, 0, 0)
        (cloud,) = bundle.known_clouds
        seen.append(cloud.xyz[np.hypot(cloud.xyz[:, 0] - 22.0, cloud.xyz[:, 1]) < 6.0])
    before, after = (part[part[:, 2] > -1.0] for part in seen)  # above the road, seen from the LiDAR
    assert len(before) == 0 and len(after) > 50
    told = Teller(made.scenario, made.road).objects(World(made.scenario).state, 0, np.random.default_rng(0))
    assert effects.added == ("added_1",) and told.track_id.tolist() == ["added_1"]
    signed, _ = apply(SignPutUp("stop"))
    assert len(scenery_of(signed.road).solids.bodies) == len(scenery_of(EMPTY.road).solids.bodies) + 1


# How manipulations and statements are bound.


def test_what_a_world_shows_is_bound_and_all_else_says_why() -> None:
    shown = {name for name, one in manipulations().items() if one.in_world and not one.alias_of}
    for name in shown:
        assert manipulations()[name].changes()
    told = {name: one.as_plain()["not_in_world"] for name, one in manipulations().items() if not one.in_world}
    assert all(told.values()) and told["red_arrow"] == "a map's lights have no arrows"
    assert (
        manipulations()["escorted_school_children"].in_world == manipulations()["person_with_small_children"].in_world
    )
    kinds = {
        kind for name in shown for c in manipulations()[name].changes() if isinstance(c, ActorAdded) for kind in c.kind
    }
    assert kinds >= {
        "adult",
        "child",
        "elderly",
        "wheelchair_user",
        "cyclist",
        "dog",
        "deer",
        "boar",
        "cow",
        "car",
        "van",
    }
    assert kinds >= {"truck", "bus", "school_bus", "emergency_vehicle", "tow_truck", "motor_cyclist", "box", "cone"}
    assert shown >= {"red_light", "green_light", "stop_sign", "yield_sign", "maximum_speed_sign", "rain", "fog", "snow"}
    assert shown >= {"night", "wet_road"} and len(shown) >= 75
    with pytest.raises(UsageError, match="'red_arrow' is none of a world: a map's lights have no arrows"):
        manipulations()["red_arrow"].changes()


def test_rules_give_relations_of_the_closed_loop_or_say_why_not() -> None:
    loop = in_loop()
    assert len(loop) >= 85 and set(loop) <= set(in_store())
    for name, one in in_store().items():
        if name in loop:
            relation = load_rule_relation(name, loop=True)
            assert relation.loop and relation.id == name and relation.scenario and not relation.mutate
            assert relation.because == load_rule_relation(name).because
        else:
            why = one.gap_in_world(ONTOLOGY)
            with pytest.raises(UsageError, match="is none of the closed loop: "):
                load_rule_relation(name, loop=True)
            assert why
    rows = {row["name"]: row["drives"] for row in map(catalogue._relation_row, ["rule_germany_30", "rule_germany_35"])}
    assert rows == {"rule_germany_30": True, "rule_germany_35": False}


def test_rules_of_a_region_fit_a_stack_by_what_it_is_told_or_sees() -> None:
    stack = load_stack("reference_planner")
    assert {
        r.id: incompatibility(r, stack, True) is None
        for r in (load_rule_relation(name, loop=True) for name in ("rule_germany_12", "rule_germany_28"))
    } == {
        "rule_germany_12": True,  # a zone caps the speed that the route tells
        "rule_germany_28": False,  # a sign that warns only a camera sees
    }
    fog = load_rule_relation("rule_germany_1", loop=True)
    assert "requires a lidar or camera; stack 'reference_planner' has no such input" in str(
        incompatibility(fog, stack, True)
    )
    assert incompatibility(fog, load_stack("reference_pilot"), True) is None


def test_the_same_id_is_a_relation_of_bags_and_of_drives() -> None:
    (loop,) = load_suite(["rule_germany_30"], "sensors_resampled").relations
    assert loop.loop and not load_relation("rule_germany_30").loop and loop.id == "rule_germany_30"


def test_rules_of_a_region_are_asked_for_by_one_name(tmp_path: Path) -> None:
    made = ScenarioRun.make(
        ScenarioRequest(scenarios=("green_light",), relations=("rules:germany",), repeat=1), tmp_path
    )
    assert "rule_germany_30" in made.request.relations and len(made.suite.relations) == len(made.request.relations) > 10
    with pytest.raises(UsageError, match="no rules of 'bavaria' ship"):
        ScenarioRun.make(ScenarioRequest(scenarios=("green_light",), relations=("rules:bavaria",)), tmp_path)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("Stop for a dog on the road.", ActorAdded(("dog",), "way")),
        ("Slow down for a child at the roadside.", ActorAdded(("child",), "roadside", turned_rad=1.57)),
        (
            "Slow down for a pedestrian on the road at a crosswalk.",
            ActorAdded(("adult",), "way", "crosswalk", (20.0, 250.0), turned_rad=1.57),
        ),
    ],
)
def test_places_and_roads_of_a_rule_are_those_of_the_change(rule: str, expected: ActorAdded) -> None:
    (statement,) = read_rule(rule, ONTOLOGY, "DE-30").statements
    assert bind_in_world(statement, ONTOLOGY, GERMANY).scenario == (expected,)


def test_numbers_of_a_rule_are_those_on_the_sign_and_in_the_air() -> None:
    (sign,) = load_rule_relation("rule_germany_23", loop=True).scenario
    assert isinstance(sign, SignPutUp) and sign.limit_kmh == 30.0
    fog = load_rule_relation("rule_germany_1", loop=True)
    (air,), (told,) = fog.scenario, fog.given
    assert isinstance(air, EnvironmentChanged) and visibility_of(air.to) == pytest.approx(40.0)
    assert told.condition == "speed_kmh > 50"  # type: ignore[attr-defined]
    assert fog.check is not None and fog.check.along == "way"  # type: ignore[attr-defined]


def test_weather_is_everywhere_and_not_at_a_crosswalk() -> None:
    rain = Statement("crosswalk", REPLACES, "rain", "slow_down", rules=("DE-30",))
    with pytest.raises(UsageError, match="everywhere, and not at one crosswalk"):
        bind_in_world(rain, ONTOLOGY, GERMANY)


def test_rules_of_ones_own_are_written_as_files_of_the_closed_loop(tmp_path: Path) -> None:
    rules = RuleSet("town", "Town", {"T-1": Rule("T-1", "Slow down for a dog on the road.")}, tmp_path / "town.txt")
    said = replace(DOG, place=ON_ROAD, condition="moving", rules=("T-1",))
    written, unbound = write_relations(
        tmp_path, rules, [said, replace(said, element="red_arrow")], ONTOLOGY, in_world=True
    )
    assert written == ["rule_town_1"] and "red_arrow is none of the closed loop" in unbound[0]
    (again,) = load_suite([str(tmp_path / "rule_town_1.yaml")], "sensors_resampled").relations
    assert replace(again, path=None) == bind_in_world(said, ONTOLOGY, rules)
    file = tmp_path / "other.yaml"
    file.write_text(
        (tmp_path / "rule_town_1.yaml")
        .read_text()
        .replace("known_to_be", "points_at_least")
        .replace("condition: moving", "points: 9")
    )
    with pytest.raises(UsageError, match="given: is for single inputs"):
        load_relation(str(file))


# What is judged: each behaviour by its own check.


def slower_there(by_mps: float) -> ScenarioTrace:
    """A drive at 10 m/s, less fast from 20 m to 60 m of its way."""
    speed, x = np.full(101, 10.0), 0.0
    for row in range(101):
        speed[row] = 10.0 - by_mps if 20.0 <= x <= 62.0 else 10.0
        x += 0.1 * speed[row]
    return drive(speed, rows=101)


def aside(left_m: float) -> ScenarioTrace:
    """A drive that goes to one side, beginning 20 m before the place."""
    x = np.arange(101)
    return drive(10.0, left_m * np.clip((x - 30.0) / 20.0, 0.0, 1.0), rows=101)


STOPPED = drive(np.clip(10.0 - 0.2 * np.arange(101.0), 0.0, 10.0), rows=101)


#: Nothing judges `stay_behind` and `start_moving` of whole drives.
JUDGED = [name for name, one in ONTOLOGY.behaviours.items() if one.in_world[0]]


@lru_cache
def in_world(behaviour: str) -> Any:
    return bind_in_world(replace(DOG, behaviour=behaviour), ONTOLOGY, GERMANY).check


def test_each_behaviour_is_judged_by_its_own_check_of_drives() -> None:
    # The published code judges every relation as "slow down": its first condition is always true.
    assert {name: name_of(type(in_world(name))) for name in JUDGED} == {
        "slow_down": "slows_down_there",
        "keep_current": "keeps_way_there",
        "turn_left": "turns_left_there",
        "turn_right": "turns_right_there",
        "stop": "stops_there",
        "give_way": "slows_down_there",
        "keep_distance": "slows_down_there",
    }
    with pytest.raises(UsageError, match="stay_behind"):
        in_world("stay_behind")
    # Whoever adds a behaviour is told where nothing judges it.
    assert ONTOLOGY.behaviours["stop"].make_check_in_world() == in_world("stop")


@pytest.mark.parametrize(
    ("followup", "holding"),
    [
        (drive(rows=101), {"keep_current"}),
        (slower_there(3.0), {"slow_down", "give_way", "keep_distance"}),
        (STOPPED, {"slow_down", "give_way", "keep_distance", "stop"}),
        (aside(2.0), {"turn_left"}),
        (aside(-2.0), {"turn_right"}),
        (drive(12.0, rows=101), set()),
    ],
)
def test_one_drive_keeps_one_behaviour_and_breaks_the_others(followup: ScenarioTrace, holding: set[str]) -> None:
    outcomes = {name: judged(in_world(name), drive(rows=101), followup).outcome for name in JUDGED}
    assert {name for name, one in outcomes.items() if one is HOLDS} == holding
    assert set(outcomes.values()) <= {HOLDS, VIOLATED}


@pytest.mark.parametrize("behaviour", JUDGED)
def test_control_and_sham_are_asked_for_no_more_than_that_nothing_changes(behaviour: str) -> None:
    background = in_world(behaviour).background
    assert judged(background, drive(rows=101), drive(rows=101), WorldEffects()).outcome is HOLDS
    wrong = aside(2.0) if behaviour.startswith("turn") else drive(14.0, rows=101)
    assert judged(background, drive(rows=101), wrong, WorldEffects()).outcome is VIOLATED


RUN_OVER = replace(STOPPED, trace=replace(STOPPED.trace, collisions=(hit("walker"),)))
ADDED = WorldEffects(added=("walker",), at=Pose(70.0, 0.0))
LIMIT = WorldEffects(at=Pose(70.0, 0.0), numbers={"limit_mps": 9.8})


@pytest.mark.parametrize(
    ("followup", "effects", "source", "outcome", "reason"),
    [
        (slower_there(3.0), HERE, drive(rows=101), HOLDS, "the mean speed there was 10.00"),
        (slower_there(0.3), HERE, drive(rows=101), VIOLATED, "was 10.00, is 9.7"),
        (STOPPED, ADDED, drive(rows=101), HOLDS, "mean speed"),
        (RUN_OVER, ADDED, drive(rows=101), VIOLATED, "hits walker"),
        (STOPPED, HERE, drive(rows=31), NOTHING, "the source does not come there: its way ends 20 m off"),
        (STOPPED, HERE, drive(0.5, rows=1010), NOTHING, "slower than 1"),
        (STOPPED, WorldEffects(), drive(0.0, rows=101), NOTHING, "0.0 m of it, less than 5 m"),
        (STOPPED, LIMIT, drive(rows=101), NOTHING, "9.80 is allowed: not 0.5 less is asked"),
    ],
)  # fmt: skip
def test_slowing_down_is_asked_where_it_is_another_world(
    followup: ScenarioTrace, effects: WorldEffects, source: ScenarioTrace, outcome: Outcome, reason: str
) -> None:
    told = judged(SlowsDownThere(), source, followup, effects)
    assert told.outcome is outcome and reason in told.reason


def test_a_stretch_is_where_something_is_or_where_one_met() -> None:
    source = drive(rows=101)
    at, middle, whole = (
        stretch_of(source, source, *a, whole=w)
        for a, w in (((HERE,), False), ((WorldEffects(),), False), ((HERE,), True))
    )
    assert isinstance(at, RoadStretch) and isinstance(middle, RoadStretch) and isinstance(whole, RoadStretch)
    assert (at.at_m[0], at.at_m[-1]) == pytest.approx((20.0, 60.0))
    assert (middle.at_m[0], middle.at_m[-1]) == pytest.approx((20.0, 60.0))
    assert (whole.at_m[0], whole.at_m[-1]) == pytest.approx((0.0, 100.0)) and whole.rows == (0, 101)
    assert (at.now, whole.now) == (20, 50)
    later = stretch_of(source, source, WorldEffects(at=Pose(85.0, 2.0)))
    assert isinstance(later, RoadStretch) and (later.at_m[0], later.at_m[-1]) == pytest.approx((35.0, 75.0))
    met = stretch_of(source, source, WorldEffects(added=("walker",)))  # who stands 3 m to the left of x = 50 m
    assert isinstance(met, RoadStretch) and met.at_m[-1] == pytest.approx(40.0)
    behind = stretch_of(source, source, LIMIT)
    assert isinstance(behind, RoadStretch) and (behind.at_m[0], behind.at_m[-1]) == pytest.approx((40.0, 80.0))


def test_who_never_comes_there_is_not_aside() -> None:
    source, short = drive(rows=101), drive(10.0, rows=12, ended="standstill")
    stretch = stretch_of(source, short, HERE)
    assert isinstance(stretch, RoadStretch) and np.isnan(stretch.aside_m).all()
    assert KeepsWayThere().decide(stretch).measured == pytest.approx(0.0)


# By which facts it applies.


def lit(*programme: tuple[str, float], seconds: float = 6.5, x_m: float = 240.0) -> Setting:
    """The ego comes to a light."""
    scene = setting(duration_s=seconds, signals={"light_1": programme})
    return replace(scene, scenario=replace(scene.scenario, ego=replace(scene.scenario.ego, start=Pose(x_m, 0.0))))


LONG = replace(EMPTY, scenario=replace(EMPTY.scenario, duration_s=9.0))
TO_CROSSWALK = replace(LONG, scenario=replace(LONG.scenario, ego=replace(LONG.scenario.ego, start=Pose(75.0, 0.0))))
GREEN, CHANGING = lit(("green", 60.0)), lit(("green", 12.0), ("red", 15.0))
STAYS_RED = lit(("red", 50.0), ("green", 1.0), seconds=12.0)
NOBODY_ON_FOOT = {"strangers_ignored": {"classes": ["car"]}}


#: Relation, scene, fault, outcome and reason.
DRIVES: list[tuple[str, Setting, Any, str, str]] = [
    ("rule_california_1", GREEN, None, "HOLDS", "the mean speed there was"),
    ("rule_california_1", GREEN, "lights_blurred_at_speed", "VIOLATED", ""),
    ("rule_california_1", STAYS_RED, None, "NOT_APPLICABLE", "not so that moving and not has(red"),
    ("rule_california_1", EMPTY, None, "NOT_APPLICABLE", "the source does not come there"),
    ("rule_california_2", GREEN, None, "HOLDS", ""),
    ("rule_california_3", CHANGING, None, "HOLDS", "0.00 m off its way"),
    ("rule_california_3", STAYS_RED, None, "NOT_APPLICABLE", "not so that"),
    ("rule_california_10", TO_CROSSWALK, None, "HOLDS", ""),
    ("rule_california_10", TO_CROSSWALK, NOBODY_ON_FOOT, "VIOLATED", "hits added_1, which was added"),
    ("rule_germany_12", LONG, None, "HOLDS", ""),
    ("rule_germany_12", LONG, "limits_unread", "VIOLATED", ""),
    ("rule_germany_4", LONG, None, "HOLDS", ""),
    ("rule_germany_30", LONG, None, "VIOLATED", ""),  # who stands beside the lane is passed without slowing down
    ("rule_germany_5", LONG, None, "NOT_APPLICABLE", "has room for car (oncoming)"),
]  # fmt: skip


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Setting, Any], list[dict[str, Any]]]:
    """Return a function that drives a scene once for all relations that are asked of it, and returns their verdicts."""

    @cache
    def run(at: int) -> list[dict[str, Any]]:
        _, scene, fault, *_ = DRIVES[at]
        relations = list(dict.fromkeys(name for name, *one, _, _ in DRIVES if one[0] is scene and one[1] is fault))
        out, stack = tmp_path_factory.mktemp("drive"), load_stack("reference_planner")
        made = made_run(out, [scene], relations, with_faults(stack, fault) if fault else stack)
        write_record(out, made.request, made.suite.all, made.stack, {})
        execute(made, lambda ending: in_process_arms(made, ending), lambda line: None, lambda lines: None)
        return [line for line in read_lines(out / "result.jsonl") if line["type"] == "verdict"]

    return lambda scene, fault: run([one[1] is scene and one[2] is fault for one in DRIVES].index(True))


@pytest.mark.parametrize(("relation", "scene", "fault", "outcome", "reason"), DRIVES)
def test_the_honest_planner_holds_what_it_knows_and_a_fault_is_told(
    relation: str, scene: Setting, fault: Any, outcome: str, reason: str, verdicts: Callable[[Setting, Any], list[Any]]
) -> None:
    lines = {Pair.parse(line["pair"]): line for line in verdicts(scene, fault)}
    told = {pair.relation: line for pair, line in lines.items() if pair.judged_for == relation}
    assert told.keys() == {relation, "identity", "sensors_resampled"}
    assert (told[relation]["outcome"], reason in told[relation]["reason"]) == (outcome, True), told[relation]["reason"]
    assert {told[name]["outcome"] for name in ("identity", "sensors_resampled")} <= {"HOLDS", "NOT_APPLICABLE"}


def facts(source: ScenarioTrace, effects: WorldEffects = HERE) -> dict[str, Any]:
    stretch = stretch_of(source, source, effects)
    assert isinstance(stretch, RoadStretch)
    return facts_on_stretch(source, stretch, effects)


def along(x_m: list[float], y_m: list[float], scene: Setting, speed_mps: float = 8.0) -> ScenarioTrace:
    """A drive over places, a tenth of a second apart, in a scene without actors."""
    x, y = np.array(x_m), np.array(y_m)
    made = drive(speed_mps, rows=len(x))
    yaw = np.arctan2(np.gradient(y), np.gradient(x))
    ego = np.column_stack([x, y, yaw, made.trace.ego[:, 3:]])
    trace = replace(made.trace, ego=ego, actors=np.empty((len(x), 0, 4)), names=())
    return ScenarioTrace(trace, scene.scenario)


def test_the_world_knows_the_facts_where_the_source_drives() -> None:
    known = facts(along(list(np.arange(20.0, 120.0, 0.8)), [0.0] * 125, EMPTY))
    assert known["speed_kmh"] == pytest.approx(28.8) and known["moving"] is True and known["ego_lane"] == "rightmost"
    assert known["path_clear"] is True and known["lead_gap_m"] == float("inf") and known["dark"] is False
    assert known["weather_clear"] is True and known["surface_dry"] is True
    # No junction comes, so there is nowhere to turn off to; and no light changes.
    assert "can_stop_before_line" not in known and known["ego_heading"] == "straight"
    wet = replace(EMPTY, scenario=replace(EMPTY.scenario, environment=Environment(hour=0.0, rain=0.5)))
    known = facts(along(list(np.arange(20.0, 120.0, 0.8)), [0.0] * 125, wet))
    assert (known["dark"], known["weather_clear"], known["surface_dry"]) == (True, False, False)


def test_what_is_ahead_at_any_time_of_the_stretch_is_there() -> None:
    scene = lit(("green", 4.0), ("red", 2.0), ("green", 60.0))
    there = WorldEffects(changed=("light_1",), at=Pose(297.0, 0.0))
    known = facts(along(list(np.arange(240.0, 320.0, 0.8)), [0.0] * 100, scene), there)
    assert {"red_light", "green_light"} <= known["has"]
    assert known["can_stop_before_line"] is True  # 8 m/s: 18.7 m are needed, there are 26
    fast = facts(along(list(np.arange(240.0, 320.0, 1.5)), [0.0] * 54, scene, 15.0), there)
    assert fast["can_stop_before_line"] is False and fast["moving"] is True


@pytest.mark.parametrize(("side", "heading"), [(1, "left"), (-1, "right"), (0, "straight")])
def test_who_turns_at_a_junction_is_known_by_the_way_that_he_takes(side: int, heading: str) -> None:
    streets = load_map("junction")
    ego = replace(EMPTY.scenario.ego, start=streets.lanes["west_middle"].pose_at(60.0))
    scene = replace(EMPTY, road=streets, scenario=replace(EMPTY.scenario, road="junction", ego=ego))
    end = streets.lanes["west_middle"].pose_at(1e3)
    before = np.arange(end.x_m - 60.0, end.x_m, 0.8)
    turn = np.linspace(0.0, np.pi / 2.0, 20)
    x = [*before, *(end.x_m + 10.0 * np.sin(turn))] if side else list(np.arange(end.x_m - 60.0, end.x_m + 40.0, 0.8))
    y = [end.y_m] * len(before) + list(end.y_m + side * 10.0 * (1.0 - np.cos(turn))) if side else [end.y_m] * len(x)
    known = facts(along(x, y, scene), WorldEffects(at=end))
    assert known["ego_heading"] == heading and known["ego_turning"] == (heading != "straight")
    assert known["ego_lane"] == "only"
