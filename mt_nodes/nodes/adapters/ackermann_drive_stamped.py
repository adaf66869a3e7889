# SPDX-License-Identifier: Apache-2.0
"""Commands as ``ackermann_msgs/AckermannDriveStamped``."""

from __future__ import annotations

from typing import Any, ClassVar

from mt_nodes.data.outputs import Control
from mt_nodes.nodes.adapters.ackermann_drive import into_drive, of_drive
from mt_nodes.nodes.adapters.base import Said
from mt_nodes.nodes.adapters.command_base import StampedCommand
from mt_nodes.nodes.message_classes import message_class, set_stamp, stamp_of


class AckermannDriveStampedControl(StampedCommand):
    """Steering angle in rad, to the left positive, and speed in m/s, with a header."""

    type: ClassVar[str] = "ackermann_msgs/msg/AckermannDriveStamped"

    def decode(self, message: Any) -> Control:
        """Read steering angle and speed."""
        return of_drive(message.drive, stamp_of(message))

    def encode(self, said: Said) -> Any:
        """Write steering angle and speed; what the command does not hold is 0."""
        assert isinstance(said, Control)
        message = message_class(self.type)()
        set_stamp(message.header.stamp, said.stamp_ns or 0)
        into_drive(said, message.drive)
        return message
