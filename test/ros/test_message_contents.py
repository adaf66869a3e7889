# SPDX-License-Identifier: Apache-2.0
"""What `mt blame` reads of messages: points, boxes, images, and the fields of all others."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import Point, PoseStamped, TwistStamped
from nav_msgs.msg import Path
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Image
from std_msgs.msg import String
from visualization_msgs.msg import Marker, MarkerArray

from mt_nodes.nodes.message_contents import content_of, stamp_reader
from mt_nodes.runs.blame.divergence import BoxesContent, FieldsContent, PictureContent, divergence
from mt_nodes.runs.blame.protection import Protection


def read(message: Any) -> tuple[str, bytes]:
    kind = type(message)
    return f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}", serialize_message(message)


def test_fields_go_by_their_paths_and_stamps_are_none() -> None:
    path = Path(poses=[PoseStamped(), PoseStamped()])
    path.poses[1].pose.position.x = 3.0
    path.poses[1].header.stamp.sec = 7
    found = content_of(*read(path))
    assert isinstance(found, FieldsContent)
    assert found.numbers["poses[].pose.position.x"].tolist() == [0.0, 3.0]
    assert found.numbers["len(poses)"].tolist() == [2.0] and not any("stamp" in name for name in found.numbers)
    later = content_of(*read(Path(poses=path.poses[:1])))
    assert divergence(found, later, Protection()).whole == 1.0
    texts = [content_of(*read(String(data=text))) for text in ("go", "stop")]
    assert divergence(*texts, Protection()).words == "data differs"


def test_cubes_are_obstacles_and_lines_are_not() -> None:
    cube = Marker(type=Marker.CUBE, action=Marker.ADD, ns="car")
    cube.scale.x = cube.scale.y = cube.scale.z = 2.0
    cube.pose.orientation.w = 1.0
    found = content_of(*read(MarkerArray(markers=[cube])))
    assert isinstance(found, BoxesContent) and found.boxes.label.tolist() == ["car"]
    strip = Marker(type=Marker.LINE_STRIP, action=Marker.ADD, points=[Point(x=1.0), Point(x=2.0)])
    assert isinstance(content_of(*read(MarkerArray(markers=[strip]))), FieldsContent)


def test_images_of_eight_bits_are_pictures_and_deeper_ones_fields() -> None:
    image = Image(height=2, width=3, step=9, encoding="rgb8", data=bytes(range(18)))
    found = content_of(*read(image))
    assert isinstance(found, PictureContent) and found.values.shape == (2, 3, 3)
    assert np.allclose(found.values.reshape(-1) * 255, range(18))
    deep = Image(height=1, width=2, step=4, encoding="mono16", data=bytes(4))
    assert isinstance(content_of(*read(deep)), FieldsContent)


def test_the_stamp_is_that_of_the_header_without_reading_a_large_message_whole() -> None:
    image, twist = Image(), TwistStamped()
    for message in (image, twist):
        message.header.stamp.sec, message.header.stamp.nanosec = 12, 34
    types = {name: read(message)[0] for name, message in (("i", image), ("t", twist), ("s", String()))}
    stamp = stamp_reader(lambda: types)
    assert [stamp(name, read(m)[1]) for name, m in (("i", image), ("t", twist))] == [12_000_000_034] * 2
    assert stamp("s", read(String())[1]) is None
