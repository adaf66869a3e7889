# SPDX-License-Identifier: Apache-2.0
"""An adapter: obstacles as a ``sensor_msgs/PointCloud``."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import Point32
from sensor_msgs.msg import ChannelFloat32, PointCloud

from mt_nodes.plugin import Detections, OutputPart, StampedAdapter, set_header

CHANNELS = ("length", "width", "height", "yaw", "score")


class PointCloudObstacles(StampedAdapter):
    """One point an obstacle, in metres; its size, yaw and score are channels of these names.

    A message without points says that nothing was detected.
    """

    type = "sensor_msgs/msg/PointCloud"
    role = "detections"

    def decode(self, message: Any) -> Detections:
        """Return the obstacles.

        Raises:
            ValueError: a channel is missing, or is not as long as the points.
        """
        channels = {channel.name: np.array(channel.values, dtype=np.float64) for channel in message.channels}
        center_m = np.array([(p.x, p.y, p.z) for p in message.points], dtype=np.float64).reshape(-1, 3)
        columns = [channels.get(name, np.empty(0)) for name in CHANNELS]
        if wrong := [name for name, column in zip(CHANNELS, columns, strict=True) if len(column) != len(center_m)]:
            raise ValueError(f"channels {', '.join(wrong)}: expected one value for each of the {len(center_m)} points")
        *size_m, yaw_rad, score = columns
        stamp_ns = self.stamp_ns(message)
        return Detections.make(message.header.frame_id, stamp_ns, center_m, np.stack(size_m, 1), yaw_rad, score=score)

    def encode(self, output: OutputPart) -> PointCloud:
        """Return the message; only a Python callable under test needs this."""
        assert isinstance(output, Detections)
        message = PointCloud(points=[Point32(x=x, y=y, z=z) for x, y, z in output.center_m.tolist()])
        set_header(message.header, output.frame_id, output.stamp_ns)
        columns = zip(CHANNELS, (*output.size_m.T, output.yaw_rad, output.score), strict=True)
        message.channels = [ChannelFloat32(name=name, values=column.tolist()) for name, column in columns]
        return message
