# SPDX-License-Identifier: Apache-2.0
"""Commands as ``carla_msgs/CarlaEgoVehicleControl``, which CARLA's ROS bridge takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Control
from mt_nodes.nodes.adapters.base import Said
from mt_nodes.nodes.adapters.command_base import StampedCommand, or_nought
from mt_nodes.nodes.message_classes import message_class, set_stamp, stamp_of


@dataclass(frozen=True)
class CarlaControl(StampedCommand):
    """Throttle and brake from 0 to 1, and steering from -1 (left) to 1 (right) as a share of the full lock.

    CARLA's axes are left-handed, hence the sign (``carla_twist_to_control`` of its bridge turns it, too). The bridge's
    own agents leave the stamp at 0; such a message answers by order. A pulled hand brake is a full brake. Reverse and
    gears are not read, and the lock that CARLA narrows with speed is taken as constant.
    """

    full_lock_rad: float = param(
        math.radians(70),  # the default of CARLA's WheelPhysicsControl
        low=0.01,
        high=math.pi / 2,
        unit="rad",
        help="road-wheel angle at steer = 1: max_steer_angle of the front wheels in /carla/<role>/vehicle_info",
    )

    type: ClassVar[str] = "carla_msgs/msg/CarlaEgoVehicleControl"

    def stamp_ns(self, message: Any) -> int | None:
        """Header stamp; None where it was left at 0."""
        return stamp_of(message) or None

    def decode(self, message: Any) -> Control:
        """Read steering, throttle and brake."""
        return Control(
            self.stamp_ns(message),
            steering_rad=-message.steer * self.full_lock_rad,
            throttle=message.throttle,
            brake=1.0 if message.hand_brake else message.brake,
        )

    def encode(self, said: Said) -> Any:
        """Write the three, steering no further than the lock; what the command does not hold is 0."""
        assert isinstance(said, Control)
        message = message_class(self.type)()
        set_stamp(message.header.stamp, said.stamp_ns or 0)
        message.steer = max(-1.0, min(1.0, -or_nought(said.steering_rad) / self.full_lock_rad))
        message.throttle, message.brake = or_nought(said.throttle), or_nought(said.brake)
        return message
