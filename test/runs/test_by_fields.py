# SPDX-License-Identifier: Apache-2.0
"""Messages of any type, read by the paths of fields that a stack file names."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path as File
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ros_support import LIMIT_S, Peer, until
from ros_types import installed, make, wired

from mt_nodes.base.errors import UsageError
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.data.field_paths import FieldPath, element_of
from mt_nodes.data.message_headers import set_stamp
from mt_nodes.data.output_fields import OutputFields
from mt_nodes.data.outputs import Detections
from mt_nodes.data.stack_topics import OutputTopic
from mt_nodes.engine.pairing import Inbox
from mt_nodes.nodes.adapter_choice import adapter_of
from mt_nodes.nodes.by_fields import ByFields
from mt_nodes.nodes.output_listener import OutputListener
from mt_nodes.stacks.message_adapter import adapter_for
from mt_nodes.stacks.stack import load_stack

STAMP = 1_700_000_000_123_456_789
TYPE = "vision_msgs/msg/Detection3DArray"
OBJECTS = {
    "each": "detections",
    "center": "bbox.center.position",
    "size": "bbox.size",
    "yaw": "bbox.center.orientation",
    "label": "results[0].hypothesis.class_id",
    "score": "results[0].hypothesis.score",
    "track": "id",
}
SAID = Detections.make(
    "base_link",
    STAMP,
    [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
    [[4.0, 2.0, 1.5], [0.5, 0.5, 1.75]],
    [0.5, -3.0],
    ["car", "7"],
    [0.5, 1.0],
    ["", "t2"],
)


@pytest.fixture(autouse=True, scope="module")
def _packages() -> Iterator[None]:
    with installed():
        yield


def objects(said: Detections = SAID) -> Any:
    return adapter_for("detections", TYPE).encode(said)


# --- paths ------------------------------------------------------------------------------------------------------------

names = st.from_regex(r"[a-z][a-z0-9_]{0,4}", fullmatch=True)
steps = st.lists(st.tuples(names, st.lists(st.integers(0, 3), max_size=2)), max_size=4).map(
    lambda parts: tuple(step for name, places in parts for step in (name, *places))
)


@given(steps)
def test_a_path_is_written_as_it_is_read(taken: tuple[str | int, ...]) -> None:
    path = FieldPath(taken)
    assert FieldPath.parse(str(path), "here") == path


@given(steps, st.floats())
def test_a_path_leads_to_what_lies_at_its_end(taken: tuple[str | int, ...], treasure: float) -> None:
    """In the message as in its type; one step beside it leads nowhere in either."""
    message, kind, types = treasure, "double", {}
    for i, step in enumerate(reversed(taken)):
        if isinstance(step, int):
            message, kind = [math.nan] * step + [message], f"sequence<{kind}>" if i % 2 else f"{kind}[{step + 1}]"
        else:
            message, types[f"made/T{i}"] = SimpleNamespace(**{step: message}), {step: kind}
            kind = f"made/T{i}"
    path = FieldPath(taken)
    assert path.of(message) is treasure
    known = lambda name: types.get(name, {})  # noqa: E731
    assert path.type_in(kind, known, "here") == "double"
    beyond = FieldPath((*taken, "x"))
    with pytest.raises(ValueError, match="leads nowhere"):
        beyond.of(message)
    with pytest.raises(UsageError, match="double is no message, so it has no field 'x'"):
        beyond.type_in(kind, known, "here")


@pytest.mark.parametrize(
    "text",
    ["", "..", "a.", ".a", "a..b", "a[]", "a[-1]", "a[x]", "[0]", "a b", "__class__", "a.__class__", "a()", 3, None],
)
def test_what_is_no_path_is_refused(text: Any) -> None:
    with pytest.raises(UsageError, match=r"here: got .* expected a path of fields such as pose\.position"):
        FieldPath.parse(text, "here")


@pytest.mark.parametrize(
    "kind, element",
    [
        ("sequence<geometry_msgs/Pose>", "geometry_msgs/Pose"),
        ("sequence<double, 3>", "double"),
        ("uint8[16]", "uint8"),
        ("geometry_msgs/Pose[2]", "geometry_msgs/Pose"),
        ("string<=5>", None),
        ("double", None),
        ("geometry_msgs/Pose", None),
    ],
)
def test_elements_of_lists(kind: str, element: str | None) -> None:
    assert element_of(kind) == element


# --- what is read -----------------------------------------------------------------------------------------------------


def test_obstacles_by_fields_are_those_of_the_adapter() -> None:
    """Nothing seen included."""
    adapter = ByFields("detections", TYPE, OBJECTS)
    for said in (SAID, Detections.none("base_link", STAMP)):
        message = wired(objects(said))
        read = adapter.decode(message)
        assert (read.frame_id, read.stamp_ns, adapter.stamp_ns(message)) == ("base_link", STAMP, STAMP)
        for name in ("center_m", "size_m", "label", "score", "track_id", "velocity_mps"):
            np.testing.assert_array_equal(getattr(read, name), getattr(said, name))
        np.testing.assert_allclose(read.yaw_rad, said.yaw_rad)


def test_units_signs_names_and_numbers_one_by_one() -> None:
    fields = {
        "each": "detections",
        "center": ["bbox.center.position.y", {"path": "bbox.center.position.x", "scale": -1}, "bbox.size.z"],
        "size": {"path": "bbox.size", "scale": 0.5},
        "yaw": {"path": "bbox.center.orientation", "scale": -1},
        "label": {"path": "results[0].hypothesis.class_id", "names": {7: "pedestrian"}},
        "score": {"path": "results[0].hypothesis.score", "scale": 0.01},
        "velocity": "bbox.size",
        "frame_id": "detections[0].id",
    }
    read = ByFields("detections", TYPE, fields).decode(wired(objects()))
    assert read.center_m.tolist() == [[2.0, -1.0, 1.5], [5.0, -4.0, 1.75]]
    assert read.size_m.tolist() == [[2.0, 1.0, 0.75], [0.25, 0.25, 0.875]]
    assert read.yaw_rad.tolist() == pytest.approx([-0.5, 3.0]) and read.score.tolist() == [0.005, 0.01]
    assert read.label.tolist() == ["car", "pedestrian"] and read.track_id.tolist() == ["", ""]
    assert read.velocity_mps.tolist() == SAID.size_m.tolist() and read.frame_id == ""


def test_a_class_without_a_name_is_unknown() -> None:
    fields = {"each": "detections", "center": "bbox.center.position", "label": "id"}
    assert ByFields("detections", TYPE, fields).decode(objects()).label.tolist() == ["unknown", "t2"]


def test_a_track_may_be_a_uuid_and_a_place_the_thing_itself() -> None:
    message = make("autoware_perception_msgs/msg/TrackedObjects")
    message.objects = [make("autoware_perception_msgs/msg/TrackedObject")]
    message.objects[0].object_id.uuid = [255, *range(15)]
    fields = {"each": "objects", "center": "shape.dimensions", "track": "object_id", "label": "existence_probability"}
    read = ByFields("detections", "autoware_perception_msgs/msg/TrackedObjects", fields).decode(wired(message))
    assert read.track_id.tolist() == ["ff000102030405060708090a0b0c0d0e"] and read.label.tolist() == ["0.0"]
    area = make("geometry_msgs/msg/PolygonStamped")
    area.polygon.points = [make("geometry_msgs/msg/Point32", x=1.0, y=2.0, z=0.5)]
    adapter = ByFields("detections", "geometry_msgs/msg/PolygonStamped", {"each": "polygon.points", "center": "."})
    assert adapter.decode(wired(area)).center_m.tolist() == [[1.0, 2.0, 0.5]]


def test_a_command_by_fields() -> None:
    message = make("ackermann_msgs/msg/AckermannDriveStamped")
    message.drive.steering_angle, message.drive.speed = 0.5, 4.0
    set_stamp(message.header.stamp, STAMP)
    fields = {"steering_rad": {"path": "drive.steering_angle", "scale": -0.5}, "speed_mps": "drive.speed"}
    adapter = ByFields("control", "ackermann_msgs/msg/AckermannDriveStamped", fields)
    read = adapter.decode(wired(message))
    assert (read.stamp_ns, read.steering_rad, read.speed_mps) == (STAMP, -0.25, 4.0)
    assert math.isnan(read.brake) and adapter.stamped


def test_boxes_by_fields_from_edges_or_from_middle_and_size() -> None:
    type_name = "vision_msgs/msg/Detection2DArray"
    message = make(type_name, detections=[make("vision_msgs/msg/Detection2D")])
    box = message.detections[0].bbox
    box.center.position.x, box.center.position.y, box.size_x, box.size_y = 30.0, 40.0, 8.0, 4.0
    sides = ["bbox.size_x", "bbox.size_y"]
    middle = {"each": "detections", "center": "bbox.center.position", "size": sides}
    edges = {"each": "detections", "edges": [*sides, "bbox.center.position.x", "bbox.center.position.y"]}
    read = [ByFields("boxes", type_name, fields).decode(wired(message)).box_px.tolist() for fields in (middle, edges)]
    assert read == [[[26.0, 38.0, 34.0, 42.0]], [[8.0, 4.0, 30.0, 40.0]]]


def test_a_path_by_fields() -> None:
    point = make("autoware_planning_msgs/msg/TrajectoryPoint", longitudinal_velocity_mps=2.5, heading_rate_rps=0.25)
    point.pose.position.x, point.pose.position.y, point.time_from_start.nanosec = 1.0, 2.0, 500_000_000
    message = make("autoware_planning_msgs/msg/Trajectory", points=[point])
    places = {"each": "points", "position": "pose.position"}
    more = {
        "yaw": {"path": "heading_rate_rps", "scale": -2},
        "speed_mps": "longitudinal_velocity_mps",
        "time_s": "time_from_start",
    }
    type_name = "autoware_planning_msgs/msg/Trajectory"
    full, bare = (ByFields("path", type_name, f).decode(wired(message)) for f in ({**places, **more}, places))
    assert (full.pose.tolist(), bare.pose.tolist()) == ([[1.0, 2.0, -0.5]], [[1.0, 2.0, 0.0]])
    assert (full.speed_mps.tolist(), full.time_s.tolist()) == ([2.5], [0.5])
    assert np.isnan(bare.speed_mps).all() and np.isnan(bare.time_s).all()


@pytest.mark.parametrize(
    "type_name, fields, stamp, stamped",
    [
        ("nav_msgs/msg/Path", {"each": "poses", "center": "pose.position"}, STAMP, True),
        ("geometry_msgs/msg/Polygon", {"each": "points", "center": "."}, None, False),
        ("geometry_msgs/msg/Polygon", {"each": "points", "center": ".", "stamp": "points[0].x"}, 2_500_000_000, True),
        ("builtin_interfaces/msg/Time", {"stamp": {"path": "sec", "scale": 0.001}}, 1_700_000_000_000_000, True),
    ],
)
def test_the_stamp_is_named_or_the_message_s_own(type_name: str, fields: Any, stamp: int | None, stamped: bool) -> None:
    message = make(type_name)
    if type_name == "geometry_msgs/msg/Polygon":
        message.points = [make("geometry_msgs/msg/Point32", x=2.5)]
    else:
        set_stamp(getattr(getattr(message, "header", None), "stamp", message), STAMP)
    role = "control" if "each" not in fields else "detections"
    fields = fields if role == "detections" else {**fields, "speed_mps": "nanosec"}
    adapter = ByFields(role, type_name, fields)
    assert (adapter.stamp_ns(wired(message)), adapter.stamped) == (stamp, stamped)


@settings(max_examples=30)
@given(st.integers(0, 2**62), st.sampled_from([("1e-9", 1), ("1e-6", 1000), ("0.001", 10**6)]))
def test_whole_numbers_are_stamps_to_the_nanosecond(count: int, unit: tuple[str, int]) -> None:
    """A stamp finds its input exactly or not at all, and a double has no room for the nanoseconds of today."""
    fields = {"stamp": {"path": "t", "scale": float(unit[0])}, "speed_mps": "t"}
    source = OutputFields.parse("control", fields, "here").one("stamp")
    assert source is not None and source.nanoseconds(SimpleNamespace(t=count)) == count * unit[1]


def test_the_frame_of_a_message_that_names_none_stands_in_the_stack_file() -> None:
    fields = {"each": "points", "center": ".", "frame": "base_link"}
    adapter = ByFields("detections", "geometry_msgs/msg/Polygon", fields)
    assert adapter.decode(make("geometry_msgs/msg/Polygon")).frame_id == "base_link"


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change, said",
    [
        (
            {"each": "detection"},
            r"fields\.each: detection: vision_msgs/Detection3DArray has no field 'detection'; did ",
        ),
        ({"each": "header"}, r"fields\.each: header is std_msgs/Header, expected a list"),
        (
            {"center": "bbox.centre"},
            r"BoundingBox3D has no field 'centre'; did you mean 'center'\?; its fields are",
        ),
        ({"center": "bbox"}, r"fields\.center: bbox is vision_msgs/BoundingBox3D, expected something with x, y and z"),
        ({"center": "zzz"}, r"Detection3D has no field 'zzz'; its fields are header \(std_msgs/Header\), results \("),
        ({"size": "bbox.size.x"}, r"fields\.size: bbox\.size\.x is double, expected something with x, y and z"),
        ({"size": ["bbox.size.x", "id", "bbox.size.z"]}, r"fields\.size: id is string, expected a number"),
        ({"yaw": "bbox.size"}, r"fields\.yaw: .* expected a number \(yaw\), or a quaternion"),
        ({"score": "id"}, r"fields\.score: id is string, expected a number"),
        ({"score": "bbox[0]"}, r"bbox\[0\]: got an index into vision_msgs/BoundingBox3D, expected a list"),
        ({"score": "results[0].pose.covariance[36]"}, r"got place 36 of double\[36\], expected 0 to 35"),
        ({"label": "bbox"}, r"fields\.label: .* expected a text, a number or a UUID"),
        ({"stamp": "header"}, r"fields\.stamp: .* expected a builtin_interfaces/Time, or a number of seconds"),
        ({"frame_id": "detections"}, r"fields\.frame_id: .* expected a text"),
    ],
)
def test_a_path_that_the_type_does_not_have_is_refused_before_anything_starts(change: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ByFields("detections", TYPE, {**OBJECTS, **change})


def test_a_type_that_is_not_installed_is_refused_with_where_to_get_it() -> None:
    with pytest.raises(UsageError, match="Python package unheard_of_msgs is missing; apt install ros-jazzy-unheard"):
        ByFields("detections", "unheard_of_msgs/msg/Things", OBJECTS)


def test_an_object_that_lacks_what_the_path_names_is_an_error_of_the_message() -> None:
    message = objects()
    message.detections[1].results = []
    with pytest.raises(ValueError, match=r"path results\[0\]\.hypothesis\.class_id leads nowhere: list index out of"):
        ByFields("detections", TYPE, OBJECTS).decode(wired(message))


def test_a_list_of_another_length_than_expected_is_an_error_of_the_message() -> None:
    solids = make("derived_object_msgs/msg/ObjectArray", objects=[make("derived_object_msgs/msg/Object")])
    fields = {"each": "objects", "center": "pose.position", "size": "shape.dimensions"}
    adapter = ByFields("detections", "derived_object_msgs/msg/ObjectArray", fields)
    solids.objects[0].shape.dimensions = [4.0, 2.0, 1.5]
    assert adapter.decode(wired(solids)).size_m.tolist() == [[4.0, 2.0, 1.5]]
    solids.objects[0].shape.dimensions = [4.0, 2.0]
    with pytest.raises(ValueError, match=r"path shape\.dimensions: got 2 numbers, expected 3"):
        adapter.decode(wired(solids))


def stack_file(directory: File, outputs: str, start: str = "command: [x]") -> File:
    path = directory / "s.yaml"
    path.write_text(f"{start}\noutputs: {outputs}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "outputs, said",
    [
        ("{detections: {topic: /o, fields: {each: a, center: b}}}", "expected a type beside them"),
        ("{detections: {type: a/msg/B, adapter: c, fields: {each: a, center: b}}}", "and neither adapter nor params"),
        ("{detections: {type: a/msg/B, params: {c: 1}, fields: {each: a, center: b}}}", "and neither adapter nor"),
        ("{detections: {type: a/msg/B, fields: {each: a}}}", r"detections\.fields: got each, expected also center"),
        ("{detections: {type: a/msg/B, fields: {each: a, centre: b}}}", "unknown key 'centre'; did you mean 'center'"),
        ("{boxes: {type: a/msg/B, fields: {each: a, center: b}}}", "expected also edges or size"),
        ("{path: {type: a/msg/B, fields: {each: a, position: b, speed: c}}}", "did you mean 'speed_mps'"),
        ("{control: {type: a/msg/B, fields: {stamp: a}}}", "got stamp, expected also steering_rad or speed_mps or"),
        ("{control: {type: a/msg/B, fields: {speed_mps: [a]}}}", r"speed_mps: got a list of 1, expected a number"),
        ("{control: {type: a/msg/B, fields: {speed_mps: {path: a, scale: x}}}}", r"speed_mps\.scale: got str 'x'"),
        ("{control: {type: a/msg/B, fields: {speed_mps: {scale: 2}}}}", "speed_mps: missing path"),
        ("{control: {type: a/msg/B, fields: {speed_mps: {path: a, sacle: 2}}}}", "did you mean 'scale'"),
        (
            "{detections: {type: a/msg/B, fields: {each: a, center: [x, y]}}}",
            "got a list of 2, expected something",
        ),
        ("{detections: {type: a/msg/B, fields: {each: a, center: b, label: {path: c, names: [d]}}}}", "texts by value"),
        ("{detections: {type: a/msg/B, fields: {each: a, center: b, frame: c, frame_id: d}}}", "no frame_id beside it"),
        ("{control: {type: a/msg/B, fields: [a]}}", "got list"),
    ],
)
def test_what_a_stack_file_cannot_say_is_refused_when_it_is_read(tmp_path: File, outputs: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load_stack(str(stack_file(tmp_path, outputs)))


def test_a_hosted_callable_needs_types_that_are_written(tmp_path: File) -> None:
    outputs = "{control: {type: a/msg/B, fields: {speed_mps: a}}}"
    assert load_stack(str(stack_file(tmp_path, outputs))).outputs["control"].fields == {"speed_mps": "a"}
    with pytest.raises(UsageError, match="a callable needs types that can be written"):
        load_stack(str(stack_file(tmp_path, outputs, "callable: a:b")))
    with pytest.raises(UsageError, match="can be read but not published for a callable"):
        ByFields("detections", TYPE, OBJECTS).encode(SAID)


# --- over topics ------------------------------------------------------------------------------------------------------


def test_a_stack_is_heard_by_fields(ending: ExitStack, domains: tuple[int, ...]) -> None:
    row = OutputTopic("/objects", "nav_msgs/msg/Path", fields={"each": "poses", "center": "pose.position"})
    assert isinstance(adapter_of("detections", row), ByFields)
    peer, inbox = Peer(ending, domains[0]), Inbox(["detections"])
    listener = OutputListener(peer.node, {"detections": row}, lambda topic: topic, inbox, classes={"unknown": "car"})
    stack = Peer(ending, domains[0], "stack")
    publisher = stack.publisher("nav_msgs/msg/Path", "/objects")
    until(lambda: publisher.get_subscription_count() and all(listener.publisher_counts().values()))
    message = make("nav_msgs/msg/Path", poses=[make("geometry_msgs/msg/PoseStamped")])
    set_stamp(message.header.stamp, STAMP)
    message.poses[0].pose.position.x = 7.0
    ticket = inbox.expect(STAMP)
    publisher.publish(message)
    assert inbox.wait(ticket, process_time_s() + LIMIT_S), listener.failure
    heard, _ = ticket.parts["detections"]
    assert heard.part.center_m.tolist() == [[7.0, 0.0, 0.0]] and heard.wire.type == "nav_msgs/msg/Path"
    assert heard.part.label.tolist() == ["car"], "by the name that the stack file gives its class"
