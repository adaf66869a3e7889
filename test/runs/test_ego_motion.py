# SPDX-License-Identifier: Apache-2.0
"""Motion of the ego: pose algebra, sources and their order, world-fixed objects, and what happens without a source."""

from __future__ import annotations

import pickle
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mt_nodes as mt
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.world_messages import encode_odometry
from mt_nodes.data.ego.ego_motion import (
    EgoMotion,
    TimedPose,
    between,
    motion_between,
    rounded_pose,
)
from mt_nodes.data.ego.ego_track import EgoTrack
from mt_nodes.data.ego.published_motion import PoseHistory
from mt_nodes.data.messages import Bundle, Odometry, Wire
from mt_nodes.data.rotations import quaternion_of_yaw, rotation_by, rotation_matrix, rotation_vector
from mt_nodes.data.transforms import Transform, TransformTree, inverse, pose_matrix
from mt_nodes.relations.mutations.joint.air_drift import DEFAULT_MPS, AirDrift
from mt_nodes.relations.mutations.objects.object_added import ObjectAdded
from mt_nodes.relations.mutations.objects.world_place import WorldPlace
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.world.scene.drive import PERIOD_NS, START_NS, generate_drive
from mt_nodes.world.scene.lidar import hdl_64e
from mt_nodes.world.scene.street import EGO_SPEED_MPS

SIXTH = st.floats(-1.0, 1.0)
VECTORS = st.tuples(SIXTH, SIXTH, SIXTH).map(np.array)
POSES = st.builds(lambda place, turn: _pose(50.0 * place, rotation_by(3.0 / np.sqrt(3.0) * turn)), VECTORS, VECTORS)
AHEAD: dict[str, Any] = {"where": "bearing", "bearing_rad": (-0.6, 0.6), "range_m": (8.0, 30.0)}


def _pose(place: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, place
    return pose


@lru_cache
def drive(count: int = 5) -> tuple[Bundle, ...]:
    return tuple(generate_drive(count, lidar=replace(hdl_64e(), azimuths=1200)))


def bare(bundle: Bundle, track: EgoTrack | None, transforms: TransformTree | None = None) -> Bundle:
    """A bundle without odometry."""
    return replace(bundle, wires=(), track=track, transforms=transforms or bundle.transforms)


def odometry(index: int, x_m: float, topic: str = "/odom", speed_mps: float = 0.0) -> Wire:
    stamp_ns = START_NS + index * PERIOD_NS
    message = Odometry("odom", stamp_ns, x_m, 0.0, 0.0, speed_mps)
    return Wire(topic, "nav_msgs/msg/Odometry", stamp_ns, encode_odometry(message))


def moving(bundle: Bundle, x_m: float) -> TransformTree:
    edge = Transform("odom", "base_link", pose_matrix((x_m, 0, 0), (0, 0, 0, 1)), bundle.stamp_ns, static=False)
    return bundle.transforms.extended([edge])


@given(VECTORS)
def test_rotation_vectors_and_rotations_are_inverse(turn: np.ndarray) -> None:
    assert rotation_vector(rotation_by(1.8 * turn)) == pytest.approx(1.8 * turn, abs=1e-9)


@given(POSES, POSES, st.floats(0.0, 1.0))
def test_a_pose_on_the_way_lies_between_and_motion_leads_there(a: np.ndarray, b: np.ndarray, share: float) -> None:
    first, last = TimedPose(0, a), TimedPose(1_000_000_000, b)
    assert between(first, last, 0) == pytest.approx(a, abs=1e-9)
    assert between(first, last, 1_000_000_000) == pytest.approx(b, abs=1e-6)
    middle = between(first, last, round(1e9 * share))
    assert middle[:3, 3] == pytest.approx((1 - share) * a[:3, 3] + share * b[:3, 3], abs=1e-6)
    velocity, _ = motion_between(first, last, middle)
    assert middle[:3, :3] @ velocity == pytest.approx(b[:3, 3] - a[:3, 3], abs=1e-6)


@given(POSES)
def test_rounded_poses_are_rigid_near_and_stay_as_they_are(pose: np.ndarray) -> None:
    once = rounded_pose(pose)
    assert np.abs(once - pose).max() < 1e-6
    assert once[:3, :3] @ once[:3, :3].T == pytest.approx(np.eye(3), abs=1e-12)
    noisy = pose + 1e-15 * np.arange(16).reshape(4, 4) * (np.arange(4) < 3)[:, None]
    assert np.abs(rounded_pose(noisy) - once).max() <= 2e-7


def test_a_history_tells_no_pose_far_from_what_was_published() -> None:
    history = PoseHistory("x")
    for i in range(3):
        history.add(TimedPose(i * 100_000_000, pose_matrix((i, 0, 0), (0, 0, 0, 1))))
    assert history.moves
    near, far = history.at(250_000_000), history.at(500_000_000)
    assert near is not None and near[0, 3] == pytest.approx(2.5) and far is None
    speed = history.motion(100_000_000, np.eye(4))
    assert speed is not None and speed[0][0] == pytest.approx(10.0)


def test_the_generated_drive_publishes_its_true_motion() -> None:
    for bundle in drive():
        motion = bundle.track and bundle.track.at(bundle)
        assert motion and motion.pose is not None and motion.velocity_mps is not None
        assert motion.origin == "odometry" and motion.source == "odometry /odom"
        assert motion.pose[0, 3] == pytest.approx(EGO_SPEED_MPS * 0.1 * bundle.index)
        assert motion.velocity_mps[0] == pytest.approx(EGO_SPEED_MPS)


def test_transforms_are_trusted_more_than_odometry() -> None:
    track = EgoTrack()
    for bundle in drive(3):
        track.take(odometry(bundle.index, 2.0 * bundle.index, speed_mps=20.0))
        motion = track.at(bare(bundle, track, moving(bundle, 0.8 * bundle.index)))
    assert motion and motion.pose is not None
    assert (motion.origin, motion.source) == ("tf", "/tf odom → base_link") and motion.pose[0, 3] == pytest.approx(1.6)


def test_a_published_pose_that_stands_still_while_the_lidar_drives_is_not_believed() -> None:
    pytest.importorskip("kiss_icp")
    track = EgoTrack()
    for bundle in drive(4):
        track.take(odometry(bundle.index, 5.0))
        motion = track.at(bare(bundle, track))
    assert motion and motion.origin == "kiss_icp" and motion.pose is not None
    assert motion.pose[0, 3] == pytest.approx(3 * 0.1 * EGO_SPEED_MPS, abs=0.03)


def test_clouds_alone_tell_the_way_to_three_centimetres_and_equal_runs_equal_poses() -> None:
    pytest.importorskip("kiss_icp")
    tracks = EgoTrack(), EgoTrack()
    for bundle in drive():
        first, again = (track.at(bare(bundle, track)) for track in tracks)
        assert first and again and first.pose is not None and again.pose is not None
        assert first.pose.tobytes() == again.pose.tobytes()
        assert first.pose[:3, 3] == pytest.approx([0.1 * EGO_SPEED_MPS * bundle.index, 0, 0], abs=0.03)
        assert first.source == "KISS-ICP from /sensing/lidar/points"


def test_clouds_that_do_not_fit_begin_another_world_in_place_of_a_wrong_step() -> None:
    pytest.importorskip("kiss_icp")
    track, (first, second) = EgoTrack(), drive(2)
    cloud = second.cloud()
    points = cloud.points.copy()
    points["x"], points["y"] = -cloud.points["y"], cloud.points["x"]
    turned = second.with_clouds([replace(cloud, points=points)])
    motions = [track.at(bare(bundle, track)) for bundle in (first, turned)]
    assert [motion and motion.since for motion in motions] == [0, 1]


def test_an_imu_alone_gives_a_turn_rate_and_no_position() -> None:
    types, track = codec.typestore().types, EgoTrack()
    vector, none = types["geometry_msgs/msg/Vector3"], np.zeros(9)
    imu = types["sensor_msgs/msg/Imu"](
        header=codec.header_of("base_link", START_NS),
        orientation=types["geometry_msgs/msg/Quaternion"](x=0.0, y=0.0, z=0.0, w=1.0),
        orientation_covariance=none,
        angular_velocity=vector(x=0.0, y=0.0, z=0.25),
        angular_velocity_covariance=none,
        linear_acceleration=vector(x=0.0, y=0.0, z=9.81),
        linear_acceleration_covariance=none,
    )
    track.take(Wire("/imu", "sensor_msgs/msg/Imu", START_NS, codec.encode("sensor_msgs/msg/Imu", imu)))
    motion = track.at(replace(bare(drive()[0], track), clouds=()))
    assert motion and motion.pose is None and motion.origin == "imu" and motion.yaw_rate_radps == 0.25
    assert "no cloud" in track.reason and "provide /tf" in track.reason


def test_nobody_who_asks_for_motion_lets_live_odometry_pile_up() -> None:
    track, at_s = EgoTrack(), 0.0
    tracemalloc.start()
    for number in range(8_000):
        at_s = 0.1 * number
        track.take(Wire("/odometry", "nav_msgs/msg/Odometry", 0, bytes(720), came_s=at_s))
        track.add_transforms([], at_s)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 200_000  # ten seconds of them
    assert len(track._awaited()) == 2 * 101


def test_a_bundle_takes_its_motion_to_another_process_and_leaves_the_estimator() -> None:
    bundle = drive()[0]
    assert bundle.track is not None
    sent = pickle.loads(pickle.dumps(replace(bundle, motion=bundle.track.at(bundle))))
    assert sent.motion.source == "odometry /odom" and not sent.track.knows(bundle)


def test_motion_is_estimated_for_those_who_need_it_only() -> None:
    bundle, track = drive()[0], EgoTrack()
    along = MutationPipeline([ObjectAdded(**AHEAD, frame_id="base_link")], 1, "a")
    along.derive(bare(bundle, track))
    assert not track.knows(bundle)


def test_an_object_has_one_place_in_the_world() -> None:
    pipeline, places = MutationPipeline([ObjectAdded(**AHEAD)], 4, "a"), []
    for bundle in drive():
        derived = pipeline.derive(bundle)
        assert derived.broken is None
        draw = derived.draws[0]
        assert draw["/sensing/lidar/points|ego_motion"] == "odometry /odom"
        to_world = pose_matrix((0.1 * EGO_SPEED_MPS * bundle.index, 0, 0), (0, 0, 0, 1))
        places.append((to_world @ draw["/sensing/lidar/points|pose"])[:3, 3])
        again = pipeline.rebuild(replace(bundle, track=None), derived.draws)
        assert again.first.cloud().raw.tobytes() == derived.followup.first.cloud().raw.tobytes()
    assert np.ptp(places, axis=0)[:2].max() < 1e-6 and np.ptp(places, axis=0)[2] < 0.05


def test_an_object_that_cannot_be_fixed_in_the_world_is_not_applicable_and_says_what_to_provide() -> None:
    pipeline = MutationPipeline([ObjectAdded(**AHEAD)], 3, "a")
    first, second = (bare(bundle, None) for bundle in drive(2))
    pipeline.derive(first)
    with pytest.raises(NotApplicable, match=r"stands in the world since bundle 0.*frame_id: base_link"):
        pipeline.derive(second)


def test_an_object_of_another_world_is_not_carried_on() -> None:
    first, second = (replace(bundle, motion=bundle.track.at(bundle)) for bundle in drive(2))
    standing = WorldPlace.begin(first, np.eye(4), np.zeros(3), "", "base_link")
    lost = replace(second, motion=EgoMotion(np.eye(4), None, None, "kiss_icp", "KISS-ICP from /points", 1))
    with pytest.raises(NotApplicable, match="the ego's way was lost at bundle 1"):
        standing.place(lost, "base_link")
    assert standing.left_behind(lost, "base_link", 30.0) and not standing.left_behind(second, "base_link", 30.0)


def test_an_object_that_the_ego_has_passed_is_followed_by_one_at_another_place() -> None:
    pipeline, places = MutationPipeline([ObjectAdded(where="beside", clearance_m=0.2)], 3, "a"), []
    for bundle in drive(40):
        with suppress(NotApplicable):
            pose = pipeline.derive(bundle).draws[0]["/sensing/lidar/points|pose"]
            places.append(pose[:2, 3] + [0.1 * EGO_SPEED_MPS * bundle.index, 0.0])
    worlds = np.unique(np.round(places, 2), axis=0)
    assert 2 <= len(worlds) <= 4, "one place after the other"
    assert len(places) > 25


def occupied(bundle: Bundle, place: np.ndarray) -> Bundle:
    """A bundle in which something stands at a place (3,) of ``base_link``: a few returns a metre above its ground."""
    cloud = bundle.cloud()
    points = cloud.points.copy()
    for name, value in zip("xyz", place + np.array([0.0, 0.0, 1.0 - 1.73]), strict=True):
        points[name][:5] = value
    return bundle.with_clouds([replace(cloud, points=points).read_as(cloud.reading)])


def test_an_object_whose_place_is_taken_is_gone_and_another_one_stands_elsewhere_from_then_on() -> None:
    pipeline, places = MutationPipeline([ObjectAdded(**AHEAD)], 4, "a"), []
    for bundle in drive():
        source = bundle if bundle.index != 2 else occupied(bundle, places[-1] - [0.2 * EGO_SPEED_MPS, 0.0, 0.0])
        pose = pipeline.derive(source).draws[0]["/sensing/lidar/points|pose"]
        places.append(pose[:3, 3] + [0.1 * EGO_SPEED_MPS * bundle.index, 0.0, 0.0])
    assert np.ptp(places[:2], axis=0)[:2].max() < 1e-6 and np.ptp(places[2:], axis=0)[:2].max() < 1e-6
    assert np.linalg.norm(places[2] - places[1]) > 1.0


def test_an_object_of_the_ego_stays_where_it_is_and_is_not_applicable_while_its_place_is_taken() -> None:
    pipeline = MutationPipeline([ObjectAdded(**AHEAD, frame_id="base_link")], 4, "a")
    first, second, third = drive(3)
    pose = pipeline.derive(first).draws[0]["/sensing/lidar/points|pose"]
    with pytest.raises(NotApplicable, match=r"cannot be where it is, .* away: occupied"):
        pipeline.derive(occupied(second, pose[:3, 3]))
    assert pipeline.derive(third).draws[0]["/sensing/lidar/points|pose"][:2, 3] == pytest.approx(pose[:2, 3])


def test_where_it_stands_does_not_depend_on_which_bundles_are_asked_for() -> None:
    bundles = list(drive(40))
    whole, some = (MutationPipeline([ObjectAdded(where="beside", clearance_m=0.2)], 3, "a") for _ in range(2))
    found: dict[int, Any] = {}
    for bundle in bundles:
        with suppress(NotApplicable):
            found[bundle.index] = whole.derive(bundle).draws[0]["/sensing/lidar/points|pose"]
    for bundle in bundles:  # as a resumed run does, which derives what is not judged yet
        some.meet(bundle)
        if bundle.index in found and (bundle.index % 7 == 6 or not some.begun(bundle)):
            assert np.array_equal(some.derive(bundle).draws[0]["/sensing/lidar/points|pose"], found[bundle.index])


@pytest.mark.parametrize(("moves", "speed", "axis"), [("along", -4.0, 0), ("across", 2.0, 1)])
def test_an_object_moves_through_the_world_and_proves_where_rays_met_it(moves: str, speed: float, axis: int) -> None:
    mutation = ObjectAdded(**AHEAD, kind="cyclist", moves=moves, speed_mps=speed, clearance_m=0.2, least_visible=0.3)
    pipeline, places = MutationPipeline([mutation], 4, "a"), []
    for bundle in drive(3):
        derived = pipeline.derive(bundle)
        assert derived.broken is None
        pose = derived.draws[0]["/sensing/lidar/points|pose"]
        places.append(pose[:3, 3] + [0.1 * EGO_SPEED_MPS * bundle.index, 0, 0])
        velocity = derived.draws[0]["/sensing/lidar/points|velocity_mps"]
        assert np.abs(velocity[axis]) == pytest.approx(abs(speed)) and velocity[1 - axis] == pytest.approx(0.0)
    step = np.diff(places, axis=0)
    assert step[:, axis] == pytest.approx(0.1 * velocity[axis], abs=1e-6)
    assert step[:, 1 - axis] == pytest.approx(0.0, abs=1e-6)


def test_returns_of_a_moving_object_that_are_not_where_it_was_at_their_time_are_caught() -> None:
    mutation = ObjectAdded(**AHEAD, kind="car", moves="along", speed_mps=-15.0, clearance_m=0.2, least_visible=0.3)
    bundle = drive()[0]
    pipeline = MutationPipeline([mutation], 4, "a")
    derived = pipeline.derive(bundle)
    name = "/sensing/lidar/points|velocity_mps"
    still = {**derived.draws[0], name: derived.draws[0][name] * -1.0}
    assert mutation.guarantee(pipeline.meet(bundle), derived.followup, still)


def test_air_is_fixed_in_the_world_but_for_wind_and_fall() -> None:
    bundle = drive()[2]
    yaw = 0.3
    pose = pose_matrix((10.0, 4.0, 0.0), quaternion_of_yaw(yaw))
    motion = EgoMotion(pose, np.array([8.0, 0.0, 0.0]), 0.1, "tf", "x", 0, (11.0, 0.0, 0.0))
    drift = AirDrift.of(replace(bundle, motion=motion), bundle.cloud(), None, np.zeros(3))
    place = np.array([12.0, -3.0, 0.0])
    seen = (inverse(pose) @ [*place, 1.0])[:3]
    turned = rotation_matrix(quaternion_of_yaw(drift.turned_rad)) @ seen
    assert (turned - drift.moved_m)[:2] == pytest.approx(place[:2])
    assert drift.along_m == pytest.approx([-11.0, 0.0, 0.0])


def test_the_speed_that_is_assumed_where_motion_is_unknown_is_said() -> None:
    bundle = bare(drive()[0], None)
    drift = AirDrift.of(bundle, bundle.cloud(), None, np.zeros(3))
    assert drift.draw()["ego_motion"] == "assumed: the ego motion is unknown"
    assert drift.moved_m[0] == pytest.approx(-DEFAULT_MPS * bundle.cloud().stamp_ns * 1e-9)
    given_speed = AirDrift.of(bundle, bundle.cloud(), 10.0, np.zeros(3))
    assert given_speed.draw() == {} and given_speed.moved_m == pytest.approx(drift.moved_m)


def test_frames_that_are_listed_first_have_one_world(tmp_path: Path) -> None:
    pytest.importorskip("kiss_icp")
    bag = tmp_path / "bag"
    write_bundles(bag, (replace(bundle, wires=()) for bundle in drive(5)))
    bundles = [frame.bundle for frame in mt.frames(bag, sensors="lidar", limit=3)]
    motions = [bundle.track.at(bundle) for bundle in bundles]
    assert [motion.since for motion in motions] == [0, 0, 0]
    assert motions[2].pose[0, 3] == pytest.approx(0.2 * EGO_SPEED_MPS, abs=0.1)
