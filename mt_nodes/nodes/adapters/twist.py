# SPDX-License-Identifier: Apache-2.0
"""Commands as ``geometry_msgs/Twist``, which has neither stamp nor header."""

from __future__ import annotations

from typing import Any, ClassVar

from geometry_msgs.msg import Twist

from mt_nodes.data.outputs import Control
from mt_nodes.nodes.adapters.base import Adapter, Said
from mt_nodes.nodes.adapters.command_base import or_nought


class TwistControl(Adapter):
    """``linear.x`` is the speed in m/s, ``angular.z`` the yaw rate in rad/s; answers the oldest outstanding input."""

    type: ClassVar[str] = "geometry_msgs/msg/Twist"
    role: ClassVar[str] = "control"
    stamped: ClassVar[bool] = False

    def stamp_ns(self, message: Any) -> int | None:
        """There is none."""
        return None

    def decode(self, message: Any) -> Control:
        """Read speed and yaw rate."""
        return Control(None, speed_mps=message.linear.x, yaw_rate_radps=message.angular.z)

    def encode(self, said: Said) -> Twist:
        """Write speed and yaw rate; what the command does not hold is 0."""
        assert isinstance(said, Control)
        message = Twist()
        message.linear.x, message.angular.z = or_nought(said.speed_mps), or_nought(said.yaw_rate_radps)
        return message
