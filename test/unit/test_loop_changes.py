# SPDX-License-Identifier: Apache-2.0
"""Changes of scenarios: what each promises, of every scenario that it does not refuse."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from made_drives import box, crossing, pedestrian, setting

from mt_nodes.base import plugins
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import build, describe
from mt_nodes.relations.relation import LOOP_FOLDER, Relation, shipped_relations
from mt_nodes.relations.world_changes.actor_changes import ActorKindChanged, ObjectAddedFar, PedestrianNearer
from mt_nodes.relations.world_changes.base import Draw, ScenarioChange, Setting, WorldEffects
from mt_nodes.relations.world_changes.environment_changes import FogInWorld, SensorsResampled
from mt_nodes.relations.world_changes.scenario_carry import Carry, carried_road, carried_scenario
from mt_nodes.relations.world_changes.world_moves import SceneShiftedAlongRoad, WorldMirrored, WorldMoved
from mt_nodes.runs.loop.followup_world import changed
from mt_nodes.runs.loop.scenario_run import PlannedEpisode
from mt_nodes.world.drive.maps import MAPS, load_map
from mt_nodes.world.drive.scenario import Environment, Person, Pose, Scenario, Trigger, Waypoint
from mt_nodes.world.drive.scenario_checks import checked, problems

SCENE = setting(crossing(), pedestrian(40.0, 5.0), obstacles=(box(90.0, 2.0),))
CHANGES = plugins.catalogue("scenario_changes")


def apply(change: ScenarioChange, source: Setting = SCENE, seed: int = 0) -> tuple[Setting, WorldEffects]:
    return change.apply(source, change.draw(np.random.default_rng(seed), source))


def plain(draw: Draw) -> dict[str, Any]:
    return {name: np.asarray(value).tolist() for name, value in draw.items()}


def relation(*changes: ScenarioChange) -> Relation:
    return Relation("r", "necessary", "for tests", (), None, scenario=changes)


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_is_pure_seeded_and_kept_by_the_ledger(name: str) -> None:
    change = build(CHANGES[name], {}, name)
    draw = change.draw(np.random.default_rng(3), SCENE)  # type: ignore[attr-defined]
    assert plain(draw) == plain(change.draw(np.random.default_rng(3), SCENE))  # type: ignore[attr-defined]
    before = repr(SCENE.scenario)
    (one, effects), (other, _) = (change.apply(SCENE, json.loads(json.dumps(plain(draw)))) for _ in range(2))  # type: ignore[attr-defined]
    assert repr(SCENE.scenario) == before and one.scenario == other.scenario and one.noise == other.noise
    if name == "sign_put_up":  # signs are the map's
        assert one.road != SCENE.road and one.scenario == SCENE.scenario
    else:
        assert one.scenario != SCENE.scenario or one.noise != SCENE.noise
    assert problems(one.scenario, one.road) == []
    assert json.loads(json.dumps(effects.as_plain())) == effects.as_plain()
    assert plugins.summary_of(CHANGES[name]) and all(row["help"] for row in describe(CHANGES[name]))


def test_every_change_is_in_a_shipped_relation() -> None:
    used = {type(change) for r in shipped_relations(LOOP_FOLDER) for change in r.scenario}
    assert used == set(CHANGES.values())


carries = st.builds(Carry, st.floats(-3.1, 3.1), st.floats(-300.0, 300.0), st.floats(-300.0, 300.0), st.booleans())
poses = st.builds(Pose, st.floats(-200.0, 200.0), st.floats(-200.0, 200.0), st.floats(-3.1, 3.1))


def same(one: Pose, other: Pose) -> bool:
    turn = np.angle(np.exp(1j * (one.yaw_rad - other.yaw_rad)))
    return bool(np.hypot(one.x_m - other.x_m, one.y_m - other.y_m) < 1e-6 and abs(turn) < 1e-9)


@settings(max_examples=50)
@given(carries, carries, poses)
def test_carries_compose_and_keep_distances_and_directions(first: Carry, second: Carry, pose: Pose) -> None:
    assert same(second.pose(first.pose(pose)), first.then(second).pose(pose))
    ahead = Pose(pose.x_m + 2.0 * np.cos(pose.yaw_rad), pose.y_m + 2.0 * np.sin(pose.yaw_rad), pose.yaw_rad)
    there, then = first.pose(pose), first.pose(ahead)
    assert (then.x_m - there.x_m, then.y_m - there.y_m) == pytest.approx(
        (2.0 * np.cos(there.yaw_rad), 2.0 * np.sin(there.yaw_rad)), abs=1e-6
    )


@settings(max_examples=25)
@given(poses, poses)
def test_a_mirror_keeps_its_axis_and_is_its_own_inverse(axis: Pose, pose: Pose) -> None:
    mirror = Carry.mirror(axis)
    assert mirror.mirrored and same(mirror.pose(axis), axis)
    assert same(mirror.pose(mirror.pose(pose)), pose)
    assert same(Carry.between(axis, pose).pose(axis), pose)


@pytest.mark.parametrize("name", MAPS)
def test_a_carried_map_is_the_same_map_elsewhere(name: str) -> None:
    road, carry = load_map(name), Carry(0.7, 30.0, -20.0, mirrored=True)
    there = carried_road(road, carry)
    for lane in road.lanes.values():
        moved = there.lanes[lane.name]
        assert moved.length_m == pytest.approx(lane.length_m)
        assert same(moved.pose_at(12.3, -1.0), carry.pose(lane.pose_at(12.3, 1.0)))
        assert (moved.left, moved.right) == (lane.right, lane.left)
    assert there.carriageway.area == pytest.approx(road.carriageway.area)
    assert shapely.Polygon(there.ground_m).exterior.is_ccw == shapely.Polygon(road.ground_m).exterior.is_ccw
    for kerb, moved_kerb in zip(road.kerbs_m, there.kerbs_m, strict=True):
        for begin, end, line in ((*kerb[:2], road), (*moved_kerb[-2:], there)):
            out = np.array(end) - begin
            beside = np.array(begin) + out / 2.0 + 0.2 * np.array([out[1], -out[0]]) / np.linalg.norm(out)
            # What is to the right of a kerb is pavement, in a mirror, too.
            assert not shapely.contains_xy(line.carriageway, *beside)


def test_a_mirrored_world_is_seen_the_other_way_round() -> None:
    made, effects = apply(WorldMirrored())
    assert effects.carried.mirrored and same(made.scenario.ego.start, SCENE.scenario.ego.start)
    before, after = (s.scenario.actor("walker").start for s in (SCENE, made))
    assert (after.x_m, after.y_m) == pytest.approx((before.x_m, -before.y_m))
    again, both = apply(WorldMirrored(), made)
    assert again.scenario == carried_scenario(made.scenario, Carry.mirror(SCENE.scenario.ego.start))
    assert not effects.merged(both).carried.mirrored


def test_a_moved_world_lies_elsewhere_and_within_its_bounds() -> None:
    for seed in range(5):
        made, effects = apply(WorldMoved(by_at_most_m=100.0, turned_by_at_most_rad=0.5), seed=seed)
        assert abs(effects.carried.turn_rad) <= 0.5
        there, here = made.scenario.ego.start, SCENE.scenario.ego.start
        assert np.hypot(there.x_m - here.x_m, there.y_m - here.y_m) <= 100.0
        assert same(effects.carried.pose(here), there)
        assert made.road.nearest_lane(there.x_m, there.y_m).name == "lane_1"


def test_a_shifted_scene_stays_on_its_map_and_before_the_lights() -> None:
    made, effects = apply(SceneShiftedAlongRoad(least_m=5.0, most_m=25.0))
    by_m = made.scenario.ego.start.x_m - SCENE.scenario.ego.start.x_m
    assert 5.0 <= by_m <= 25.0 and made.road is SCENE.road
    assert effects.carried == Carry(x_m=by_m)
    assert made.scenario.obstacles[0].pose.x_m == pytest.approx(SCENE.scenario.obstacles[0].pose.x_m + by_m)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (setting(duration_s=22.0), "next light"),
        (setting(crossing(), road="bend", duration_s=2.0), "bends"),
        (setting(replace(crossing(), obeys_signals=True)), "obeys lights"),
    ],
)
def test_a_scene_is_not_shifted_to_another_road(source: Setting, why: str) -> None:
    with pytest.raises(NotApplicable, match=why):
        apply(SceneShiftedAlongRoad(), source)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(["straight", "town", "bend"]))
def test_what_is_added_far_is_in_nobodys_way(seed: int, road: str) -> None:
    source = SCENE
    if road != "straight":
        streets = load_map(road)
        start = next(lane for lane in streets.lanes.values() if lane.on_road).pose_at(10.0)
        ego = replace(SCENE.scenario.ego, start=start)
        source = Setting(Scenario("made", road, ego, duration_s=5.0), streets)
    change = ObjectAddedFar(beside_m=6.0, clear_m=2.0)
    try:
        made, effects = apply(change, source, seed)
    except NotApplicable:
        return
    (added,) = [a for a in made.scenario.actors if a.name in effects.added]
    here = shapely.Point(added.start.x_m, added.start.y_m)
    lanes = [lane for lane in source.road.lanes.values() if lane.on_road]
    off = min(shapely.LineString(lane.middle_m).distance(here) - lane.width_m / 2.0 for lane in lanes)
    assert off >= 5.9 and effects.numbers["beside_m"] == pytest.approx(off, abs=0.1)
    assert all(shapely.Polygon(house.outline_m).distance(here) >= 2.0 for house in source.road.buildings)
    assert added.speed_mps == 0.0 and not added.waypoints
    start = source.scenario.ego.start
    assert here.distance(shapely.Point(start.x_m, start.y_m)) <= 60.0


def test_a_name_that_is_taken_is_not_given_again_and_a_full_world_has_no_room() -> None:
    once, _ = apply(ObjectAddedFar())
    twice, effects = apply(ObjectAddedFar(), once, seed=1)
    assert effects.added == ("added_far_2",) and len({a.name for a in twice.scenario.actors}) == 4
    with pytest.raises(NotApplicable, match=r"^0 places within 10 m.* expected 1"):
        apply(ObjectAddedFar(within_m=10.0))


def test_a_crowd_stands_apart() -> None:
    made, effects = apply(ObjectAddedFar(count=80, within_m=30.0))
    crowd = [a.start for a in made.scenario.actors if a.name in effects.added]
    assert len(crowd) == 80 and problems(made.scenario, made.road) == []
    off = np.array([(p.x_m, p.y_m) for p in crowd])
    apart = np.linalg.norm(off[:, None] - off[None], axis=-1) + 99.0 * np.eye(80)
    assert apart.min() >= 0.5


def test_a_person_comes_nearer_with_all_that_will_happen() -> None:
    source = setting(crossing())
    made, effects = apply(PedestrianNearer(least_m=3.0, most_m=9.0), source)
    before, after = source.scenario.actors[0], made.scenario.actors[0]
    by_m = before.start.x_m - after.start.x_m
    assert 3.0 <= by_m <= 9.0 and effects.numbers["nearer_m"] == pytest.approx(by_m)
    assert after.start.y_m == pytest.approx(before.start.y_m)
    assert before.waypoints[0].x_m - after.waypoints[0].x_m == pytest.approx(by_m)
    assert effects.changed == ("crosser",) and after.trigger == before.trigger


WALKS = (Waypoint(80.0, 5.0, 1.4),)


@pytest.mark.parametrize(
    "source",
    [
        setting(),
        setting(pedestrian(20.0)),
        setting(pedestrian(60.0, waypoints=WALKS, trigger=Trigger(after_s=1.0))),
        setting(pedestrian(60.0, speed_mps=1.0)),
        setting(replace(pedestrian(60.0), kind="cow")),
    ],
)
def test_nobody_comes_nearer_who_cannot_honestly(source: Setting) -> None:
    with pytest.raises(NotApplicable, match="nobody on foot"):
        apply(PedestrianNearer(), source)


def test_another_kind_keeps_size_and_mass_unless_it_is_to_be_natural() -> None:
    matched = apply(ActorKindChanged(whose="adult", to="child"))[0].scenario
    natural = apply(ActorKindChanged(whose="adult", to="child", natural=True))[0].scenario
    (one,), (other,) = ([a for a in s.actors if a.kind == "child"] for s in (matched, natural))
    assert one.size_m is not None and one.size_m[2] == pytest.approx(1.75, abs=0.1) and one.mass_kg == 75.0
    assert other.size_m is None and other.mass_kg is None
    with pytest.raises(NotApplicable, match="no actor is of kind 'dog'"):
        apply(ActorKindChanged(whose="dog", to="child"))


def test_who_becomes_an_animal_is_nobody_of_an_age() -> None:
    walker = replace(pedestrian(60.0), person=Person(age_years=34.0), obeys_signals=True)
    deer, child = (apply(ActorKindChanged(whose="adult", to=kind), setting(walker))[0] for kind in ("deer", "child"))
    checked(deer.scenario, deer.road)
    (one,), (other,) = deer.scenario.actors, child.scenario.actors
    assert one.person is None and one.obeys_signals and other.person == walker.person


def test_fog_rises_where_there_is_less() -> None:
    assert apply(FogInWorld(fog=0.5))[0].scenario.environment == Environment(fog=0.5)
    foggy = setting(environment=Environment(fog=0.7))
    with pytest.raises(NotApplicable, match=r"fog of 0\.7 already"):
        apply(FogInWorld(fog=0.5), foggy)


def test_changes_are_drawn_by_seed_relation_episode_and_draw_alone() -> None:
    def made(seed: int = 1, episode: int = 2, draw: int = 0, name: str = "r") -> dict[str, Any]:
        asked = replace(relation(WorldMoved(), SensorsResampled()), id=name)
        return changed(PlannedEpisode(episode, SCENE, "f"), asked, seed, draw).draws[0]

    assert made() == made()
    others = [made(seed=2), made(episode=3), made(draw=1), made(name="s")]
    assert all(other != made() for other in others)


def test_two_changes_are_applied_one_after_the_other() -> None:
    done = changed(PlannedEpisode(0, SCENE, "f"), relation(WorldMirrored(), WorldMoved(), FogInWorld()), 5)
    assert done.setting.scenario.environment.fog == 0.8 and done.effects.carried.mirrored
    walker = SCENE.scenario.actor("walker").start
    assert same(done.effects.carried.pose(walker), done.setting.scenario.actor("walker").start)
