# SPDX-License-Identifier: Apache-2.0
"""Commands as ``ackermann_msgs/AckermannDrive``, which has neither stamp nor header."""

from __future__ import annotations

from typing import Any, ClassVar

from mt_nodes.data.outputs import Control
from mt_nodes.nodes.adapters.base import Adapter, Said
from mt_nodes.nodes.adapters.command_base import or_nought
from mt_nodes.nodes.message_classes import message_class


class AckermannDriveControl(Adapter):
    """Steering angle in rad, to the left positive, and speed in m/s; answers the oldest outstanding input.

    ``acceleration`` and ``jerk`` are limits without a sign, by the comments of the message's definition, and 0 says
    "as quickly as possible": neither is what the stack wants the vehicle to do, and neither is read.
    """

    type: ClassVar[str] = "ackermann_msgs/msg/AckermannDrive"
    role: ClassVar[str] = "control"
    stamped: ClassVar[bool] = False

    def stamp_ns(self, message: Any) -> int | None:
        """There is none."""
        return None

    def decode(self, message: Any) -> Control:
        """Read steering angle and speed."""
        return of_drive(message, None)

    def encode(self, said: Said) -> Any:
        """Write steering angle and speed; what the command does not hold is 0."""
        message = message_class(self.type)()
        into_drive(said, message)
        return message


def of_drive(drive: Any, stamp_ns: int | None) -> Control:
    """Read an ``AckermannDrive``."""
    return Control(stamp_ns, steering_rad=drive.steering_angle, speed_mps=drive.speed)


def into_drive(said: Said, drive: Any) -> None:
    """Write an ``AckermannDrive``."""
    assert isinstance(said, Control)
    drive.steering_angle, drive.speed = or_nought(said.steering_rad), or_nought(said.speed_mps)
