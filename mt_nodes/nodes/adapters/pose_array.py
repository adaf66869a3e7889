# SPDX-License-Identifier: Apache-2.0
"""Obstacles as ``geometry_msgs/PoseArray``: places without sizes and classes."""

from __future__ import annotations

from typing import Any, ClassVar

from geometry_msgs.msg import Pose, PoseArray

from mt_nodes.data.outputs import Detections
from mt_nodes.nodes.adapters.base import Adapter, Said
from mt_nodes.nodes.message_classes import set_header, stamp_of
from mt_nodes.nodes.orientation import points, quaternions, set_pose, yaws


class PoseArrayObstacles(Adapter):
    """One pose an obstacle, in metres, in the frame of the header: no sizes, classes and scores, roll and pitch unread.

    An empty array with the input's stamp says that nothing was seen.
    """

    type: ClassVar[str] = "geometry_msgs/msg/PoseArray"
    role: ClassVar[str] = "detections"

    def stamp_ns(self, message: Any) -> int | None:
        """Header stamp."""
        return stamp_of(message)

    def decode(self, message: Any) -> Detections:
        """Read every pose as an obstacle of unknown class and no size."""
        return Detections.make(
            message.header.frame_id,
            stamp_of(message),
            points(pose.position for pose in message.poses),
            yaw_rad=yaws(quaternions(pose.orientation for pose in message.poses)),
        )

    def encode(self, said: Said) -> PoseArray:
        """Write the centre and yaw of each obstacle."""
        assert isinstance(said, Detections)
        message = PoseArray()
        set_header(message.header, said.frame_id, said.stamp_ns)
        for center, yaw in zip(said.center_m, said.yaw_rad, strict=True):
            pose = Pose()
            set_pose(pose, center, yaw)
            message.poses.append(pose)
        return message
