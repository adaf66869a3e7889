# SPDX-License-Identifier: Apache-2.0
"""Calibration and clocks that are wrong while the data are right: what a stack is given, and what is proved of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_bundles import made_bundle, made_cloud
from made_images import street_in
from scipy.spatial.transform import Rotation

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import Bundle, Odometry, Wire, WorldMessage
from mt_nodes.data.transforms import Transform, TransformTree, move, pose_matrix
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.engine.message_digests import sha256_of, sha256_of_followup
from mt_nodes.engine.send_order import split_followup
from mt_nodes.relations.mutations.base import Followup, Mutation
from mt_nodes.relations.mutations.lidar.extrinsic_shifted import SensorRemounted
from mt_nodes.relations.mutations.lidar.placement import empty_returns
from mt_nodes.relations.mutations.stream.calibration_drift import CalibrationDrifted, IntrinsicsDrifted
from mt_nodes.relations.mutations.stream.navigation_drift import GnssDrifted, ImuDrifted, OdometryDrifted
from mt_nodes.relations.mutations.stream.stamp_mutations import ClockDrifted
from mt_nodes.relations.relation import load_relation, refuse_baseline
from mt_nodes.stacks.stack import load_stack

CLOUD = made_bundle(made_cloud("ouster", holes=0.2))
TREE = TransformTree(
    [
        Transform("base_link", "velodyne", pose_matrix([1.0, -0.2, 1.73], Rotation.from_euler("z", 0.4).as_quat())),
        Transform("velodyne", "camera", pose_matrix([0.1, 0.0, -0.2], [0, 0, 0, 1])),
    ]
)
BUNDLE = replace(CLOUD, transforms=TREE)
FEW = settings(max_examples=25, deadline=None)


def at(bundle: Bundle, after_s: float, index: int = 1) -> Bundle:
    """The same instant a while later."""
    by_ns = round(after_s * 1e9)
    clouds = tuple(replace(c, stamp_ns=c.stamp_ns + by_ns) for c in bundle.clouds)
    images = tuple(replace(i, stamp_ns=i.stamp_ns + by_ns) for i in bundle.images)
    infos = tuple(replace(i, stamp_ns=i.stamp_ns + by_ns) for i in bundle.camera_infos)
    later = replace(bundle, index=index, stamp_ns=bundle.stamp_ns + by_ns)
    return replace(later, clouds=clouds, images=images, camera_infos=infos)


def derive(mutation: Mutation, bundle: Bundle, first: Bundle | None = None) -> tuple[Followup, dict[str, Any]]:
    state = mutation.begin(np.random.default_rng(3), first or bundle)
    draw = mutation.draw(np.random.default_rng(bundle.index), bundle, state)
    followup = mutation.apply(bundle, draw)
    assert mutation.guarantee(bundle, followup, draw) is None
    return followup, draw


def given_pose(followup: Followup, parent: str = "base_link", child: str = "velodyne") -> np.ndarray:
    return followup.first.transforms.given.lookup(parent, child)


# The transforms that a stack is given


@FEW
@given(st.lists(st.floats(-20.0, 20.0), min_size=3, max_size=3), st.lists(st.floats(-1.5, 1.5), min_size=3, max_size=3))
def test_the_pose_that_is_given_differs_by_the_error_and_the_true_one_stays(
    turns: list[float], moves: list[float]
) -> None:
    if not any(turns + moves):
        return
    names = ("roll_deg", "pitch_deg", "yaw_deg", "x_m", "y_m", "z_m")
    followup, _ = derive(CalibrationDrifted(**dict(zip(names, turns + moves, strict=True))), BUNDLE)
    error = np.linalg.inv(TREE.lookup("base_link", "velodyne")) @ given_pose(followup)
    np.testing.assert_allclose(error[:3, 3], moves, atol=1e-9)
    expected = Rotation.from_euler("ZYX", turns[::-1], degrees=True).as_matrix()
    np.testing.assert_allclose(error[:3, :3], expected, atol=1e-9)
    assert (
        followup.first.transforms.lookup("base_link", "velodyne").tolist()
        == TREE.lookup("base_link", "velodyne").tolist()
    )
    assert followup.first.clouds == BUNDLE.clouds


def test_what_is_mounted_on_the_sensor_moves_along_and_another_sensor_can_be_named() -> None:
    followup, _ = derive(CalibrationDrifted(yaw_deg=10.0), BUNDLE)
    assert not np.allclose(given_pose(followup, "base_link", "camera"), TREE.lookup("base_link", "camera"))
    followup, _ = derive(CalibrationDrifted(frame="camera", yaw_deg=0.0, z_m=0.1), BUNDLE)
    np.testing.assert_array_equal(given_pose(followup), TREE.lookup("base_link", "velodyne"))
    assert given_pose(followup, "velodyne", "camera")[2, 3] == pytest.approx(-0.1)


def test_two_errors_add_up_and_later_mutations_know_the_truth() -> None:
    once, _ = derive(CalibrationDrifted(yaw_deg=2.0), BUNDLE)
    twice, _ = derive(CalibrationDrifted(yaw_deg=3.0), once.first)
    error = np.linalg.inv(TREE.lookup("base_link", "velodyne")) @ given_pose(twice)
    assert Rotation.from_matrix(error[:3, :3]).magnitude() == pytest.approx(np.radians(5.0))
    assert twice.first.transforms.lookup("base_link", "velodyne")[0, 3] == 1.0


def test_a_ramp_grows_and_stays_and_begins_with_nothing() -> None:
    mutation = CalibrationDrifted(yaw_deg=1.0, over="ramp", duration_s=10.0)
    with pytest.raises(NotApplicable, match="drift begins"):
        derive(mutation, BUNDLE)
    errors = [derive(mutation, at(BUNDLE, s), BUNDLE)[1]["error"][2] for s in (1.0, 5.0, 10.0, 60.0)]
    assert errors == pytest.approx([0.1, 0.5, 1.0, 1.0])
    assert not mutation.random


def test_a_walk_has_the_spread_it_says_and_depends_on_time_alone() -> None:
    mutation = CalibrationDrifted(yaw_deg=1.0, x_m=0.1, over="walk", duration_s=10.0)
    assert mutation.random
    states = [mutation.begin(np.random.default_rng(seed), BUNDLE) for seed in range(400)]
    later = at(BUNDLE, 10.0)
    errors = np.array([mutation.draw(np.random.default_rng(0), later, state)["error"] for state in states])
    assert errors[:, 2].std() == pytest.approx(1.0, rel=0.12)
    assert errors[:, 3].std() == pytest.approx(0.1, rel=0.12)
    assert abs(np.corrcoef(errors[:, 2], errors[:, 3])[0, 1]) < 0.15
    assert not errors[:, [0, 1, 4, 5]].any()
    path = [mutation.shares(at(BUNDLE, 0.1 * k), states[0], 6)[2] for k in range(101)]
    assert np.abs(np.diff(path)).max() < 0.6, "it walks and does not jump"


def test_the_digest_covers_transforms_and_equal_followups_keep_theirs() -> None:
    followup, _ = derive(CalibrationDrifted(yaw_deg=0.3), BUNDLE)
    other, _ = derive(CalibrationDrifted(yaw_deg=0.4), BUNDLE)
    digests = {sha256_of(b) for b in (BUNDLE, followup.first, other.first)}
    assert len(digests) == 3
    assert sha256_of_followup(followup) == sha256_of_followup(derive(CalibrationDrifted(yaw_deg=0.3), BUNDLE)[0])
    assert sha256_of(BUNDLE) == sha256_of(replace(BUNDLE, transforms=TransformTree()))


TAMPERED: dict[str, Callable[[Bundle], Bundle]] = {
    "another angle": lambda b: replace(
        b, transforms=b.transforms.given_as(b.transforms.given.extended([_turned(b.transforms.given, 0.001)]))
    ),
    "no error": lambda b: replace(b, transforms=TREE),
    "the truth, too": lambda b: replace(b, transforms=b.transforms.given),
    "another sensor": lambda b: replace(
        b, transforms=TREE.given_as(TREE.extended([Transform("velodyne", "camera", np.eye(4))]))
    ),
    "a cloud": lambda b: b.with_clouds([made_cloud("ouster", seed=9)]),
}


def _turned(tree: TransformTree, by_rad: float) -> Transform:
    old = next(t for t in tree.transforms if t.child == "velodyne")
    return replace(old, matrix=old.matrix @ pose_matrix([0, 0, 0], Rotation.from_euler("z", by_rad).as_quat()))


@pytest.mark.parametrize("how", TAMPERED)
def test_a_broken_calibration_is_seen(how: str) -> None:
    mutation = CalibrationDrifted(yaw_deg=0.3)
    followup, draw = derive(mutation, BUNDLE)
    tampered = TAMPERED[how](followup.first)
    assert mutation.guarantee(BUNDLE, Followup(((0, tampered),), followup.effects), draw)
    assert mutation.guarantee(BUNDLE, Followup(((0, followup.first),) * 2), draw)


def test_a_sensor_without_a_mount_has_no_calibration() -> None:
    for mutation in (CalibrationDrifted(), SensorRemounted()):
        with pytest.raises(NotApplicable, match="child frame"):
            derive(mutation, replace(CLOUD, transforms=TransformTree()))
    with pytest.raises(UsageError, match="no rotation"):
        CalibrationDrifted(yaw_deg=0.0)


# A sensor that is mounted elsewhere and calibrated anew


@FEW
@given(st.tuples(*(st.floats(-10.0, 10.0),) * 2, st.floats(-180.0, 180.0), *(st.floats(-1.0, 1.0),) * 3))
def test_of_a_remounted_sensor_every_return_stays_in_the_vehicles_frame(error: tuple[float, ...]) -> None:
    if not any(error):
        return
    followup, _ = derive(SensorRemounted(*error), BUNDLE)
    known = ~empty_returns(BUNDLE.cloud())
    old, new = (
        move(b.transforms.lookup("base_link", "velodyne"), b.cloud().xyz[known]) for b in (BUNDLE, followup.first)
    )
    assert np.abs(old - new).max() < 2e-4
    assert followup.first.transforms.given.other_than(followup.first.transforms) == ()
    assert followup.effects.output_transform is None


def test_a_remounted_sensor_with_the_old_calibration_is_seen() -> None:
    mutation = SensorRemounted(yaw_deg=5.0)
    followup, draw = derive(mutation, BUNDLE)
    new = followup.first
    half = TREE.extended(
        [
            replace(t, matrix=t.matrix @ pose_matrix([0.01, 0, 0], [0, 0, 0, 1]))
            for t in new.transforms.transforms
            if t.child == "velodyne"
        ]
    )
    for tree in (TREE, new.transforms.given_as(TREE), half.given_as(half)):
        tampered = Followup(((0, replace(new, transforms=tree)),), followup.effects)
        assert mutation.guarantee(BUNDLE, tampered, draw)


# Who is given transforms


@pytest.mark.parametrize("name", ["sensor_remounted_5deg", "calibration_drifted_pitch"])
def test_runs_in_which_transforms_do_not_reach_the_stack_are_refused(name: str) -> None:
    relation, detector = load_relation(name), load_stack("reference_detector")
    assert incompatibility(relation, detector) is None
    assert "--transport inprocess" in str(incompatibility(relation, detector, over_topics=True))
    assert "lacks points_frame" in str(incompatibility(relation, replace(detector, points_frame="")))
    assert "--transport inprocess" in str(incompatibility(relation, load_stack("autoware_lidar_perception")))
    with pytest.raises(UsageError, match="changes transforms"):
        refuse_baseline(relation, "mutator")


# Intrinsics


@FEW
@given(st.floats(-0.1, 0.1), st.floats(-0.1, 0.1), st.floats(-0.1, 0.1), st.floats(-0.3, 0.3))
def test_pixels_move_as_the_intrinsics_say(focal: float, right: float, down: float, distortion: float) -> None:
    if not any((focal, right, down, distortion)):
        return
    bundle = street_in("bgr8")
    old = bundle.camera_infos[0]
    infos = (replace(old, d=np.array([0.1, -0.02, 0.0, 0.0, 0.0])),)
    followup, _ = derive(IntrinsicsDrifted(focal, right, down, distortion), replace(bundle, camera_infos=infos))
    new = followup.first.camera_infos[0]
    ray = np.array([0.3, -0.2, 1.0])
    (u, v, _), (a, b, _) = old.k @ ray, new.k @ ray
    assert a == pytest.approx(old.k[0, 2] + (u - old.k[0, 2]) * (1.0 + focal) + right * old.width)
    assert b == pytest.approx(old.k[1, 2] + (v - old.k[1, 2]) * (1.0 + focal) + down * old.height)
    assert new.d[0] == pytest.approx(0.1 + distortion)
    assert followup.first.images == bundle.images


@pytest.mark.parametrize("field", ["k", "p", "d", "r", "width"])
def test_broken_intrinsics_are_seen(field: str) -> None:
    bundle = street_in("bgr8")
    mutation = IntrinsicsDrifted(focal=0.01, right=0.002)
    followup, draw = derive(mutation, bundle)
    info = followup.first.camera_infos[0]
    value = info.width + 1 if field == "width" else getattr(info, field) + 1e-3
    value = np.array([0.1]) if field == "d" and not info.d.size else value
    tampered = replace(followup.first, camera_infos=(replace(info, **{field: value}),))
    assert mutation.guarantee(bundle, Followup(((0, tampered),)), draw)


def test_a_camera_without_calibration_has_none_that_drifts() -> None:
    bundle = street_in("bgr8")
    blank = replace(bundle.camera_infos[0], k=np.zeros((3, 3)))
    for infos, says in (((), "no CameraInfo"), ((blank,), "not calibrated")):
        with pytest.raises(NotApplicable, match=says):
            derive(IntrinsicsDrifted(), replace(bundle, camera_infos=infos))
    bare = (replace(bundle.camera_infos[0], d=np.empty(0)),)
    with pytest.raises(NotApplicable, match="no distortion"):
        derive(IntrinsicsDrifted(distortion=0.1), replace(bundle, camera_infos=bare))
    with pytest.raises(UsageError, match="no change of focal length"):
        IntrinsicsDrifted(focal=0.0)


# Clocks


@FEW
@given(st.floats(-50.0, 50.0), st.floats(-10.0, 10.0), st.floats(0.0, 3600.0))
def test_stamps_run_away_at_the_rate(rate: float, offset: float, after_s: float) -> None:
    expected_ns = offset * 1e9 + rate * 1e-3 * after_s * 1e9
    if abs(expected_ns) < 2.0:
        return
    first = at(BUNDLE, 1e6, 0)
    later = at(first, after_s)
    followup, _ = derive(ClockDrifted(rate, offset), later, first)
    assert abs(followup.first.stamp_ns - later.stamp_ns - expected_ns) <= 2.0
    assert followup.first.cloud().stamp_ns == followup.first.stamp_ns


@pytest.mark.parametrize("of", ["all", "lidar", "camera"])
def test_only_that_clock_drifts(of: str) -> None:
    bundle = street_in("bgr8")
    later = at(bundle, 7.0)
    mutation = ClockDrifted(rate_ms_per_s=2.0, offset_s=0.0, of=of)
    followup, draw = derive(mutation, later, bundle)
    moved = {
        m.topic for m, old in zip(followup.first.messages, later.messages, strict=True) if m.stamp_ns != old.stamp_ns
    }
    clouds = {c.topic for c in later.clouds}
    every = {m.topic for m in later.messages}
    assert moved == {"all": every, "lidar": clouds, "camera": every - clouds}[of]
    assert (followup.first.stamp_ns == later.stamp_ns) == (of == "camera")
    wrong = replace(followup.first, images=tuple(replace(i, stamp_ns=i.stamp_ns + 9) for i in followup.first.images))
    assert mutation.guarantee(later, Followup(((0, wrong),)), draw)
    assert mutation.guarantee(later, Followup(((0, replace(followup.first, stamp_ns=5)),)), draw)
    assert mutation.guarantee(later, Followup(((0, later),)), draw)


def test_a_clock_that_is_right_has_no_followup() -> None:
    with pytest.raises(NotApplicable, match="drift begins"):
        derive(ClockDrifted(offset_s=0.0), BUNDLE)
    with pytest.raises(NotApplicable, match="no message of a camera"):
        derive(ClockDrifted(of="camera"), replace(BUNDLE, images=(), camera_infos=()))
    with pytest.raises(UsageError, match="expected one of them"):
        ClockDrifted(rate_ms_per_s=0.0, offset_s=0.0)
    with pytest.raises(NotApplicable, match="32 bits"):
        derive(ClockDrifted(offset_s=-1.0), BUNDLE)


# Navigation: messages that no bundle decodes


def fix(latitude: float, longitude: float, altitude: float) -> Wire:
    types = codec.typestore().types
    status = types["sensor_msgs/msg/NavSatStatus"](status=0, service=1)
    header = codec.header_of("gnss", 7)
    message = types[GnssDrifted.type](header, status, latitude, longitude, altitude, np.eye(3).ravel(), 2)
    return Wire("/gnss/fix", GnssDrifted.type, 7, codec.encode(GnssDrifted.type, message))


def rates() -> Wire:
    types = codec.typestore().types
    vector, turn = types["geometry_msgs/msg/Vector3"], types["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0)
    zero = np.zeros(9)
    message = types[ImuDrifted.type](
        codec.header_of("imu", 7), turn, zero, vector(0.1, -0.2, 0.3), zero, vector(0.0, 0.0, 9.81), zero
    )
    return Wire("/imu", ImuDrifted.type, 7, codec.encode(ImuDrifted.type, message))


OTHER = Wire("/chatter", "std_msgs/msg/String", 7, codec.encode_text("hello"))


@FEW
@given(
    st.floats(-85.0, 85.0),
    st.floats(-180.0, 180.0),
    st.floats(-100.0, 3000.0),
    st.tuples(*(st.floats(-50.0, 50.0),) * 3),
)
def test_a_fix_moves_by_metres_on_the_ellipsoid(
    latitude: float, longitude: float, altitude: float, error: tuple[float, float, float]
) -> None:
    if not any(error):
        return
    bundle = replace(BUNDLE, wires=(OTHER, fix(latitude, longitude, altitude)))
    followup, _ = derive(GnssDrifted(*error), bundle)
    assert followup.first.wires[0] is OTHER
    new = codec.decode(GnssDrifted.type, followup.first.wires[1].cdr)
    # A degree of latitude is 110.57 km at the equator and 111.69 km at a pole.
    assert (new.latitude - latitude) * 111_130.0 == pytest.approx(error[1], rel=0.006, abs=1e-6)
    assert new.altitude - altitude == pytest.approx(error[2])


def test_jumps_come_now_and_then_and_last_a_second() -> None:
    mutation = GnssDrifted(east_m=0.0, north_m=0.0, jump_m=20.0, jump_every_s=5.0)
    bundle = replace(BUNDLE, wires=(fix(48.0, 11.0, 500.0),))
    state = mutation.begin(np.random.default_rng(1), bundle)
    sizes = np.array([np.linalg.norm(mutation.error(at(bundle, 0.1 * k), state)) for k in range(1, 500)])
    assert set(np.round(sizes, 6)) == {0.0, 20.0}
    assert (sizes > 0).mean() == pytest.approx(0.2, abs=0.03)


def test_an_inertial_sensor_has_a_bias_of_its_grade_in_one_direction() -> None:
    bundle = replace(BUNDLE, wires=(rates(), OTHER))
    followup, draw = derive(ImuDrifted(gyro_degps=0.1, accelerometer_mg=5.0), bundle)
    old, new = (codec.decode(ImuDrifted.type, b.wires[0].cdr) for b in (bundle, followup.first))
    turn, push = (
        np.array([getattr(getattr(new, name), a) - getattr(getattr(old, name), a) for a in "xyz"])
        for name in ("angular_velocity", "linear_acceleration")
    )
    assert np.degrees(np.linalg.norm(turn)) == pytest.approx(0.1)
    assert np.linalg.norm(push) == pytest.approx(5e-3 * 9.80665)
    assert derive(ImuDrifted(), at(bundle, 3.0), bundle)[1]["error"].tolist() == draw["error"].tolist()


NAVIGATION = {"gnss": (GnssDrifted(), fix(48.0, 11.0, 500.0)), "imu": (ImuDrifted(), rates())}


@pytest.mark.parametrize("name", NAVIGATION)
def test_changed_messages_are_marked_hashed_sent_and_proved(name: str) -> None:
    mutation, wire = NAVIGATION[name]
    bundle = replace(BUNDLE, wires=(wire, OTHER))
    followup, draw = derive(mutation, bundle)
    new = followup.first
    assert new.wires[0].changed and sha256_of(new) != sha256_of(bundle)
    passed, (part,) = split_followup(followup, bundle)
    assert passed is None and part.bundle.wires == new.wires
    broken = {
        "the source": bundle,
        "unmarked": replace(new, wires=(replace(new.wires[0], changed=False), OTHER)),
        "another": replace(new, wires=(new.wires[0], replace(OTHER, stamp_ns=8))),
        "the old bytes": replace(new, wires=(replace(wire, changed=True), OTHER)),
        "one less": replace(new, wires=new.wires[:1]),
    }
    for tampered in broken.values():
        assert mutation.guarantee(bundle, Followup(((0, tampered),)), draw)
    with pytest.raises(NotApplicable, match="has no sensor_msgs"):
        derive(mutation, replace(BUNDLE, wires=(OTHER,)))
    with pytest.raises(NotApplicable, match="on /other"):
        derive(replace(mutation, topic="/other"), bundle)


def test_only_a_program_that_takes_them_is_tested_with_navigation() -> None:
    relation = replace(load_relation("clock_drifted"), mutate=(GnssDrifted(),))
    assert "needs" in str(incompatibility(relation, load_stack("reference_detector")))
    program = replace(load_stack("autoware_lidar_perception"), needs=("/tf", "/gnss/fix"))
    assert incompatibility(relation, program) is None
    assert "needs" in str(incompatibility(relation, replace(program, needs=("/tf",))))


# Odometry of a world


def told(x_m: float, y_m: float, yaw_rad: float) -> Bundle:
    pose = Odometry("map", 7, x_m, y_m, yaw_rad, 8.0, 0.1)
    return replace(BUNDLE, world_messages=(WorldMessage("/localization/odometry", "odometry", 7, "map", pose),))


@FEW
@given(
    *(st.floats(-500.0, 500.0),) * 2,
    st.floats(-3.0, 3.0),
    st.floats(-2.0, 2.0),
    st.floats(-2.0, 2.0),
    st.floats(-20.0, 20.0),
)
def test_a_pose_is_off_in_the_vehicles_own_frame(
    x: float, y: float, yaw: float, ahead: float, left: float, turn: float
) -> None:
    if not any((ahead, left, turn)):
        return
    bundle = told(x, y, yaw)
    followup, draw = derive(OdometryDrifted(ahead, left, turn), bundle)
    new = followup.first.world_messages[0].data
    here = bundle.world_messages[0].data.seen_from(np.array([[new.x_m, new.y_m]]))
    np.testing.assert_allclose(here, [[ahead, left]], atol=1e-6)
    assert new.yaw_rad - yaw == pytest.approx(np.radians(turn))
    assert (new.speed_mps, new.yaw_rate_radps) == (8.0, 0.1)
    mutation = OdometryDrifted(ahead, left, turn)
    faster = replace(followup.first.world_messages[0], data=replace(new, speed_mps=9.0))
    assert mutation.guarantee(bundle, Followup(((0, replace(followup.first, world_messages=(faster,))),)), draw)


def test_without_odometry_there_is_none_to_drift() -> None:
    with pytest.raises(NotApplicable, match="no odometry"):
        derive(OdometryDrifted(), BUNDLE)
    for cls, none in (
        (OdometryDrifted, {"left_m": 0.0}),
        (ImuDrifted, {"gyro_degps": 0.0, "accelerometer_mg": 0.0}),
        (GnssDrifted, {"east_m": 0.0, "north_m": 0.0}),
    ):
        with pytest.raises(UsageError, match="expected one of"):
            cls(**none)
