# SPDX-License-Identifier: Apache-2.0
"""What is read of obstacles in the types that stacks use, on messages built from their definitions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from rclpy.serialization import deserialize_message, serialize_message
from ros_types import from_bytes, installed, make, message_type, to_bytes, wired
from scipy.spatial.transform import Rotation

from mt_nodes.base.errors import UsageError
from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import Cloud
from mt_nodes.data.outputs import Detections
from mt_nodes.data.rotations import quaternion_of_yaw
from mt_nodes.data.stack_topics import OutputTopic
from mt_nodes.nodes.adapter_choice import adapter_of
from mt_nodes.nodes.adapters.detection_adapters import PointCloudClusters
from mt_nodes.nodes.adapters.marker_adapters import MarkerArrayObstacles
from mt_nodes.nodes.orientation import turned, yaws
from mt_nodes.stacks.message_adapter import adapter_for
from mt_nodes.stacks.upright_boxes import boxes_around

NEW, OLD = "autoware_perception_msgs", "autoware_auto_perception_msgs"
AUTOWARE = [f"{package}/msg/{kind}Objects" for package in (NEW, OLD) for kind in ("Detected", "Tracked", "Predicted")]
QUARTER = math.pi / 2


@pytest.fixture(autouse=True, scope="module")
def _packages() -> Iterator[None]:
    with installed():
        yield


def read(type_name: str, rows: list[Any], where: str = "objects", frame: str = "map", role: str = "detections") -> Any:
    """What the adapter of a type reads of an array, off the wire."""
    message = make(type_name, **{where: rows})
    message.header.frame_id = frame
    return adapter_for(role, type_name).decode(wired(message))


def set_xyz(vector: Any, *values: float) -> None:
    for axis, value in zip("xyz", values, strict=False):
        setattr(vector, axis, value)


def set_turn(quaternion: Any, yaw: float) -> None:
    quaternion.x, quaternion.y, quaternion.z, quaternion.w = quaternion_of_yaw(yaw)


# --- Autoware ---------------------------------------------------------------------------------------------------------


def motion(row: Any) -> tuple[Any, Any]:
    """Pose and twist of an object of Autoware, with their covariances."""
    prefix = "initial_" if hasattr(row.kinematics, "initial_pose_with_covariance") else ""
    return tuple(getattr(row.kinematics, f"{prefix}{name}_with_covariance") for name in ("pose", "twist"))


def autoware(type_name: str, *, place: Any = (0.0, 0.0, 0.0), yaw: float = 0.0, size: Any = (4.0, 2.0, 1.5)) -> Any:
    row = make(type_name.removesuffix("s"))
    pose, _ = motion(row)
    set_xyz(pose.pose.position, *place)
    set_turn(pose.pose.orientation, yaw)
    set_xyz(row.shape.dimensions, *size)
    return row


def classes(type_name: str, *pairs: tuple[int, float]) -> list[Any]:
    kind = message_type(f"{type_name.split('/')[0]}/msg/ObjectClassification")
    return [kind(label=label, probability=probability) for label, probability in pairs]


@pytest.mark.parametrize("type_name", AUTOWARE)
def test_an_object_of_autoware(type_name: str) -> None:
    row = autoware(type_name, place=(10.0, -2.0, 1.0), yaw=QUARTER)
    row.classification = classes(type_name, (1, 0.25), (7, 0.75), (2, 0.5))
    row.existence_probability = 0.5
    pose, twist = motion(row)
    set_xyz(twist.twist.linear, 5.0, 1.0, 0.25)
    pose.covariance[0] = 0.04
    if hasattr(row, "object_id"):
        row.object_id.uuid = list(range(16))
    detected = hasattr(row.kinematics, "has_twist")
    if detected:
        row.kinematics.has_twist = row.kinematics.has_position_covariance = True
    said = read(type_name, [row, autoware(type_name)])
    assert (said.frame_id, said.stamp_ns, len(said)) == ("map", 0, 2)
    np.testing.assert_array_equal(said.center_m[0], [10.0, -2.0, 1.0])
    np.testing.assert_array_equal(said.size_m[0], [4.0, 2.0, 1.5])
    assert said.yaw_rad[0] == pytest.approx(QUARTER)
    assert said.label.tolist() == ["pedestrian", "unknown"] and said.score.tolist() == [0.5, 0.0]
    np.testing.assert_allclose(said.velocity_mps[0], [-1.0, 5.0, 0.25], atol=1e-12)  # turned out of the object's frame
    assert said.covariance[0, 0, 0] == 0.04 and np.isnan(said.covariance[1]).all()
    assert said.track_id.tolist() == ["" if detected else "000102030405060708090a0b0c0d0e0f", ""]
    assert np.isnan(said.velocity_mps[1]).all() == detected, "zeros are a velocity unless a flag says that they are not"


def test_what_autoware_flags_as_not_given_is_not_given() -> None:
    row = autoware(AUTOWARE[0])
    set_xyz(row.kinematics.twist_with_covariance.twist.linear, 5.0, 0.0, 0.0)
    row.kinematics.pose_with_covariance.covariance[0] = 0.04
    said = read(AUTOWARE[0], [row])
    assert np.isnan(said.velocity_mps).all() and np.isnan(said.covariance).all()


def test_the_class_s_probability_stands_in_for_an_existence_that_is_left_at_nought() -> None:
    row = autoware(AUTOWARE[1])
    row.classification = classes(AUTOWARE[1], (6, 0.25), (5, 0.75))
    said = read(AUTOWARE[1], [row])
    assert (said.label.tolist(), said.score.tolist()) == (["motorcycle"], [0.75])


@pytest.mark.parametrize("number, name", [(0, "unknown"), (8, "animal"), (11, "under_drivable"), (200, "unknown")])
def test_names_of_autoware_s_classes(number: int, name: str) -> None:
    row = autoware(AUTOWARE[0])
    row.classification = classes(AUTOWARE[0], (number, 1.0))
    assert read(AUTOWARE[0], [row]).label.tolist() == [name]


def test_a_class_that_the_older_package_lacks_becomes_unknown_and_a_cyclist_a_bicycle() -> None:
    said = Detections.make("map", 0, np.zeros((3, 3)), label=["animal", "Cyclist", "Car"])
    for package, first in ((NEW, "animal"), (OLD, "unknown")):
        adapter = adapter_for("detections", f"{package}/msg/TrackedObjects")
        assert adapter.decode(wired(adapter.encode(said))).label.tolist() == [first, "bicycle", "car"]


@pytest.mark.parametrize("type_name", AUTOWARE)
def test_motion_and_covariance_that_are_known_are_published(type_name: str) -> None:
    known = {"velocity_mps": [[3.0, -1.0, 0.5]], "covariance": [np.diag([1.0, 2, 3, 4, 5, 6])]}
    said = Detections.make("map", 0, [[1.0, 2.0, 3.0]], yaw_rad=[2.0], **known)
    adapter = adapter_for("detections", type_name)
    again = adapter.decode(wired(adapter.encode(said)))
    np.testing.assert_allclose(again.velocity_mps, said.velocity_mps)
    np.testing.assert_array_equal(again.covariance, said.covariance)
    nothing = adapter.decode(wired(adapter.encode(Detections.make("map", 0, [[1.0, 2.0, 3.0]]))))
    assert np.isnan(nothing.covariance).all()


def test_a_cylinder_has_its_diameter_in_both_directions() -> None:
    row = autoware(AUTOWARE[0], size=(0.6, 0.0, 1.7))
    row.shape.type = 1
    np.testing.assert_array_equal(read(AUTOWARE[0], [row]).size_m, [[0.6, 0.6, 1.7]])


def polygon(corners: Any, **pose: Any) -> Any:
    row = autoware(AUTOWARE[0], size=(9.0, 9.0, 1.5), **pose)
    row.shape.type = 2
    point = message_type("geometry_msgs/msg/Point32")
    row.shape.footprint.points = [point(x=float(x), y=float(y), z=0.0) for x, y in corners]
    return row


def test_a_polygon_is_the_box_around_it_at_its_pose() -> None:
    rows = [
        autoware(AUTOWARE[0]),
        polygon([(0, 0), (2, 0), (2, 4), (1, 4), (0, 4)], place=(10.0, 20.0, 1.0), yaw=QUARTER),
        polygon([]),
        polygon([(2, 3)], place=(1.0, 1.0, 0.0)),
        polygon([(0, 0), (math.nan, 1), (1, 1)]),
    ]
    said = read(AUTOWARE[0], rows)
    np.testing.assert_allclose(said.center_m[1], [8.0, 21.0, 1.0], atol=1e-6)
    np.testing.assert_allclose(said.size_m[1], [4.0, 2.0, 1.5], atol=1e-6)
    assert abs(said.yaw_rad[1]) == pytest.approx(math.pi, abs=1e-6), "along its longer side"
    np.testing.assert_array_equal(said.size_m[[0, 2]], [[4.0, 2.0, 1.5], [9.0, 9.0, 1.5]])
    np.testing.assert_allclose((*said.center_m[3], *said.size_m[3]), [3.0, 4.0, 0.0, 0.0, 0.0, 1.5], atol=1e-6)
    assert said.finite.tolist() == [True, True, True, True, False]


# --- vision_msgs ------------------------------------------------------------------------------------------------------


def hypotheses(*pairs: tuple[str, float]) -> list[Any]:
    rows = [make("vision_msgs/msg/ObjectHypothesisWithPose") for _ in pairs]
    for row, (name, score) in zip(rows, pairs, strict=True):
        row.hypothesis.class_id, row.hypothesis.score = name, score
    return rows


def test_detections_in_space() -> None:
    row, bare = make("vision_msgs/msg/Detection3D", id="t1"), make("vision_msgs/msg/Detection3D")
    set_xyz(row.bbox.center.position, 1.0, 2.0, 3.0)
    set_turn(row.bbox.center.orientation, -0.5)
    set_xyz(row.bbox.size, 4.0, 2.0, 1.5)
    row.results = hypotheses(("car", 0.25), ("truck", 0.75), ("", 0.5))
    row.results[1].pose.covariance[7] = 0.5
    said = read("vision_msgs/msg/Detection3DArray", [row, bare], "detections")
    assert (said.label.tolist(), said.score.tolist()) == (["truck", "unknown"], [0.75, 1.0])
    assert said.track_id.tolist() == ["t1", ""] and said.yaw_rad.tolist() == pytest.approx([-0.5, 0.0])
    np.testing.assert_array_equal(np.hstack([said.center_m, said.size_m])[0], [1.0, 2.0, 3.0, 4.0, 2.0, 1.5])
    assert said.covariance[0, 1, 1] == 0.5 and np.isnan(said.covariance[1]).all()
    assert np.isnan(said.velocity_mps).all()


def test_detections_in_an_image_a_turned_one_upright() -> None:
    rows = [make("vision_msgs/msg/Detection2D") for _ in range(2)]
    for row, theta in zip(rows, (0.0, QUARTER), strict=True):
        row.bbox.center.position.x, row.bbox.center.position.y, row.bbox.center.theta = 100.0, 50.0, theta
        row.bbox.size_x, row.bbox.size_y = 40.0, 20.0
    rows[0].results = hypotheses(("car", 0.25), ("person", 0.5))
    said = read("vision_msgs/msg/Detection2DArray", rows, "detections", role="boxes")
    np.testing.assert_allclose(said.box_px, [[80.0, 40.0, 120.0, 60.0], [90.0, 30.0, 110.0, 70.0]])
    assert (said.label.tolist(), said.score.tolist()) == (["person", "unknown"], [0.5, 1.0])


@pytest.mark.parametrize(
    "type_name, row, where, role",
    [
        ("vision_msgs/msg/Detection3DArray", "vision_msgs/msg/Detection3D", "detections", "detections"),
        ("vision_msgs/msg/Detection2DArray", "vision_msgs/msg/Detection2D", "detections", "boxes"),
        ("derived_object_msgs/msg/ObjectArray", "derived_object_msgs/msg/Object", "objects", "detections"),
    ],
)
def test_an_array_is_in_one_frame(type_name: str, row: str, where: str, role: str) -> None:
    rows = [make(row), make(row)]
    rows[1].header.frame_id = "lidar"
    assert read(type_name, rows, where, "", role).frame_id == "lidar", "its rows say what its header leaves out"
    with pytest.raises(ValueError, match="in several frames: lidar, map"):
        read(type_name, rows, where, "map", role)


# --- derived_object_msgs ----------------------------------------------------------------------------------------------


def derived(kind: int = 1, sides: Any = (4.0, 2.0, 1.5), **fields: Any) -> Any:
    row = make("derived_object_msgs/msg/Object", **fields)
    row.shape.type, row.shape.dimensions = kind, list(sides)
    return row


def test_an_object_as_carla_s_bridge_gives_it() -> None:
    row = derived(id=42, object_classified=True, classification=6, classification_certainty=255)
    set_turn(row.pose.orientation, QUARTER)
    set_xyz(row.twist.linear, 5.0, 0.0, 0.0)
    said = read("derived_object_msgs/msg/ObjectArray", [row, derived(), derived(id=3, detection_level=1)])
    assert said.label.tolist() == ["car", "unknown", "unknown"] and said.score.tolist() == [1.0, 1.0, 1.0]
    assert said.track_id.tolist() == ["42", "", "3"]
    np.testing.assert_array_equal(said.velocity_mps[0], [5.0, 0.0, 0.0])  # in the frame of the header already
    assert np.isnan(said.velocity_mps[1]).all() and not said.velocity_mps[2].any()


def test_tracks_are_numbers_there_so_texts_become_some() -> None:
    said = Detections.make("map", 0, np.zeros((5, 3)), track_id=["a", "b", "0", "", "4294967296"])
    adapter = adapter_for("detections", "derived_object_msgs/msg/ObjectArray")
    tracks = adapter.decode(wired(adapter.encode(said))).track_id.tolist()
    assert tracks[2:4] == ["0", ""] and len(set(tracks)) == 5 and all(int(track or 0) < 2**32 for track in tracks)


@pytest.mark.parametrize(
    "kind, sides, expected",
    [
        (1, (4.0, 2.0, 1.5), (4.0, 2.0, 1.5)),
        (2, (0.5,), (1.0, 1.0, 1.0)),
        (3, (1.75, 0.25), (0.5, 0.5, 1.75)),
        (4, (0.75, 0.25), (0.5, 0.5, 0.75)),
        (1, (), (0.0, 0.0, 0.0)),
        (1, (4.0, 2.0), (math.nan,) * 3),
        (5, (1.0,), (math.nan,) * 3),
    ],
)
def test_solid_primitives_as_boxes(kind: int, sides: Any, expected: Any) -> None:
    said = read("derived_object_msgs/msg/ObjectArray", [derived(kind, sides)])
    np.testing.assert_array_equal(said.size_m, [expected])


def test_certainty_counts_only_where_something_is_classified() -> None:
    rows = [derived(object_classified=flag, classification_certainty=51, classification=4) for flag in (True, False)]
    said = read("derived_object_msgs/msg/ObjectArray", rows)
    assert said.score.tolist() == [0.2, 1.0] and said.label.tolist() == ["pedestrian"] * 2


# --- clusters ---------------------------------------------------------------------------------------------------------


def clustered(xyz: Any, number: Any, kind: str = "<i4", name: str = "cluster_id", height: int = 1) -> Any:
    """A cloud as it comes off the wire; coordinates in the byte order of the numbers."""
    order = kind[0]
    points = np.zeros(len(xyz), [(axis, f"{order}f4") for axis in "xyz"] + [(name, kind)])
    for axis, column in zip("xyz", np.asarray(xyz, dtype=np.float64).reshape(-1, 3).T, strict=True):
        points[axis] = column
    points[name] = number
    return codec.decode(codec.POINT_CLOUD, codec.encode_cloud(Cloud("/c", 7, "lidar", points, height)))


CORNERS = np.array([[0, 0, 0], [4, 0, 0], [4, 2, 1.5], [0, 2, 0]], dtype=np.float64)


@pytest.mark.parametrize("kind", ["<i4", ">i4", "<f4", "<u2", "<f8"])
def test_clusters_of_points_are_boxes(kind: str) -> None:
    other = np.array([[10, 10, -1], [11, 11, 0], [10.5, 10.5, 2]])
    nowhere = np.array([[math.nan, 0, 0], [100, 100, 0]])
    xyz = np.vstack([CORNERS[:2], other, CORNERS[2:], nowhere])
    number = [0, 0, 500, 500, 500, 0, 0, 0, 9 if kind == "<u2" else -1]
    said = PointCloudClusters(none=9 if kind == "<u2" else -1).decode(clustered(xyz, number, kind))
    assert (said.frame_id, said.stamp_ns) == ("lidar", 7)
    np.testing.assert_allclose(said.center_m, [[2.0, 1.0, 0.75], [10.5, 10.5, 0.5]], atol=1e-6)
    np.testing.assert_allclose(said.size_m, [[4.0, 2.0, 1.5], [math.sqrt(2), 0.0, 3.0]], atol=1e-6)
    np.testing.assert_allclose(said.yaw_rad, [0.0, math.pi / 4], atol=1e-6)
    assert said.label.tolist() == ["unknown"] * 2 and said.track_id.tolist() == ["", ""]


def test_a_cloud_without_clusters_says_that_nothing_was_seen() -> None:
    for empty in (clustered([], []), clustered(CORNERS, -1), clustered(CORNERS * math.nan, 1, height=2)):
        said = PointCloudClusters().decode(empty)
        assert (len(said), said.frame_id, said.stamp_ns) == (0, "lidar", 7)


def test_which_field_holds_the_cluster_is_said_in_the_stack_file() -> None:
    row = OutputTopic("/c", codec.POINT_CLOUD, params={"field": "intensity", "none": 0})
    said = adapter_of("detections", row).decode(clustered(CORNERS, [1, 1, 1, 0], "<f4", "intensity"))
    assert len(said) == 1 and said.size_m[0, 2] == 1.5
    with pytest.raises(ValueError, match=r"got a cloud with fields x, y, z, intensity, expected cluster_id .* params"):
        PointCloudClusters().decode(clustered(CORNERS, 0, "<f4", "intensity"))
    with pytest.raises(UsageError, match="unknown parameter 'feild'; did you mean 'field'"):
        adapter_of("detections", OutputTopic("/c", codec.POINT_CLOUD, params={"feild": "x"}))
    with pytest.raises(UsageError, match="params: got field, 7, but the adapter of geometry_msgs/msg/Pose"):
        adapter_of("detections", OutputTopic("/c", "geometry_msgs/msg/PoseArray", params={"field": "x", 7: 8}))  # type: ignore[dict-item]


# --- markers ----------------------------------------------------------------------------------------------------------

EDGES = [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4), (0, 4), (1, 5), (2, 6), (3, 7)]


def lines(center: Any, size: Any, yaw: float) -> list[Any]:
    """The twelve edges of a box, two ends each."""
    signs = np.array([(x, y, z) for z in (-0.5, 0.5) for x, y in ((0.5, 0.5), (-0.5, 0.5), (-0.5, -0.5), (0.5, -0.5))])
    corners = turned(np.array([quaternion_of_yaw(yaw)]), signs * size) + center
    point = message_type("geometry_msgs/msg/Point")
    return [point(x=x, y=y, z=z) for edge in EDGES for x, y, z in corners[list(edge)].tolist()]


def marker(kind: int, **fields: Any) -> Any:
    made = make("visualization_msgs/msg/Marker", type=kind, **fields)
    made.header.frame_id = "lidar"
    return made


def shown(*markers: Any) -> Detections:
    return MarkerArrayObstacles().decode(wired(make("visualization_msgs/msg/MarkerArray", markers=list(markers))))


def test_boxes_drawn_as_lines() -> None:
    two = [*lines((10, 5, 1), (4, 2, 1.5), 0.5), *lines((-3, 0, 0), (1, 0.5, 2), 0.0)]
    drawn = marker(5, points=two, ns="car", text="track=7")
    set_xyz(drawn.pose.position, 100.0, 0.0, 0.0)
    set_turn(drawn.pose.orientation, QUARTER)
    said = shown(drawn, marker(5, points=two[:-2]), marker(9, text="car 0.9"))
    np.testing.assert_allclose(said.center_m, [[95.0, 10.0, 1.0], [100.0, -3.0, 0.0]], atol=1e-9)
    np.testing.assert_allclose(said.size_m, [[4, 2, 1.5], [1, 0.5, 2]], atol=1e-9)
    np.testing.assert_allclose(np.cos(2 * (said.yaw_rad - [QUARTER + 0.5, QUARTER])), 1.0)
    assert said.label.tolist() == ["car"] * 2 and said.track_id.tolist() == ["7"] * 2 and said.frame_id == "lidar"


def test_lines_around_solid_boxes_are_not_counted_again() -> None:
    outline, solid = marker(5, points=lines((0, 0, 0), (4, 2, 1.5), 0.0)), marker(1)
    set_xyz(solid.scale, 4.0, 2.0, 1.5)
    assert len(shown(outline, solid)) == 1 and len(shown(outline)) == 1


def test_a_list_of_cubes_is_an_obstacle_each() -> None:
    point = message_type("geometry_msgs/msg/Point")
    cubes = marker(6, points=[point(x=1.0), point(y=2.0)], ns="cone")
    set_xyz(cubes.scale, 0.5, 0.25, 1.0)
    set_xyz(cubes.pose.position, 10.0, 0.0, 0.0)
    set_turn(cubes.pose.orientation, QUARTER)
    said = shown(cubes, marker(7), marker(1, ns="car"))
    by_class = {name: said.take(said.label == name) for name in ("cone", "car")}
    np.testing.assert_allclose(by_class["cone"].center_m, [[10.0, 1.0, 0.0], [8.0, 0.0, 0.0]], atol=1e-12)
    assert by_class["cone"].size_m.tolist() == [[0.5, 0.25, 1.0]] * 2
    assert len(said) == 3 and by_class["car"].center_m.tolist() == [[0.0, 0.0, 0.0]]


def test_lines_that_lead_nowhere_are_marked() -> None:
    broken = marker(5, points=lines((0, 0, 0), (4, 2, 1.5), 0.0))
    broken.points[3].z = math.inf
    assert shown(broken).finite.tolist() == [False]


def test_a_marker_that_only_clears_the_screen_may_lack_the_stamp() -> None:
    clear, cube = make("visualization_msgs/msg/Marker", action=3), marker(1)
    cube.header.stamp.sec = 5
    array = make("visualization_msgs/msg/MarkerArray", markers=[clear, cube])
    assert MarkerArrayObstacles().stamp_ns(array) == 5_000_000_000
    assert MarkerArrayObstacles().stamp_ns(make("visualization_msgs/msg/MarkerArray", markers=[clear])) == 0


# --- what they share --------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(
    hnp.arrays(np.float64, (4, 4), elements=st.floats(-3, 3)), hnp.arrays(np.float64, (4, 3), elements=st.floats(-9, 9))
)
def test_vectors_turn_as_scipy_turns_them(quaternion: Any, xyz: Any) -> None:
    quaternion[np.linalg.norm(quaternion, axis=1) < 1e-3] = [0, 0, 0, 1]
    expected = Rotation.from_quat(quaternion)
    np.testing.assert_allclose(turned(quaternion, xyz), expected.apply(xyz), atol=1e-9)
    ahead = expected.apply([1.0, 0.0, 0.0])
    flat = np.hypot(ahead[:, 0], ahead[:, 1]) > 1e-6  # a yaw of what looks straight up is any
    assert np.allclose(np.cos(yaws(quaternion) - np.arctan2(ahead[:, 1], ahead[:, 0]))[flat], 1.0)


groups = st.lists(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 9), st.just(3)), elements=st.floats(-50, 50, width=16)), max_size=4
)


@settings(max_examples=50)
@given(groups)
def test_a_box_holds_its_group_and_is_no_larger_than_one_along_the_axes(parts: list[Any]) -> None:
    group = np.repeat(np.arange(len(parts)), [len(part) for part in parts]).astype(np.int64)
    center, size, yaw = boxes_around(np.concatenate([np.empty((0, 3)), *parts]), group)
    assert len(center) == len(size) == len(yaw) == len(parts)
    for part, middle, sides, angle in zip(parts, center, size, yaw, strict=True):
        own = turned(np.array([quaternion_of_yaw(-angle)]), part - middle)
        assert (np.abs(own) <= sides / 2 + 1e-6).all()
        assert sides[0] >= sides[1] and sides[2] == np.ptp(part[:, 2])
        assert sides[0] * sides[1] <= np.ptp(part[:, 0]) * np.ptp(part[:, 1]) + 1e-6


def test_messages_built_from_definitions_are_as_strict_as_rclpy() -> None:
    kind = message_type("vision_msgs/msg/ObjectHypothesis")
    assert kind.get_fields_and_field_types() == {"class_id": "string", "score": "double"}
    for wrong in ({"score": 1}, {"score": np.float32(0.5)}, {"class_id": 7}, {"class_id": None}):
        with pytest.raises(AssertionError, match=r"ObjectHypothesis\.(score|class_id): got"):
            kind(**wrong)
    with pytest.raises(AttributeError, match="has no field 'scor'"):
        kind(scor=1.0)
    assert make("derived_object_msgs/msg/Object").CLASSIFICATION_CAR == 6
    assert wired(kind(class_id="ä", score=0.1)) == kind(class_id="ä", score=0.1) != kind()


def test_their_bytes_are_those_of_rclpy() -> None:
    pose = make("geometry_msgs/msg/PoseStamped")
    pose.header.frame_id, pose.pose.position.y = "lidar", 0.1
    path = make("nav_msgs/msg/Path", poses=[pose, make("geometry_msgs/msg/PoseStamped")])
    assert deserialize_message(to_bytes(path), type(path)) == path == from_bytes("nav_msgs/msg/Path", to_bytes(path))
    assert from_bytes("nav_msgs/msg/Path", serialize_message(path)) == path


def test_tracks_of_a_radar() -> None:
    message = make("radar_msgs/msg/RadarTracks")
    message.header.frame_id = "radar"
    for number, classification in enumerate((0, 32001)):
        track = make("radar_msgs/msg/RadarTrack")
        track.position.x, track.size.x, track.size.y, track.velocity.y = 10.0 + number, 4.5, 1.75, -2.0
        track.uuid.uuid = np.full(16, 17 * number, np.uint8)
        track.classification = classification
        message.tracks.append(track)
    said = adapter_of("detections", OutputTopic("/tracks", "radar_msgs/msg/RadarTracks")).decode(wired(message))
    assert isinstance(said, Detections) and said.frame_id == "radar"
    assert said.center_m.tolist() == [[10.0, 0.0, 0.0], [11.0, 0.0, 0.0]] and said.size_m[0].tolist() == [
        4.5,
        1.75,
        0.0,
    ]
    assert said.label.tolist() == ["unknown", "32001"] and said.track_id.tolist() == ["", "11" * 16]
    assert said.velocity_mps[:, 1].tolist() == [-2.0, -2.0]
