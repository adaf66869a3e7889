# SPDX-License-Identifier: Apache-2.0
"""Commands as ``geometry_msgs/TwistStamped``."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from geometry_msgs.msg import TwistStamped

from mt_nodes.nodes.adapters.base import Adapter, Said
from mt_nodes.nodes.messages import set_stamp, stamp_of
from mt_nodes.outputs import Control


class TwistStampedControl(Adapter):
    """``linear.x`` is the speed in m/s, ``angular.z`` the yaw rate in rad/s."""

    type: ClassVar[str] = "geometry_msgs/msg/TwistStamped"
    role: ClassVar[str] = "control"

    def stamp_ns(self, message: Any) -> int | None:
        """Header stamp."""
        return stamp_of(message)

    def decode(self, message: Any) -> Control:
        """Read speed and yaw rate."""
        twist = message.twist
        return Control(stamp_of(message), speed_mps=twist.linear.x, yaw_rate_radps=twist.angular.z)

    def encode(self, said: Said) -> TwistStamped:
        """Write speed and yaw rate; what the command does not hold is 0."""
        assert isinstance(said, Control)
        message = TwistStamped()
        set_stamp(message.header.stamp, said.stamp_ns or 0)
        message.twist.linear.x = 0.0 if math.isnan(said.speed_mps) else float(said.speed_mps)
        message.twist.angular.z = 0.0 if math.isnan(said.yaw_rate_radps) else float(said.yaw_rate_radps)
        return message
