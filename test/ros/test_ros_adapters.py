# SPDX-License-Identifier: Apache-2.0
"""Every adapter there and back, and how each type says that nothing was seen."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseArray, Quaternion, Twist
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rclpy.serialization import serialize_message
from visualization_msgs.msg import ImageMarker, Marker, MarkerArray

from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.base.message_packages import remedy
from mt_nodes.data.lanes import ALONG, ONCOMING, OWN, Lanes, SignalStates, Strip
from mt_nodes.data.message_headers import set_stamp
from mt_nodes.data.messages import Odometry
from mt_nodes.data.outputs import Control, Detections, Diagnostics, ImageBoxes, Path
from mt_nodes.data.perception import FreeSpace, PredictedObjects, PredictedPath
from mt_nodes.data.rotations import quaternion_of_yaw
from mt_nodes.data.stack_topics import DEFAULT_OUTPUTS, OUTPUT_ROLES
from mt_nodes.nodes.adapters.command_adapters import TwistControl
from mt_nodes.nodes.adapters.detection_adapters import PoseArrayObstacles
from mt_nodes.nodes.adapters.marker_adapters import ImageMarkerBoxes, MarkerArrayObstacles
from mt_nodes.nodes.convert import TOLD_AS
from mt_nodes.nodes.message_classes import available, decode, message_class
from mt_nodes.nodes.orientation import yaws
from mt_nodes.stacks.message_adapter import Adapter, adapter_for

ADAPTERS: dict[str, Any] = plugins.catalogue("adapters")
HERE = [name for name, cls in ADAPTERS.items() if available(cls.type)]
STAMP = 1_700_000_000_123_456_789

metres = st.floats(-200, 200)
obstacle = st.tuples(
    st.tuples(metres, metres, metres),
    st.tuples(*[st.floats(0.1, 20)] * 3),
    st.floats(-math.pi, math.pi, exclude_min=True),
    st.sampled_from(["car", "pedestrian", "cyclist", "unknown", "traffic_cone"]),
    st.floats(0, 1),
    st.sampled_from(["", "7", "a-12"]),
)


def detections(rows: list[Any]) -> Detections:
    if not rows:
        return Detections.none("base_link", STAMP)
    center, size, yaw, label, score, track = zip(*rows, strict=True)
    return Detections.make("base_link", STAMP, center, size, yaw, label, score, track)


edges = st.tuples(*[st.floats(-50, 2000)] * 4).map(
    lambda e: (min(e[0], e[2]), min(e[1], e[3]), max(e[0], e[2]), max(e[1], e[3]))
)
#: Scores travel in single precision.
box = st.tuples(edges, st.sampled_from(["pedestrian", "car", "unknown"]), st.floats(0, 1, width=32))
pose = st.tuples(metres, metres, st.floats(-math.pi, math.pi, exclude_min=True))


def image_boxes(rows: list[Any]) -> ImageBoxes:
    where, label, score = zip(*rows, strict=True) if rows else ((), (), ())
    return ImageBoxes.make("camera", STAMP, list(where), label, list(score))


way = st.lists(st.tuples(metres, metres), min_size=1, max_size=3).flatmap(
    lambda places: st.builds(
        PredictedPath, st.floats(0, 1), st.just(np.arange(len(places)) * 0.3), st.just(np.array(places))
    )
)
ways = st.lists(way, max_size=2).map(tuple)
DARK = SignalStates.make("map", STAMP, (), (), ())
outputs = {
    "detections": st.lists(obstacle, max_size=6).map(detections),
    "boxes": st.lists(box, max_size=5).map(image_boxes),
    "path": st.lists(pose, max_size=5).map(lambda rows: Path.make("base_link", STAMP, rows)),
    "diagnostics": st.dictionaries(st.text("abc: /", min_size=1), st.text("xyz ")).map(Diagnostics),
    "odometry": st.builds(Odometry, st.just("map"), st.just(STAMP), metres, metres, st.floats(-3, 3), metres, metres),
    "signals": st.lists(st.tuples(st.text("abc "), st.sampled_from(("red", "green")), pose), max_size=4).map(
        lambda rows: SignalStates.make("map", STAMP, *zip(*rows, strict=True)) if rows else DARK
    ),
    "lanes": st.lists(
        st.builds(
            Strip,
            st.text("abc "),
            st.sampled_from((OWN, ALONG, ONCOMING)),
            st.floats(2.0, 5.0),
            st.lists(st.tuples(metres, metres), min_size=1, max_size=4).map(np.array),
        ),
        max_size=4,
    ).map(lambda rows: Lanes.make("map", STAMP, rows)),
    "free_space": st.builds(
        FreeSpace,
        st.just("base_link"),
        st.just(STAMP),
        st.sampled_from((0.1, 0.25, 2.0)),
        pose,
        arrays(np.int8, st.tuples(st.integers(0, 4), st.integers(0, 4)), elements=st.integers(-1, 100)),
    ),
    "predictions": st.lists(st.tuples(obstacle, ways), max_size=4).map(
        lambda rows: PredictedObjects("base_link", STAMP, detections([o for o, _ in rows]), tuple(w for _, w in rows))
    ),
    "control": st.builds(Control, st.just(STAMP), speed_mps=st.floats(-5, 40), yaw_rate_radps=st.floats(-2, 2)),
}
#: What of a command a type carries that has no place for a yaw rate.
STEERED = {
    "joint_state_control": st.builds(Control, st.just(STAMP), st.floats(-1, 1), st.floats(-5, 40)),
    "image_marker_signals": st.lists(box, max_size=5)
    .map(image_boxes)
    .map(
        lambda boxes: SignalStates.make(
            "camera", STAMP, [""] * len(boxes), boxes.label.tolist(), None, boxes.score, boxes.box_px
        )
    ),
}


def wired(adapter: Adapter, message: Any) -> Any:
    """The message as it comes off the wire."""
    return decode(adapter.type, serialize_message(message))


def encodes(name: str) -> bool:
    return ADAPTERS[name].encode is not Adapter.encode


def test_there_are_adapters_and_the_usual_outputs_have_one() -> None:
    assert {"marker_array_obstacles", "pose_array_obstacles", "twist_control", "twist_stamped_control"} <= set(HERE)
    for role, row in DEFAULT_OUTPUTS.items():
        assert encodes(plugins.name_of(type(adapter_for(role, row["type"]))))


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_says_what_it_reads_and_fills(name: str) -> None:
    cls = ADAPTERS[name]
    assert cls.role in {*OUTPUT_ROLES, *TOLD_AS.values()} and cls.type.count("/") == 2
    assert plugins.summary_of(cls)
    assert type(adapter_for(cls.role, cls.type, name)) is cls
    if name not in HERE:
        with pytest.raises(UsageError, match=re.escape(remedy([cls.type]))):
            message_class(cls.type)


@pytest.mark.parametrize("name", [n for n in HERE if encodes(n)])
@given(data=st.data())
def test_what_goes_there_comes_back(name: str, data: st.DataObject) -> None:
    adapter = ADAPTERS[name]()
    said = data.draw(STEERED.get(name, outputs[adapter.role]))
    message = wired(adapter, adapter.encode(said))
    again = adapter.decode(message)
    assert adapter.stamp_ns(message) in (STAMP, None)
    if isinstance(said, Detections):
        assert again.frame_id == "base_link" and len(again) == len(said)
        np.testing.assert_array_equal(again.center_m, said.center_m)
        np.testing.assert_allclose(np.cos(again.yaw_rad - said.yaw_rad), 1.0, atol=1e-12)
    elif isinstance(said, ImageBoxes):
        assert (again.frame_id, again.label.tolist()) == ("camera", said.label.tolist())
        np.testing.assert_array_equal(again.box_px, said.box_px)
        np.testing.assert_array_equal(again.score, said.score)
    elif isinstance(said, Path):
        assert again.frame_id == "base_link"
        np.testing.assert_array_equal(again.pose[:, :2], said.pose[:, :2])
        np.testing.assert_allclose(np.cos(again.pose[:, 2] - said.pose[:, 2]), 1.0, atol=1e-12)
    elif isinstance(said, Diagnostics):
        assert again == said
    elif isinstance(said, Odometry):
        assert replace(again, yaw_rad=0.0) == replace(said, yaw_rad=0.0)
        assert math.isclose(again.yaw_rad, said.yaw_rad, abs_tol=1e-12)
    elif isinstance(said, SignalStates) and said.frame_id == "camera":
        assert (again.frame_id, again.colour.tolist()) == ("camera", said.colour.tolist())
        np.testing.assert_array_equal(again.box_px, said.box_px)
        np.testing.assert_array_equal(again.score, said.score)
    elif isinstance(said, FreeSpace):
        assert (again.frame_id, again.resolution_m, again.origin[:2]) == (
            "base_link",
            said.resolution_m,
            said.origin[:2],
        )
        assert math.isclose(math.cos(again.origin[2] - said.origin[2]), 1.0, abs_tol=1e-12)
        np.testing.assert_array_equal(again.cells, said.cells)
    elif isinstance(said, PredictedObjects):
        np.testing.assert_array_equal(again.objects.center_m, said.objects.center_m)
        assert [len(rows) for rows in again.paths] == [len(rows) for rows in said.paths]
        for own, theirs in zip(sum(again.paths, ()), sum(said.paths, ()), strict=True):
            assert own.probability == theirs.probability
            np.testing.assert_array_equal(own.time_s, theirs.time_s)
            np.testing.assert_array_equal(own.place_m, theirs.place_m)
    elif isinstance(said, SignalStates):
        assert (again.frame_id, again.name.tolist(), again.colour.tolist()) == (
            "map",
            said.name.tolist(),
            said.colour.tolist(),
        )
        np.testing.assert_allclose(again.stop[:, :2], said.stop[:, :2], atol=1e-12)
        np.testing.assert_allclose(np.cos(again.stop[:, 2] - said.stop[:, 2]), 1.0, atol=1e-12)
    elif isinstance(said, Lanes):
        assert (again.frame_id, again.name.tolist(), again.direction.tolist()) == (
            "map",
            said.name.tolist(),
            said.direction.tolist(),
        )
        np.testing.assert_array_equal(again.width_m, said.width_m)
        np.testing.assert_array_equal(again.point_m, said.point_m)
    else:
        held = {name for name, value in vars(said).items() if name != "stamp_ns" and not math.isnan(value)}
        assert len(held) == 2 and all(getattr(again, name) == getattr(said, name) for name in held)


@given(st.lists(obstacle, max_size=6).map(detections))
def test_markers_carry_sizes_classes_scores_and_tracks_exactly(said: Detections) -> None:
    adapter = MarkerArrayObstacles()
    again = adapter.decode(wired(adapter, adapter.encode(said)))
    for name in ("size_m", "label", "score", "track_id"):
        np.testing.assert_array_equal(getattr(again, name), getattr(said, name))


@pytest.mark.parametrize("count", [0, 2])
def test_every_marker_array_begins_with_a_deleteall_that_bears_the_stamp(count: int) -> None:
    rows = [((i, 0.0, 0.0), (1.0, 1.0, 1.0), 0.0, "car", 1.0, "") for i in range(count)]
    message = MarkerArrayObstacles().encode(detections(rows))
    assert [m.action for m in message.markers] == [Marker.DELETEALL] + [Marker.ADD] * count
    assert {(m.header.frame_id, MarkerArrayObstacles().stamp_ns(message)) for m in message.markers} == {
        ("base_link", STAMP)
    }
    assert len({(m.ns, m.id) for m in message.markers[1:]}) == count, "RViz shows one marker for each name and number"


def test_nothing_seen_is_said_and_an_array_without_markers_bears_no_stamp() -> None:
    adapter = MarkerArrayObstacles()
    empty = adapter.decode(adapter.encode(Detections.none("base_link", STAMP)))
    assert len(empty) == 0 and (empty.frame_id, empty.stamp_ns) == ("base_link", STAMP)
    assert adapter.stamp_ns(MarkerArray()) is None
    assert len(adapter.decode(MarkerArray())) == 0
    poses = PoseArray()
    set_stamp(poses.header.stamp, STAMP)
    assert len(PoseArrayObstacles().decode(poses)) == 0 and PoseArrayObstacles().stamp_ns(poses) == STAMP
    assert TwistControl().stamp_ns(Twist()) is None


def test_only_errors_count_of_diagnostics() -> None:
    levels = {"fine": DiagnosticStatus.OK, "so so": DiagnosticStatus.WARN, "old": DiagnosticStatus.STALE}
    told = [DiagnosticStatus(level=level, name=name) for name, level in levels.items()]
    told.append(DiagnosticStatus(level=DiagnosticStatus.ERROR, name="radar: link", message="no data"))
    adapter = ADAPTERS["diagnostic_array_errors"]()
    assert adapter.decode(wired(adapter, DiagnosticArray(status=told))) == Diagnostics({"radar: link": "no data"})


def test_boxes_in_images_of_other_people() -> None:
    adapter = ImageMarkerBoxes()
    message = adapter.encode(image_boxes([((1.0, 2.0, 3.0, 4.0), "car", 0.5), ((5.0, 6.0, 7.0, 8.0), "car", 0.25)]))
    message.ns, message.outline_colors = "car", []
    plain = adapter.decode(message)
    assert plain.label.tolist() == ["car", "car"] and plain.score.tolist() == [1.0, 1.0]
    message.ns = ""
    assert adapter.decode(message).label.tolist() == ["unknown", "unknown"]
    message.points = message.points[:-1]
    with pytest.raises(ValueError, match=r"ImageMarker of type 2 with 15 points, expected LINE_LIST"):
        adapter.decode(message)
    message.points, message.type = [], ImageMarker.CIRCLE
    with pytest.raises(ValueError, match=r"ImageMarker of type 0 with 0 points"):
        adapter.decode(message)


def marker(**fields: Any) -> Marker:
    made = Marker(type=Marker.CUBE, action=Marker.ADD, **fields)
    made.header.frame_id = "lidar"
    return made


def test_markers_of_other_people() -> None:
    shapes = (Marker.CUBE, Marker.CYLINDER, Marker.SPHERE, Marker.ARROW, Marker.TEXT_VIEW_FACING, Marker.LINE_LIST)
    array = MarkerArray(markers=[marker(id=i, text="just a note") for i in range(len(shapes))])
    for row, shape in zip(array.markers, shapes, strict=True):
        row.type = shape
    array.markers.append(Marker(action=Marker.DELETE, type=Marker.CUBE))
    read = MarkerArrayObstacles().decode(array)
    assert len(read) == 3 and read.frame_id == "lidar"
    assert read.label.tolist() == ["unknown"] * 3 and read.score.tolist() == [1.0] * 3
    assert read.yaw_rad.tolist() == [0.0] * 3, "a quaternion that was never set is no turn"


def test_markers_that_cannot_be_compared_are_refused() -> None:
    two = MarkerArray(markers=[marker(), marker()])
    two.markers[1].header.frame_id = "camera"
    with pytest.raises(ValueError, match="several frames: camera, lidar"):
        MarkerArrayObstacles().decode(two)
    with pytest.raises(ValueError, match="could not convert"):
        MarkerArrayObstacles().decode(MarkerArray(markers=[marker(text="score=high")]))


def test_a_command_that_lacks_what_the_type_carries_is_nought() -> None:
    for name in ("twist_control", "twist_stamped_control"):
        adapter = ADAPTERS[name]()
        again = adapter.decode(adapter.encode(Control(STAMP, steering_rad=0.2)))
        assert (again.speed_mps, again.yaw_rate_radps) == (0.0, 0.0) and math.isnan(again.steering_rad)


def test_yaw_of_a_full_orientation() -> None:
    angles = np.array([-3.0, -0.5, 0.0, 1.0, 3.1])
    np.testing.assert_allclose(yaws(np.array([quaternion_of_yaw(a) for a in angles])), angles)
    assert yaws(np.array([])).shape == (0,)
    q = Quaternion()
    assert yaws(np.array([[q.x, q.y, q.z, q.w], [0, 0, 0, 0]])).tolist() == [0.0, 0.0]


def test_an_adapter_is_found_by_type_and_role_or_by_name() -> None:
    assert isinstance(adapter_for("detections", "visualization_msgs/msg/MarkerArray"), MarkerArrayObstacles)
    for role, type_name, name, said in (
        (
            "detections",
            "geometry_msgs/msg/Twist",
            "",
            "no adapter reads detections from geometry_msgs/msg/Twist",
        ),
        ("control", "geometry_msgs/msg/Twist", "twist_contrl", "did you mean 'twist_control'"),
        (
            "control",
            "geometry_msgs/msg/TwistStamped",
            "twist_control",
            "reads control from geometry_msgs/msg/Twist;",
        ),
        ("detections", "geometry_msgs/msg/Twist", "twist_control", "reads control from geometry_msgs/msg/Twist;"),
    ):
        with pytest.raises(UsageError, match=said):
            adapter_for(role, type_name, name)


def test_an_adapter_that_only_reads_says_so() -> None:
    class ReadsOnly(TwistControl):
        encode = Adapter.encode

    with pytest.raises(UsageError, match="can be read but not published for a callable"):
        ReadsOnly().encode(Control(None))
