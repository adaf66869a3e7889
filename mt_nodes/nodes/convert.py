# SPDX-License-Identifier: Apache-2.0
"""Between ROS messages and the core's sensor types."""

from __future__ import annotations

from typing import Any

import numpy as np
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Header

from mt_nodes.cdr import camera_info_from_msg, image_from_msg
from mt_nodes.errors import UsageError
from mt_nodes.frames import CameraInfo, Cloud, Image
from mt_nodes.nodes.messages import set_stamp, stamp_of
from mt_nodes.nodes.point_cloud2 import create_cloud, read_points

SENSOR_TYPES = {
    "lidar": "sensor_msgs/msg/PointCloud2",
    "camera": "sensor_msgs/msg/Image",
    "camera_info": "sensor_msgs/msg/CameraInfo",
}


def cloud_from_message(topic: str, message: PointCloud2) -> Cloud:
    """Return the core's cloud of a message.

    Raises:
        UsageError: the layout does not fit the data, or there are no x, y, z.
    """
    missing = {"x", "y", "z"} - {f.name for f in message.fields}
    if missing:
        raise UsageError(f"{topic}: the cloud has no field {', '.join(sorted(missing))}")
    needed = message.row_step * message.height
    if message.row_step < message.width * message.point_step or len(message.data) < needed:
        raise UsageError(
            f"{topic}: got {len(message.data)} bytes, row_step {message.row_step}, point_step {message.point_step} "
            f"for {message.height} x {message.width} points"
        )
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
    """Return the core's form of a sensor message of a role (``lidar``, ``camera``, ``camera_info``)."""
    if role == "lidar":
        return cloud_from_message(topic, message)
    return image_from_msg(topic, message) if role == "camera" else camera_info_from_msg(topic, message)
