# SPDX-License-Identifier: Apache-2.0
"""Commands as ``autoware_auto_control_msgs/AckermannControlCommand``, of Autoware before ``autoware_control_msgs``."""

from __future__ import annotations

from typing import Any, ClassVar

from mt_nodes.data.outputs import Control
from mt_nodes.nodes.adapters.base import Said
from mt_nodes.nodes.adapters.command_base import StampedCommand, or_nought
from mt_nodes.nodes.message_classes import message_class, set_stamp, stamp_of


class AutowareAutoControl(StampedCommand):
    """Tire angle in rad, to the left positive, speed in m/s and acceleration in m/s², which is always there.

    As with its successor the stamp is that of the controller, not of an input. The message can say of none of the
    three that it is not given. Jerk and the rate of the tire angle are not read.
    """

    type: ClassVar[str] = "autoware_auto_control_msgs/msg/AckermannControlCommand"

    def decode(self, message: Any) -> Control:
        """Read tire angle, speed and acceleration."""
        motion = message.longitudinal
        return Control(
            stamp_of(message),
            steering_rad=message.lateral.steering_tire_angle,
            speed_mps=motion.speed,
            acceleration_mps2=motion.acceleration,
        )

    def encode(self, said: Said) -> Any:
        """Write the three; what the command does not hold is 0."""
        assert isinstance(said, Control)
        message = message_class(self.type)()
        for part in (message, message.lateral, message.longitudinal):
            set_stamp(part.stamp, said.stamp_ns or 0)
        message.lateral.steering_tire_angle = or_nought(said.steering_rad)
        message.longitudinal.speed = or_nought(said.speed_mps)
        message.longitudinal.acceleration = or_nought(said.acceleration_mps2)
        return message
