# SPDX-License-Identifier: Apache-2.0
"""What the world tells beside its sensors, and what its LiDAR sees."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.base.errors import UsageError
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Control
from mt_nodes.data.stack_topics import read_inputs
from mt_nodes.data.transforms import move
from mt_nodes.runs.loop.ego_sensors import Sensors
from mt_nodes.runs.loop.lidar_sweep import Sweep
from mt_nodes.runs.loop.rig import Rig
from mt_nodes.stacks.stack import Stack
from mt_nodes.world.drive.maps import MAPS, load_map
from mt_nodes.world.drive.route import Route, lane_of
from mt_nodes.world.drive.scenario import Actor, Ego, Environment, Obstacle, Pose, Scenario
from mt_nodes.world.drive.trace import EgoState, WorldState
from mt_nodes.world.drive.world import World
from mt_nodes.world.scene.drive import PERIOD_NS, START_NS
from mt_nodes.world.scene.lidar import LidarModel

LIDAR = LidarModel(tuple(np.radians(np.linspace(2.0, -24.0, 24)).tolist()), 720, 0.9, 120.0, 0.02, 0.05)
EGO = EgoState(-40.0, -1.75, 0.0, 8.0, steering_rad=0.1)


def scenario(*actors: Actor, **more: object) -> Scenario:
    return Scenario("s", "junction", Ego(Pose(EGO.x_m, EGO.y_m), 8.0), actors, **more)  # type: ignore[arg-type]


def state_of(drive: Scenario, ego: EgoState = EGO, signals: str = "red") -> WorldState:
    rows = [(a.start.x_m, a.start.y_m, a.start.yaw_rad, a.speed_mps) for a in drive.actors]
    actors = np.array(rows, dtype=np.float64).reshape(-1, 4)
    colours = {signal.name: signals for signal in load_map(drive.road).signals}
    return WorldState(0.0, ego, actors, np.zeros(len(actors)), colours)


def observed(drive: Scenario, rig: Rig, ego: EgoState = EGO, seed: int = 1, index: int = 0) -> Bundle:
    return Sensors(drive, load_map(drive.road), rig, seed).observe(state_of(drive, ego), 0, index)


def told(bundle: Bundle, role: str) -> object:
    return next(message.data for message in bundle.world_messages if message.role == role)


CROWD = (
    Actor("walker", "adult", Pose(-20.0, 0.5, np.pi / 2), 1.5),
    Actor("car", "car", Pose(-10.0, 1.75, np.pi), 6.0),
    Actor("child", "child", Pose(-25.0, -4.0), size_m=(0.4, 0.5, 1.0)),
)


def test_objects_are_told_as_the_ego_sees_them() -> None:
    cone = Obstacle("box", "box", Pose(-30.0, -1.75, 0.3), (1.0, 2.0, 0.5))
    objects = told(observed(scenario(*CROWD, obstacles=(cone,)), Rig(), replace(EGO, yaw_rad=np.pi / 2)), "objects")
    rows = {name: i for i, name in enumerate(objects.track_id)}
    assert set(rows) == {"walker", "car", "child", "box"}
    # The ego at (-40, -1.75) looks north: what is east of it is to its right.
    i = rows["walker"]
    assert objects.center_m[i] == pytest.approx((2.25, -20.0, objects.size_m[i, 2] / 2))
    assert objects.velocity_mps[i] == pytest.approx((1.5, 0.0, 0.0), abs=1e-9)
    assert objects.yaw_rad[i] == pytest.approx(0.0)
    assert objects.velocity_mps[rows["car"]] == pytest.approx((0.0, 6.0, 0.0), abs=1e-9)
    assert objects.yaw_rad[rows["car"]] == pytest.approx(np.pi / 2)
    assert objects.label[rows["car"]] == "car"
    assert objects.label[rows["box"]] == "unknown"
    assert objects.size_m[rows["child"]] == pytest.approx((0.4, 0.5, 1.0))
    assert objects.size_m[rows["box"]] == pytest.approx((1.0, 2.0, 0.5))
    assert objects.frame_id == "base_link"


def test_who_is_on_the_pavement_stands_there_and_who_is_on_the_road_there() -> None:
    road, who = load_map("straight"), (0.0, -6.0)
    drive = Scenario(
        "s",
        "straight",
        Ego(road.lanes["lane_1"].pose_at(40.0)),
        tuple(Actor(f"at {y}", "adult", Pose(48.0, y)) for y in who),
    )
    fine = replace(LIDAR, elevations_rad=tuple(np.radians(np.linspace(2.0, -4.0, 40)).tolist()))
    bundle = observed(drive, Rig(fine), EgoState(40.0, 0.0, 0.0, 0.0))
    objects, points = told(bundle, "objects"), in_map(bundle)
    for y, height_m in zip(who, (0.0, 0.12), strict=True):
        row = list(objects.track_id).index(f"at {y}")
        assert objects.center_m[row, 2] == pytest.approx(height_m + objects.size_m[row, 2] / 2.0)
        own = points[np.hypot(points[:, 0] - 48.0, points[:, 1] - y) < 0.3]
        assert len(own) > 15
        assert own[:, 2].max() == pytest.approx(height_m + 1.75, abs=0.05)


def test_the_order_of_objects_comes_from_the_seed_and_nothing_else() -> None:
    drive = scenario(*(Actor(f"a{i}", "adult", Pose(-20.0 + 2 * i, 4.0)) for i in range(12)))
    orders = [tuple(told(observed(drive, Rig(), seed=seed), "objects").track_id) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2])


def test_odometry_is_the_bicycle_models() -> None:
    odometry = told(observed(scenario(), Rig()), "odometry")
    assert (odometry.x_m, odometry.y_m, odometry.yaw_rad, odometry.speed_mps) == (-40.0, -1.75, 0.0, 8.0)
    assert odometry.yaw_rate_radps == pytest.approx(8.0 * np.tan(0.1) / 2.8)
    assert (odometry.frame_id, odometry.child_frame_id) == ("map", "base_link")


def test_signals_are_told_with_their_stop_lines() -> None:
    road = load_map("junction")
    signals = told(observed(scenario(), Rig()), "signals")
    assert set(signals.name) == {signal.name for signal in road.signals if signal.lane}
    assert set(signals.colour) == {"red"}
    for name, stop in zip(signals.name, signals.stop, strict=True):
        signal = next(s for s in road.signals if s.name == name)
        pose = road.lanes[signal.lane].pose_at(signal.stop_m)
        assert stop == pytest.approx((pose.x_m, pose.y_m, pose.yaw_rad))


@pytest.mark.parametrize("name", [*MAPS, "bend_mirrored"])
def test_lanes_along_the_way_are_told_with_their_directions(name: str) -> None:
    """Each lies where the map has it, as far beside the way as it is wide, and is driven in the order of its points."""
    road = load_map(name)
    begin = next(lane for lane in road.lanes.values() if lane.on_road)
    here = begin.pose_at(30.0)
    drive = Scenario("s", name, Ego(begin.pose_at(20.0)))
    seen = observed(drive, Rig(), EgoState(here.x_m, here.y_m, here.yaw_rad, 5.0))
    lanes, route = told(seen, "lanes"), told(seen, "route").pose
    strips = list(lanes.strips)
    first = {strip.direction: strip for strip in reversed(strips)}
    assert first["own"].name == begin.name and lanes.frame_id == "map"
    assert set(first) == {"own", "along" if name in ("straight", "san_francisco", "bridge") else "oncoming"}
    for strip in strips:
        lane = road.lanes[strip.name]
        assert lane.on_road and strip.width_m == lane.width_m
        places = np.array([lane.station_of(x, y) for x, y in strip.middle_m])
        assert np.abs(places[:, 1]).max() < 0.05 and np.diff(places[:, 0]).min() > 0.5
        nearest = np.argmin(np.linalg.norm(strip.middle_m[:, None] - route[:, :2], axis=2), axis=1)
        steps = np.diff(nearest)
        assert (steps <= 0).all() if strip.direction == "oncoming" else (steps >= 0).all()
    ahead = np.linalg.norm(lanes.point_m - (here.x_m, here.y_m), axis=1)
    assert ahead.max() > 60.0


def test_lanes_of_a_mirrored_map_are_the_mirrored_lanes() -> None:
    found = {}
    for name in ("bend", "bend_mirrored"):
        lane = load_map(name).lanes["lane_1"]
        here = lane.pose_at(100.0)
        drive = Scenario("s", name, Ego(lane.pose_at(20.0)))
        found[name] = told(observed(drive, Rig(), EgoState(here.x_m, here.y_m, here.yaw_rad, 5.0)), "lanes")
    np.testing.assert_array_equal(found["bend"].point_m * [1.0, -1.0], found["bend_mirrored"].point_m)
    assert found["bend"].direction.tolist() == found["bend_mirrored"].direction.tolist()


def test_messages_stand_on_the_rigs_topics_and_roles_without_topic_are_not_told() -> None:
    bundle = observed(scenario(), Rig(topics={"odometry": "/odom", "route": "/way"}), index=3)
    assert [(message.role, message.topic) for message in bundle.world_messages] == [
        ("odometry", "/odom"),
        ("route", "/way"),
    ]
    assert {message.stamp_ns for message in bundle.world_messages} == {bundle.stamp_ns} == {START_NS + 3 * PERIOD_NS}


@pytest.mark.parametrize("name", MAPS)
def test_the_route_is_the_middle_of_lanes_and_told_from_the_ego_on(name: str) -> None:
    road = load_map(name)
    lane = next(lane for lane in road.lanes.values() if lane.on_road)
    drive = Scenario("s", name, Ego(lane.pose_at(20.0)))
    here = lane.pose_at(30.0)
    route = told(observed(drive, Rig(), EgoState(here.x_m, here.y_m, here.yaw_rad, 5.0)), "route")
    middle = shapely.union_all([shapely.LineString(o.line_m) for o in road.lanes.values() if o.on_road])
    assert max(shapely.distance(middle, shapely.points(route.pose[:, :2]))) < 0.05
    steps = np.diff(route.pose[:, :2], axis=0)
    assert np.linalg.norm(steps, axis=1) == pytest.approx(1.0, abs=0.02)
    ahead = steps @ (np.cos(here.yaw_rad), np.sin(here.yaw_rad))
    assert ahead[0] > 0.9
    begin = (route.pose[0, :2] - (here.x_m, here.y_m)) @ (np.cos(here.yaw_rad), np.sin(here.yaw_rad))
    assert -6.5 < begin < -4.0
    assert set(route.speed_mps) <= {lane.limit_mps for lane in road.lanes.values()}


def test_a_route_leads_to_its_target_and_ends_there() -> None:
    road = load_map("junction")
    start, target = road.lanes["west_middle"].pose_at(10.0), road.lanes["middle_north"].pose_at(30.0)
    route = Route(road, start, target)
    assert route.lanes == ("west_middle", "west_middle_north", "middle_north")
    assert route.pose[-1, :2] == pytest.approx((target.x_m, target.y_m), abs=1.1)
    assert len(route.ahead(target)[0]) == 6  # what lies behind it


def test_a_route_changes_lanes_where_the_target_lies_beside() -> None:
    road = load_map("straight")
    route = Route(road, road.lanes["lane_1"].pose_at(5.0), road.lanes["lane_2"].pose_at(300.0))
    assert route.lanes == ("lane_1", "lane_2")
    assert np.abs(np.diff(route.pose[:, 1])).max() < 0.2
    assert route.pose[0, 1] == pytest.approx(0.0)
    assert route.pose[-1, :2] == pytest.approx((300.0, 3.5), abs=1.1)


def test_a_route_without_target_goes_round_the_town_again_and_again() -> None:
    road = load_map("town")
    first = next(lane for lane in road.lanes.values() if lane.on_road)
    route = Route(road, first.pose_at(5.0))
    assert route.lanes.count(first.name) >= 2
    assert np.linalg.norm(np.diff(route.pose[:, :2], axis=0), axis=1).max() < 1.01


def test_a_bend_limits_the_speed_in_the_bend_alone() -> None:
    road = load_map("town")
    first = next(lane for lane in road.lanes.values() if lane.on_road and lane.length_m > 20.0)
    route = Route(road, first.pose_at(5.0))
    lanes = [road.lanes[name] for name in route.lanes]
    ends_m = np.cumsum([lane.length_m for lane in lanes])
    lane_at = np.searchsorted(ends_m, np.arange(len(route.pose)), side="right")
    wanted = np.array([lane.limit_mps for lane in lanes])[np.minimum(lane_at, len(lanes) - 1)]
    assert len(set(wanted)) > 1
    # A point each metre: where one lane ends and the next begins one of them may count with the other.
    assert np.count_nonzero(route.limit_mps != wanted) <= 2 * len(lanes)


def test_of_two_lanes_at_a_place_the_one_that_leads_there_is_taken() -> None:
    road = load_map("two_way")
    assert lane_of(road, Pose(100.0, 1.0, 0.0)).name == "lane_1"
    assert lane_of(road, Pose(100.0, 1.0, np.pi)).name == "lane_2"


def test_frames_lead_from_the_map_to_the_sensors() -> None:
    bundle = observed(scenario(), Rig(LIDAR), replace(EGO, yaw_rad=0.5))
    assert bundle.transforms.lookup("map", "base_link")[:2, 3] == pytest.approx((-40.0, -1.75))
    mounted = bundle.transforms.lookup("base_link", "velodyne")[:3, 3]
    assert mounted == pytest.approx((1.2, 0.0, 1.73))
    moving = {transform.child: transform.static for transform in bundle.transforms.transforms}
    assert moving == {"base_link": False, "velodyne": True}


def in_map(bundle: Bundle) -> np.ndarray:
    cloud = bundle.cloud()
    return move(bundle.transforms.lookup("map", cloud.frame_id), cloud.xyz)


@pytest.mark.parametrize("yaw_rad", [0.0, 2.0])
def test_the_cloud_lies_on_road_pavement_and_houses(yaw_rad: float) -> None:
    road = load_map("junction")
    bundle = observed(scenario(), Rig(LIDAR), replace(EGO, yaw_rad=yaw_rad))
    x, y, z = in_map(bundle).T
    low = np.abs(z) < 0.06
    on_road = shapely.contains_xy(road.carriageway.buffer(-0.2), x, y)
    assert low[on_road & (z < 0.5)].mean() > 0.99
    assert on_road.sum() > 1000
    kerbed = shapely.contains_xy(road.carriageway.buffer(3.0).difference(road.carriageway.buffer(0.2)), x, y) & (
        z < 1.0
    )
    assert np.median(z[kerbed]) == pytest.approx(0.12, abs=0.02)
    houses = shapely.union_all([shapely.Polygon(house.outline_m) for house in road.buildings])
    high = (z > 1.0) & (z < 2.0)
    assert high.sum() > 500
    off = shapely.distance(houses.boundary, shapely.points(x[high], y[high]))
    assert np.quantile(off, 0.95) < 0.1


def test_who_stands_there_is_seen_there_and_hides_what_is_behind() -> None:
    alone, with_car = (observed(scenario(*who), Rig(LIDAR)) for who in ((), (Actor("c", "car", Pose(-25.0, -1.75)),)))
    (x, y, z), before = in_map(with_car).T, in_map(alone)
    inside = (np.abs(x + 25.0) < 2.4) & (np.abs(y + 1.75) < 1.0) & (z > 0.2)
    assert inside.sum() > 50
    assert z[inside].max() == pytest.approx(1.5, abs=0.15)
    assert x[inside].min() == pytest.approx(-27.2, abs=0.1)  # its rear, half of 4.4 m behind its middle
    assert y[inside].min() == pytest.approx(-1.75 - 0.9, abs=0.1)
    lost = (before[:, 0] > -22.0) & (before[:, 0] < -16.0) & (np.abs(before[:, 1] + 1.75) < 0.5)
    kept = (x > -22.0) & (x < -16.0) & (np.abs(y + 1.75) < 0.5)
    assert lost.sum() >= 5
    assert kept.sum() == 0


def test_only_rays_towards_who_moves_differ_from_the_empty_street() -> None:
    """Noise is of the ray, not of what has been met before."""
    empty, peopled = (observed(scenario(*who), Rig(LIDAR)).cloud() for who in ((), CROWD))
    fields = ["x", "y", "z", "intensity", "ring", "time"]
    rows = [set(map(tuple, cloud.points[fields].tolist())) for cloud in (empty, peopled)]
    changed = np.array(sorted(rows[0] - rows[1]))
    assert len(changed) > 20
    bearing = np.degrees(np.arctan2(changed[:, 1], changed[:, 0]))
    assert bearing.min() > -35.0
    assert bearing.max() < 20.0


def test_the_same_arguments_give_the_same_bytes_and_another_seed_other_noise() -> None:
    drive = scenario(*CROWD, environment=Environment(fog=0.5, rain=0.3))
    one, same, other = (observed(drive, Rig(LIDAR), seed=seed).cloud().points for seed in (1, 1, 2))
    assert one.tobytes() == same.tobytes() != other.tobytes()
    sensors = Sensors(drive, load_map("junction"), Rig(LIDAR), 1)
    later = [sensors.observe(state_of(drive), 0, index).cloud().points for index in (1, 0)]
    assert later[1].tobytes() == one.tobytes() != later[0].tobytes()
    clear = [observed(scenario(), Rig(LIDAR), index=index).cloud().points for index in (0, 1)]
    assert clear[0].tobytes() != clear[1].tobytes()


poses = st.tuples(st.floats(-60.0, -20.0), st.floats(-12.0, 8.0), st.floats(-3.0, 3.0))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(("adult", "car", "bus", "dog")), poses), min_size=1, max_size=4))
def test_looking_for_who_moves_in_some_columns_misses_nothing(crowd: list[tuple[str, tuple[float, ...]]]) -> None:
    drive = scenario(*(Actor(f"a{i}", kind, Pose(*pose)) for i, (kind, pose) in enumerate(crowd)))
    sensors = shared_sensors()
    bundle = sensors_of(sensors, drive).observe(state_of(drive), 0, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sweep, "_towards_moving", lambda sweep: np.arange(len(sweep.lidar.directions)))
        whole = sensors_of(sensors, drive).observe(state_of(drive), 0, 0)
    assert bundle.cloud().points.tobytes() == whole.cloud().points.tobytes()


@lru_cache
def shared_sensors() -> Sensors:
    return Sensors(scenario(), load_map("junction"), Rig(LIDAR), 1)


def sensors_of(sensors: Sensors, drive: Scenario) -> Sensors:
    """The same scenery with other actors: that is made once."""
    sensors._scenario = drive
    sensors._teller = Sensors(drive, load_map("junction"), Rig(), 1)._teller
    return sensors


def test_paint_on_the_road_is_brighter_than_asphalt() -> None:
    bundle = observed(scenario(), Rig(replace(LIDAR, azimuths=1800)))
    (x, y, z), shine = in_map(bundle).T, bundle.cloud().points["intensity"]
    near = (np.abs(x + 40.0) < 12.0) & (np.abs(z) < 0.06)
    line, bare = near & (np.abs(y + 3.5) < 0.03), near & (np.abs(y + 2.7) < 0.3)
    assert line.sum() > 10
    assert np.median(shine[line]) > 2.0 * np.median(shine[bare])


def returns(environment: Environment) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    bundle = observed(scenario(environment=environment), Rig(LIDAR))
    (x, y, z), shine = in_map(bundle).T, bundle.cloud().points["intensity"]
    return np.hypot(x + 38.8, y + 1.75), z, shine


def test_fog_takes_far_returns_the_thicker_the_more() -> None:
    far = [int((returns(Environment(fog=fog))[0] > 20.0).sum()) for fog in (0.0, 0.3, 0.6, 0.9)]
    assert far[0] > far[1] > far[2] > far[3]
    assert far[3] < 0.2 * far[0]


def test_a_wet_road_gives_back_less_and_houses_as_much() -> None:
    (range_m, z, dry), (wet_range_m, wet_z, wet) = (returns(Environment(wetness=w)) for w in (0.0, 1.0))
    near = [np.median(s[(np.abs(h) < 0.06) & (r < 10.0)]) for r, h, s in ((range_m, z, dry), (wet_range_m, wet_z, wet))]
    assert near[1] < 0.95 * near[0]
    walls = [np.median(s[h > 1.0]) for h, s in ((z, dry), (wet_z, wet))]
    assert walls[0] == walls[1]


@pytest.mark.parametrize("kind", ["rain", "snow"])
def test_what_falls_takes_returns(kind: str) -> None:
    (clear_m, _, clear), (range_m, z, thick) = (returns(Environment(**{kind: much})) for much in (0.0, 1.0))
    # Beams into the sky get echoes of flakes, so only what is farther away than those counts.
    assert (range_m > 12.0).sum() < (clear_m > 12.0).sum()
    assert thick.mean() < 0.99 * clear.mean()
    in_the_air = (range_m < 3.0) & (z > 0.3)  # there is nothing else so near
    assert in_the_air.sum() > 5


def test_a_rig_follows_what_a_stack_takes() -> None:
    stack = Stack(name="s", inputs=read_inputs({"lidar": "/p", "odometry": "/o"}, "here"))
    rig = Rig.for_stack(stack)
    assert rig.topics == {"lidar": "/p", "odometry": "/o"}
    assert rig.lidar is not None
    assert rig.lidar.azimuths == 1800
    assert rig.camera is None
    assert Rig.for_stack(stack, lidar=LIDAR).lidar is LIDAR


def test_a_stack_of_two_lidars_is_refused_by_name() -> None:
    stack = Stack(name="twin", inputs={"lidar": ("/p", "/q")})
    with pytest.raises(UsageError, match=r"twin: got 2 topics of lidar \(/p, /q\), expected one"):
        Rig.for_stack(stack)


def test_a_world_is_observed_on_the_way() -> None:
    """World and sensors agree about who is where after some steps."""
    road = load_map("straight")
    walker = Actor("w", "adult", Pose(40.0, -6.0, np.pi / 2), 1.4)
    drive = Scenario("s", "straight", Ego(road.lanes["lane_1"].pose_at(20.0), 8.0), (walker,))
    world = World(drive)
    for index in range(10):
        world.step(Control(None, steering_rad=0.0, speed_mps=8.0), 0.1 * (index + 1))
    bundle = Sensors(drive, world.road, Rig(LIDAR), 1).observe(world.state, 0, 10)
    objects = told(bundle, "objects")
    x, y = world.state.actors[0, :2]
    assert objects.center_m[0, :2] == pytest.approx((x - world.state.ego.x_m, y - world.state.ego.y_m), abs=1e-6)
    assert world.state.actors[0, 1] > -6.0 + 1.0
    points = in_map(bundle)
    assert (np.hypot(points[:, 0] - x, points[:, 1] - y) < 0.5).sum() > 5
