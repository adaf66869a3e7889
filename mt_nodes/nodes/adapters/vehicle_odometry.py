# SPDX-License-Identifier: Apache-2.0
"""Where the vehicle is, and how it moves, as ``nav_msgs/Odometry``: told to stacks."""

from __future__ import annotations

from typing import Any, ClassVar

from nav_msgs.msg import Odometry as OdometryMessage

from mt_nodes.data.messages import Odometry
from mt_nodes.nodes.adapters.base import Adapter, Said
from mt_nodes.nodes.message_classes import set_header, stamp_of
from mt_nodes.nodes.orientation import planar, set_planar


class VehicleOdometry(Adapter):
    """Pose on the ground, forward speed and yaw rate; height, roll, pitch, the rest of the twist and covariances are
    neither read nor written.
    """

    type: ClassVar[str] = "nav_msgs/msg/Odometry"
    role: ClassVar[str] = "odometry"

    def stamp_ns(self, message: Any) -> int | None:
        """Header stamp."""
        return stamp_of(message)

    def decode(self, message: Any) -> Odometry:
        """Read pose, forward speed and yaw rate."""
        ((x, y, yaw),) = planar([message.pose.pose]).tolist()
        twist = message.twist.twist
        return Odometry(
            message.header.frame_id,
            stamp_of(message),
            x,
            y,
            yaw,
            twist.linear.x,
            twist.angular.z,
            message.child_frame_id,
        )

    def encode(self, said: Said) -> OdometryMessage:
        """Write pose, forward speed and yaw rate."""
        assert isinstance(said, Odometry)
        message = OdometryMessage(child_frame_id=said.child_frame_id)
        set_header(message.header, said.frame_id, said.stamp_ns)
        set_planar(message.pose.pose, said.x_m, said.y_m, said.yaw_rad)
        twist = message.twist.twist
        twist.linear.x, twist.angular.z = said.speed_mps, said.yaw_rate_radps
        return message
