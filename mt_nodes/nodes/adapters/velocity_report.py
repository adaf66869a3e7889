# SPDX-License-Identifier: Apache-2.0
"""What the vehicle does as ``autoware_vehicle_msgs/VelocityReport``."""

from __future__ import annotations

from typing import Any, ClassVar

from mt_nodes.data.outputs import Control
from mt_nodes.nodes.adapters.command_base import StampedCommand
from mt_nodes.nodes.message_classes import stamp_of


class VelocityReportControl(StampedCommand):
    """Speed in m/s, forwards positive, and yaw rate in rad/s, to the left positive, as the vehicle reports them.

    An outcome and no command: on recorded or live input it follows what really drove, not what the stack says. It is
    of use where the vehicle is simulated in each arm. Read only; the lateral velocity is left out.
    """

    type: ClassVar[str] = "autoware_vehicle_msgs/msg/VelocityReport"

    def decode(self, message: Any) -> Control:
        """Read longitudinal velocity and heading rate."""
        return Control(stamp_of(message), speed_mps=message.longitudinal_velocity, yaw_rate_radps=message.heading_rate)
