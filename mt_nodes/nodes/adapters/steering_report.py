# SPDX-License-Identifier: Apache-2.0
"""What the vehicle does as ``autoware_vehicle_msgs/SteeringReport``."""

from __future__ import annotations

from typing import Any, ClassVar

from mt_nodes.data.outputs import Control
from mt_nodes.nodes.adapters.command_base import StampedCommand
from mt_nodes.nodes.message_classes import stamp_of


class SteeringReportControl(StampedCommand):
    """Tire angle in rad, to the left positive, as the vehicle reports it; it has a stamp and no header.

    An outcome and no command, see ``velocity_report_control``. The other messages of that package (gear, control
    mode, lights, engagement) are states of switches that no control check compares, and have no adapter. Read only.
    """

    type: ClassVar[str] = "autoware_vehicle_msgs/msg/SteeringReport"

    def decode(self, message: Any) -> Control:
        """Read the tire angle."""
        return Control(stamp_of(message), steering_rad=message.steering_tire_angle)
