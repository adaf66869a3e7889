# SPDX-License-Identifier: Apache-2.0
"""Commands as ``geometry_msgs/TwistStamped``."""

from __future__ import annotations

from typing import Any, ClassVar

from geometry_msgs.msg import TwistStamped

from mt_nodes.data.outputs import Control
from mt_nodes.nodes.adapters.base import Said
from mt_nodes.nodes.adapters.command_base import StampedCommand, or_nought
from mt_nodes.nodes.message_classes import set_stamp, stamp_of


class TwistStampedControl(StampedCommand):
    """``linear.x`` is the speed in m/s, ``angular.z`` the yaw rate in rad/s."""

    type: ClassVar[str] = "geometry_msgs/msg/TwistStamped"

    def decode(self, message: Any) -> Control:
        """Read speed and yaw rate."""
        twist = message.twist
        return Control(stamp_of(message), speed_mps=twist.linear.x, yaw_rate_radps=twist.angular.z)

    def encode(self, said: Said) -> TwistStamped:
        """Write speed and yaw rate; what the command does not hold is 0."""
        assert isinstance(said, Control)
        message = TwistStamped()
        set_stamp(message.header.stamp, said.stamp_ns or 0)
        twist = message.twist
        twist.linear.x, twist.angular.z = or_nought(said.speed_mps), or_nought(said.yaw_rate_radps)
        return message
