# SPDX-License-Identifier: Apache-2.0
"""What the vehicle does as ``nav_msgs/Odometry``."""

from __future__ import annotations

from typing import Any, ClassVar

from mt_nodes.data.outputs import Control
from mt_nodes.nodes.adapters.command_base import StampedCommand
from mt_nodes.nodes.message_classes import stamp_of


class OdometryControl(StampedCommand):
    """Speed along x in m/s and yaw rate in rad/s of ``child_frame_id``, in which the twist is given.

    An outcome and no command: on recorded or live input it follows what really drove, not what the stack says. It is
    of use where the vehicle is simulated in each arm. Pose, covariances and the rest of the twist are not read, and it
    is read only.
    """

    type: ClassVar[str] = "nav_msgs/msg/Odometry"

    def decode(self, message: Any) -> Control:
        """Read forward speed and yaw rate."""
        twist = message.twist.twist
        return Control(stamp_of(message), speed_mps=twist.linear.x, yaw_rate_radps=twist.angular.z)
