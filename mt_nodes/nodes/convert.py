# SPDX-License-Identifier: Apache-2.0
"""Between ROS messages and the core's types of what a stack takes."""

from __future__ import annotations

import array
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Header

from mt_nodes.data.cdr.codec import camera_info_from_msg, image_from_msg
from mt_nodes.data.cdr.point_fields import Field, point_dtype, rows_of
from mt_nodes.data.cdr.radar_codec import radar_from_msg
from mt_nodes.data.message_headers import set_stamp, stamp_of
from mt_nodes.data.messages import CameraInfo, Cloud, Image, Message, WorldMessage
from mt_nodes.engine.plan import ReplayedTopic
from mt_nodes.nodes.point_cloud2 import create_cloud, read_points
from mt_nodes.stacks.message_adapter import Adapter, adapter_for
from mt_nodes.stacks.stack import Stack

SENSOR_TYPES = {
    "lidar": "sensor_msgs/msg/PointCloud2",
    "camera": "sensor_msgs/msg/Image",
    "camera_info": "sensor_msgs/msg/CameraInfo",
    "radar": "sensor_msgs/msg/PointCloud2",
}
#: Role of an input -> role of the adapters that read and write what a world tells so.
TOLD_AS = {"objects": "detections", "odometry": "odometry", "route": "path", "signals": "signals", "lanes": "lanes"}


def cloud_from_message(topic: str, message: PointCloud2) -> Cloud:
    """Return the core's cloud of a message.

    Rows lose their padding, points keep theirs. May change ``message`` in place, into what means the same.
    Raises UsageError: sizes that do not fit each other, unknown datatypes, no x, y or z.
    """
    used = message.width * message.point_step
    fields = [Field(f.name, f.offset, f.datatype, f.count) for f in message.fields]
    point_dtype(fields, message.point_step, bool(message.is_bigendian), topic)
    rows = rows_of(np.frombuffer(message.data, np.uint8), message.height, message.row_step, used, topic)
    if message.row_step != used:
        message.data, message.row_step = array.array("B", rows.tobytes()), used
    for field in message.fields:
        field.count = max(1, field.count)  # some drivers leave it at 0 for a single element
    points = np.asarray(read_points(message)).reshape(-1)
    return Cloud(topic, stamp_of(message) or 0, message.header.frame_id, points, message.height, message.is_dense)


def cloud_to_message(cloud: Cloud, like: PointCloud2) -> PointCloud2:
    """Return the message of a cloud that has the field layout of ``like``."""
    header = Header(frame_id=cloud.frame_id)
    set_stamp(header.stamp, cloud.stamp_ns)
    message = create_cloud(header, like.fields, cloud.points, cloud.points.dtype.itemsize)
    message.height, message.width, message.is_dense = cloud.height, cloud.width, cloud.is_dense
    message.row_step = message.width * message.point_step
    return message


def sensor_from_message(role: str, topic: str, message: Any) -> Cloud | Image | CameraInfo:
    """Return the core's form of a sensor message of a role (``lidar``, ``camera``, ``camera_info``, ``radar``)."""
    if role == "lidar":
        return cloud_from_message(topic, message)
    if role == "radar":
        return radar_from_msg(topic, message)
    return image_from_msg(topic, message) if role == "camera" else camera_info_from_msg(topic, message)


def message_type(stack: Stack, role: str) -> str:
    """Return the message type in which a stack takes an input; of a camera that of raw images."""
    return stack.world_inputs[role].type if role in stack.world_inputs else SENSOR_TYPES[role]


def reader_of(role: str, topic: str, type_name: str) -> Callable[[Any], Message]:
    """Return what reads the messages of an input.

    Raises UsageError: no adapter reads that role from messages of that type.
    """
    if role not in TOLD_AS:
        return lambda message: sensor_from_message(role, topic, message)
    adapter = _adapter(role, type_name)

    def read(message: Any) -> WorldMessage:
        said: Any = adapter.decode(message)
        return WorldMessage(topic, role, adapter.stamp_ns(message) or 0, said.frame_id, said)

    return read


def world_to_message(told: WorldMessage, type_name: str) -> Any:
    """Return the message of what a world tells.

    Raises UsageError: no adapter writes that role as messages of that type.
    """
    return _adapter(told.role, type_name).encode(told.stamped)


@lru_cache
def _adapter(role: str, type_name: str) -> Adapter:
    return adapter_for(TOLD_AS[role], type_name)


def topics_of_world(stack: Stack) -> dict[str, ReplayedTopic]:
    """Return every topic that a stack takes, by the same name in a world, for arms whose bundles come from there."""
    return {
        topic: ReplayedTopic(topic, message_type(stack, role))
        for role, topics in stack.topics.items()
        for topic in topics
    }
