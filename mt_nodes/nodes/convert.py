# SPDX-License-Identifier: Apache-2.0
"""Between ROS messages and the core's types of what a stack takes."""

from __future__ import annotations

import array
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from sensor_msgs.msg import PointCloud2, PointField
from std_msgs.msg import Header

from mt_nodes.data.cdr.codec import camera_info_from_msg, image_from_msg
from mt_nodes.data.cdr.point_fields import Field, point_dtype, rows_of
from mt_nodes.data.cdr.radar_codec import radar_from_msg
from mt_nodes.data.message_headers import set_stamp, stamp_of
from mt_nodes.data.messages import CameraInfo, Cloud, Image, Message, WorldMessage
from mt_nodes.engine.plan import ReplayedTopic
from mt_nodes.stacks.message_adapter import Adapter, adapter_for
from mt_nodes.stacks.stack import Stack

DATATYPES = {
    PointField.INT8: "i1",
    PointField.UINT8: "u1",
    PointField.INT16: "i2",
    PointField.UINT16: "u2",
    PointField.INT32: "i4",
    PointField.UINT32: "u4",
    PointField.FLOAT32: "f4",
    PointField.FLOAT64: "f8",
}


def own_dtype_from_fields(fields: Any, point_step: int | None = None) -> np.dtype[Any]:
    """Return the structured dtype of a list of ``PointField``; a field of count k becomes ``name_0`` … ``name_k-1``."""
    names, formats, offsets = [], [], []
    for i, field in enumerate(fields):
        base = np.dtype(DATATYPES[field.datatype])
        name = field.name or f"unnamed_field_{i}"
        for k in range(field.count):
            names.append(name if field.count == 1 else f"{name}_{k}")
            formats.append(base)
            offsets.append(field.offset + k * base.itemsize)
    layout = {"names": names, "formats": formats, "offsets": offsets}
    return np.dtype(layout if point_step is None else {**layout, "itemsize": point_step})  # type: ignore[call-overload]


def own_read_points(cloud: PointCloud2) -> npt.NDArray[Any]:
    """Return the points as a structured array (N,), in native byte order; a view of the message where possible."""
    dtype = own_dtype_from_fields(cloud.fields, cloud.point_step)
    points: npt.NDArray[Any] = np.ndarray((cloud.width * cloud.height,), dtype, buffer=cloud.data)
    if cloud.is_bigendian != (sys.byteorder == "big"):
        points = points.byteswap()
    return points


def own_create_cloud(header: Any, fields: Any, points: npt.NDArray[Any], step: int | None = None) -> PointCloud2:
    """Return an unorganised message of a structured array (N,) whose dtype is that of the fields."""
    dtype = own_dtype_from_fields(fields, step)
    points = np.ascontiguousarray(points, dtype=dtype)
    # Assigning a bytes object would convert byte by byte; array.array takes the buffer whole (rclpy#763).
    data = array.array("B")
    data.frombytes(points.view(np.uint8).data)
    return PointCloud2(
        header=header,
        height=1,
        width=len(points),
        fields=list(fields),
        is_bigendian=sys.byteorder == "big",
        point_step=dtype.itemsize,
        row_step=dtype.itemsize * len(points),
        data=data,
        is_dense=False,
    )


try:
    from sensor_msgs_py.point_cloud2 import create_cloud, dtype_from_fields, read_points
except ImportError:
    create_cloud, dtype_from_fields, read_points = own_create_cloud, own_dtype_from_fields, own_read_points

__all__ = ["create_cloud", "dtype_from_fields", "read_points"]


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
