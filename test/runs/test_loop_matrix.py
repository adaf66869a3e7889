# SPDX-License-Identifier: Apache-2.0
"""Relation x fault in the closed loop: the honest drivers hold every relation, and each tells a fault."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from math import pi
from pathlib import Path
from typing import Any

import pytest
from found_once import obstacles_found_once, worlds_seen_once
from looped import darting
from made_drives import START_M, crossing, made_run, pedestrian, setting, with_faults

from mt_nodes.base import plugins
from mt_nodes.base.jsonl import read_lines, read_result
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.engine.run_record import write_record
from mt_nodes.relations.relation import CONTROL, LOOP_FOLDER, LOOP_SHAM, shipped_relations
from mt_nodes.relations.world_changes.base import Setting
from mt_nodes.runs.loop.episode_conductor import execute, in_process_arms
from mt_nodes.stacks.reference.faults import planner_object_faults
from mt_nodes.stacks.reference.faults.planner_harm_faults import MoralFault
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.drive.scenario import Actor, Pose, Trigger, Waypoint
from mt_nodes.world.scene.lidar import hdl_64e

pytestmark = pytest.mark.usefixtures("stacks_here")


@pytest.fixture(scope="module", autouse=True)
def remembered() -> Iterator[None]:
    with worlds_seen_once(), obstacles_found_once():
        yield


RELATIONS = {r.id: r for r in shipped_relations(LOOP_FOLDER) if r.role == "relation"}
#: Faults of the planner, less those that show only where it must hit somebody: principles find these.
FAULTS = {
    name
    for name, cls in plugins.catalogue("faults").items()
    if cls.stack == "planner" and not issubclass(cls, MoralFault)  # type: ignore[attr-defined]
}
#: Faults by which the planner drives as badly in both worlds: a relation compares two drives, and finds no difference.
ALIKE_IN_BOTH = {"all_taken_to_stand"}
#: Faults of the careful driver, which relations of traffic rules tell: test_rule_decisions.
TOLD_BY_RULES = {"blind_to", "light_confused", "only_own_lane_counts", "signs_unseen", "weather_unnoticed"}
#: Half as many columns as usual: twice as quick.
LIDAR = replace(hdl_64e(), azimuths=900)


def lead(ahead_m: float, speed_mps: float) -> Actor:
    """A car in the ego's lane."""
    return Actor("lead", "car", Pose(START_M + ahead_m, 0.0), speed_mps)


def beyond_a_van() -> tuple[Actor, Actor]:
    """Somebody who crosses, seen over a parked van, and hidden by it when he is nearer."""
    ways = (Waypoint(88.0, 8.0, 1.6),)
    person = Actor("a", "adult", Pose(88.0, -4.6, pi / 2.0), waypoints=ways, trigger=Trigger(ego_within_s=3.3))
    return Actor("van", "van", Pose(78.0, -2.9)), person


def over_the_line() -> Actor:
    """A car that comes towards the ego and drives partly in its lane."""
    ways = (Waypoint(120.0, 1.4, 10.0), Waypoint(2.0, 1.4, 10.0))
    return Actor("comer", "car", Pose(180.0, 3.5, pi), 10.0, waypoints=ways)


def passing() -> Actor:
    """A car that comes the other way on its own lane: it is past when somebody darts onto the ego's, or is not."""
    return Actor("comer", "car", Pose(122.0, 3.5, pi), 11.0)


def slowly(scene: Setting, speed_mps: float) -> Setting:
    """The same, the ego being slower at first."""
    ego = replace(scene.scenario.ego, speed_mps=speed_mps)
    return replace(scene, scenario=replace(scene.scenario, ego=ego))


@dataclass(frozen=True, eq=False)
class Case:
    """A relation, what tells a fault by it, and the parameters of that."""

    relation: str
    fault: str
    scene: Setting
    params: dict[str, Any]
    seed: int = 0
    stack: str = "reference_planner"


def case(relation: str, fault: str, scene: Setting, seed: int = 0, stack: str = "planner", **params: Any) -> Case:
    return Case(relation, fault, scene, params, seed, f"reference_{stack}")


def before_a_light(colour: str) -> Setting:
    """The ego comes to a light that shows one colour all the time."""
    scene = setting(duration_s=6.0, signals={"light_1": ((colour, 60.0),)})
    ego = replace(scene.scenario.ego, start=Pose(240.0, 0.0))
    return replace(scene, scenario=replace(scene.scenario, ego=ego))


FOLLOWER = slowly(setting(lead(18.0, 5.0), duration_s=2.4), 5.0)
WALKER, CROSSER = setting(pedestrian(60.0), duration_s=4.8), setting(crossing(50.0), duration_s=5.0)
CASES = [
    case("far_object_same_trace", "cruise_by_count", setting(duration_s=4.0)),
    case("far_object_comfort", "bystanders_feared", setting(duration_s=3.8)),
    case("far_cow_clearance", "told_list_full", setting(lead(25.0, 6.0), duration_s=4.5), places=1),
    case("far_crowd_brakes", "looks_ahead_by_count", CROSSER),
    case("far_crowd_collisions", "told_list_full", setting(pedestrian(40.0), duration_s=4.5), places=2),
    case("adult_named_deer_collisions", "strangers_ignored", CROSSER),
    case("adult_becomes_child_collisions", "low_is_litter", CROSSER),
    case("pedestrian_nearer_brakes", "hidden_forgotten", setting(*beyond_a_van(), duration_s=7.0), seed=1),
    case("pedestrian_nearer_collisions", "nearest_are_bonnet", setting(crossing(47.0, 22.0), duration_s=7.0)),
    case(
        "pedestrian_nearer_collisions",
        "evades_into_oncoming",
        slowly(setting(darting(START_M + 60.0, 14.0), passing(), road="two_way", duration_s=6.0), 12.0),
        seed=1,
    ),
    case("scene_shifted_same_trace", "other_tile_unseen", WALKER),
    case("world_moved_same_trace", "other_tile_unseen", WALKER),
    case("odometry_drifted_collisions", "route_lost", CROSSER),
    case("world_mirrored_same_trace", "evades_to_the_left", setting(over_the_line(), road="two_way", duration_s=8.0)),
    case("world_mirrored_same_trace", "shies_from_the_right", setting(pedestrian(60.0, -4.0), duration_s=4.5)),
    case("deer_crosses_slows_down", "strangers_ignored", setting(duration_s=6.8)),
    case("red_light_slows_down", "lights_blurred_at_speed", before_a_light("green")),
    case("zone_30_slows_down", "limits_unread", setting(duration_s=6.8)),
    *(
        case(relation, "intensity_threshold", FOLLOWER, stack="pilot", weakest=40.0)
        for relation in ("fog_drives_no_faster", "thick_fog_drives_no_faster")
    ),
    case(
        "noise_outside_roi_same_trace",
        "order_dependence_over_budget",
        setting(pedestrian(32.0), duration_s=2.6),
        stack="pilot",
        budget=53_300,
        keep_every=1000,
    ),
]


def outcomes(out: Path, one: Case, fault: str = "", *others: str) -> dict[str, dict[str, list[str]]]:
    """Return for the relation, and for others, how pairs of control, sham and relation ended by its check."""
    stack = load_stack(one.stack)
    stack = with_faults(stack, {fault: one.params}) if fault else stack
    run = made_run(out, [one.scene], [one.relation, *others], stack, lidar=LIDAR, seed=one.seed)
    write_record(out, run.request, run.suite.all, run.stack, {})
    execute(run, lambda ending: in_process_arms(run, ending), lambda line: None, lambda verdicts: None)
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for line in read_lines(out / "result.jsonl"):
        if line["type"] == "verdict":
            pair = Pair.parse(line["pair"])
            found[pair.judged_for][pair.relation].append(line["outcome"])
    return found


@cache
def told(place: Path, one: Case, fault: str) -> dict[str, dict[str, list[str]]]:
    """The outcomes of a case, from one run of a stack in a scene for all relations."""

    def driven(case: Case) -> tuple[Any, ...]:
        return (id(case.scene), case.seed, case.stack, *((case.fault, case.params) if fault else ()))

    alike = [other for other in CASES if driven(other) == driven(one)]
    if one is not alike[0]:
        return told(place, alike[0], fault)
    return outcomes(place / f"{CASES.index(one)}_{fault}", one, fault, *(other.relation for other in alike[1:]))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("matrix")


@pytest.mark.parametrize("one", CASES, ids=lambda one: f"{one.relation}-{one.fault}")
def test_the_honest_driver_holds_and_the_faulty_one_is_found(one: Case, place: Path) -> None:
    clean = {CONTROL: ["HOLDS"], LOOP_SHAM: ["HOLDS"]}
    assert told(place, one, "")[one.relation] == {**clean, one.relation: ["HOLDS"]}
    assert told(place, one, one.fault)[one.relation] == {**clean, one.relation: ["VIOLATED"]}


def test_a_memory_that_outlives_a_restart_is_told_by_the_control(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner_object_faults, "_PASSED", set())
    scene = setting(crossing(40.0), duration_s=14.0)
    one = case("far_object_same_trace", "passed_are_remembered", scene)
    found = outcomes(tmp_path, one, one.fault)
    assert found == {one.relation: {name: ["VIOLATED"] for name in ("identity", "sensors_resampled", one.relation)}}
    relation = read_result(tmp_path / "summary.json")["relations"][one.relation]
    assert relation["outcome"] == "UNSTABLE"


def test_every_relation_tells_a_fault_and_every_fault_is_told() -> None:
    assert {one.relation for one in CASES} == set(RELATIONS)
    assert {one.fault for one in CASES} | ALIKE_IN_BOTH | TOLD_BY_RULES | {"passed_are_remembered"} >= FAULTS
    assert not {one.fault for one in CASES} & ALIKE_IN_BOTH
    for one in CASES:
        assert incompatibility(RELATIONS[one.relation], load_stack(one.stack), loop=True) is None
