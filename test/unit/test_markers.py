# SPDX-License-Identifier: Apache-2.0
"""Outputs of a callable as messages: read back, the same messages as ROS makes, and in evidence files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.highlevel import AnyReader

from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.markers import (
    ADD,
    COLOURS,
    CUBE,
    DELETE_ALL,
    MARKERS,
    TWIST,
    encode_boxes,
    encode_control,
    encode_detections,
    encode_path,
)
from mt_nodes.data.cdr.output_wires import wires_of
from mt_nodes.data.outputs import Control, Detections, ImageBoxes, Output
from mt_nodes.data.outputs import Path as LanePath
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.evidence import write_evidence
from mt_nodes.stacks.stack import load_stack

STAMP_NS = 1_700_000_000_123_456_789
SEEN = Detections.make(
    "base_link",
    STAMP_NS,
    [[12.5, -3.25, 0.8], [7.0, 1.0, 0.9]],
    [[4.2, 1.8, 1.5], [0.6, 0.5, 1.7]],
    [0.5, -2.0],
    ["car", "tram"],
    [0.875, 1.0],
    ["7", ""],
)
NOTHING = Detections.none("velodyne", STAMP_NS)


def markers(said: Detections) -> Any:
    return codec.decode(MARKERS, encode_detections(said)).markers


def test_every_array_begins_by_clearing_and_says_the_instant() -> None:
    for said in (SEEN, NOTHING):
        clear, *boxes = markers(said)
        assert (clear.action, clear.header.frame_id) == (DELETE_ALL, said.frame_id)
        assert codec.stamp_ns_of(clear.header) == STAMP_NS
        assert len(boxes) == len(said)


def test_a_box_is_where_and_what_it_was_said_to_be() -> None:
    _, car, tram = markers(SEEN)
    assert (car.type, car.action, car.ns, car.id, car.text) == (CUBE, ADD, "car", 0, "score=0.875 track=7")
    assert [car.pose.position.x, car.pose.position.y, car.pose.position.z] == [12.5, -3.25, 0.8]
    assert [car.scale.x, car.scale.y, car.scale.z] == [4.2, 1.8, 1.5]
    assert 2 * np.arctan2(car.pose.orientation.z, car.pose.orientation.w) == pytest.approx(0.5)
    assert (tram.ns, tram.id, tram.text) == ("tram", 1, "score=1.0")
    colour = [tram.color.r, tram.color.g, tram.color.b]
    assert colour == pytest.approx(COLOURS["unknown"]) and tram.color.a > 0


@pytest.mark.parametrize("said", [SEEN, NOTHING], ids=["seen", "nothing"])
def test_ros_makes_and_reads_the_same_message(said: Detections) -> None:
    pytest.importorskip("rclpy", reason="needs rclpy")
    from rclpy.serialization import deserialize_message, serialize_message
    from visualization_msgs.msg import MarkerArray

    from mt_nodes.nodes.adapters.marker_adapters import MarkerArrayObstacles

    adapter = MarkerArrayObstacles()
    ours = encode_detections(said)
    theirs = serialize_message(adapter.encode(said))
    assert len(ours) == len(theirs)  # not the bytes: what pads them is left to chance there
    assert deserialize_message(ours, MarkerArray) == deserialize_message(theirs, MarkerArray)
    back = adapter.decode(deserialize_message(ours, MarkerArray))
    assert (back.frame_id, back.stamp_ns) == (said.frame_id, STAMP_NS)
    for name in ("center_m", "size_m", "label", "score", "track_id"):
        assert np.array_equal(getattr(back, name), getattr(said, name))
    assert np.allclose(back.yaw_rad, said.yaw_rad)


def test_ros_reads_a_command() -> None:
    pytest.importorskip("rclpy", reason="needs rclpy")
    from geometry_msgs.msg import TwistStamped
    from rclpy.serialization import deserialize_message

    from mt_nodes.nodes.adapters.command_adapters import TwistStampedControl

    said = Control(STAMP_NS, speed_mps=8.5)
    message = deserialize_message(encode_control(said), TwistStamped)
    assert message == TwistStampedControl().encode(said)
    assert (message.twist.linear.x, message.twist.angular.z) == (8.5, 0.0)


def test_wires_go_by_the_topics_of_the_stack() -> None:
    stack = load_stack("reference_detector")
    (wire,) = wires_of(Output(detections=SEEN, control=Control(STAMP_NS)), stack.output_topics, STAMP_NS)
    assert (wire.topic, wire.type, wire.stamp_ns) == ("/perception/obstacles", MARKERS, STAMP_NS)
    assert wires_of(Output(), stack.output_topics, STAMP_NS) == ()


BOXES = ImageBoxes.make("camera", STAMP_NS, [(1.5, 2, 30, 40), (50, 60, 70, 80)], ["pedestrian", "car"], [0.5, 1.0])


@pytest.mark.parametrize("said", [BOXES, ImageBoxes.none("camera", STAMP_NS)], ids=["two", "none"])
def test_ros_reads_boxes_as_the_adapter_writes_them(said: ImageBoxes) -> None:
    pytest.importorskip("rclpy", reason="needs rclpy")
    from rclpy.serialization import deserialize_message
    from visualization_msgs.msg import ImageMarker

    from mt_nodes.nodes.adapters.marker_adapters import ImageMarkerBoxes

    message = deserialize_message(encode_boxes(said), ImageMarker)
    assert message == ImageMarkerBoxes().encode(said)
    assert np.array_equal(ImageMarkerBoxes().decode(message).box_px, said.box_px)


@pytest.mark.parametrize("poses", [[], [(0.0, 0.5, 0.1), (2.0, 0.7, -0.2)]])
def test_ros_reads_a_path_as_the_adapter_writes_it(poses: list[tuple[float, float, float]]) -> None:
    pytest.importorskip("rclpy", reason="needs rclpy")
    from nav_msgs.msg import Path as PathMessage
    from rclpy.serialization import deserialize_message

    from mt_nodes.nodes.adapters.path_adapters import PathPoses

    said = LanePath.make("base_link", STAMP_NS, poses)
    message = deserialize_message(encode_path(said), PathMessage)
    assert message == PathPoses().encode(said)


def test_a_camera_stacks_answer_goes_out_on_its_topics() -> None:
    output = Output(boxes=BOXES, path=LanePath.make("base_link", STAMP_NS, []), control=Control(STAMP_NS))
    wires = wires_of(output, load_stack("reference_camera").output_topics, STAMP_NS)
    assert {w.topic for w in wires} == {"/perception/image_boxes", "/planning/path", "/control/command"}


def test_evidence_opens_with_schema_and_boxes(tmp_path: Path) -> None:
    from mt_nodes.world.scene.drive import generate_drive

    (bundle,) = generate_drive(1)
    stack = load_stack("reference_detector")
    outputs = {"source": wires_of(Output(detections=SEEN), stack.output_topics, bundle.stamp_ns), "followup": ()}
    write_evidence(tmp_path / "e.mcap", Pair(0, 0, "noise"), bundle, bundle, outputs)
    with AnyReader([tmp_path / "e.mcap"]) as reader:
        (connection,) = [c for c in reader.connections if c.topic == "/mt/source/perception/obstacles"]
        assert connection.msgtype == MARKERS
        # What Foxglove reads the message by: the whole definition, with the types that it is made of.
        for type_name in ("visualization_msgs/Marker", "geometry_msgs/Pose", "std_msgs/ColorRGBA"):
            assert f"MSG: {type_name}" in connection.msgdef.data
        ((_, received_ns, raw),) = reader.messages([connection])
        assert raw == encode_detections(SEEN)
        assert received_ns == bundle.stamp_ns
        assert TWIST not in {c.msgtype for c in reader.connections}
        assert json.dumps(sorted(c.topic for c in reader.connections)).count("/mt/followup/") == 1
