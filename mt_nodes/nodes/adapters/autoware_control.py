# SPDX-License-Identifier: Apache-2.0
"""Commands as ``autoware_control_msgs/Control``, which has a stamp and no header."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from mt_nodes.data.outputs import Control
from mt_nodes.nodes.adapters.base import Said
from mt_nodes.nodes.adapters.command_base import StampedCommand, or_nought
from mt_nodes.nodes.message_classes import message_class, set_stamp, stamp_of


class AutowareControl(StampedCommand):
    """Tire angle in rad, to the left positive, velocity in m/s and, where it is filled in, acceleration in m/s².

    Autoware's own controller stamps it with the time at which its timer fired, not with that of any input: such a
    stack file says ``match: order``, or, for a live stack, ``arrival``. ``control_time``, jerk and the rate of the
    tire angle are not read.
    """

    type: ClassVar[str] = "autoware_control_msgs/msg/Control"

    def decode(self, message: Any) -> Control:
        """Read tire angle, velocity and, if ``is_defined_acceleration``, acceleration."""
        motion = message.longitudinal
        return Control(
            stamp_of(message),
            steering_rad=message.lateral.steering_tire_angle,
            speed_mps=motion.velocity,
            acceleration_mps2=motion.acceleration if motion.is_defined_acceleration else math.nan,
        )

    def encode(self, said: Said) -> Any:
        """Write the three; what the command does not hold is 0, and an acceleration is then not defined."""
        assert isinstance(said, Control)
        message = message_class(self.type)()
        for part in (message, message.lateral, message.longitudinal):
            set_stamp(part.stamp, said.stamp_ns or 0)
        message.lateral.steering_tire_angle = or_nought(said.steering_rad)
        message.longitudinal.velocity = or_nought(said.speed_mps)
        message.longitudinal.acceleration = or_nought(said.acceleration_mps2)
        message.longitudinal.is_defined_acceleration = not math.isnan(said.acceleration_mps2)
        return message
