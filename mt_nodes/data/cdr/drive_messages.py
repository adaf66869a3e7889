# SPDX-License-Identifier: Apache-2.0
"""Message types of ``ackermann_msgs``, which ROS 2 itself lacks: speed and steering of a car in one message.

Source of the definitions: https://github.com/ros-drivers/ackermann_msgs (branch ``ros2``): the steering angle is that
of the road wheels in rad, positive to the left; the speed in m/s.
"""

from __future__ import annotations

from rosbags.typesys import get_types_from_msg
from rosbags.typesys.store import Typestore

DRIVE, DRIVE_STAMPED = "ackermann_msgs/msg/AckermannDrive", "ackermann_msgs/msg/AckermannDriveStamped"
_FIELDS = ("steering_angle", "steering_angle_velocity", "speed", "acceleration", "jerk")
_DEFINITIONS = {
    DRIVE: "\n".join(f"float32 {name}" for name in _FIELDS),
    DRIVE_STAMPED: "std_msgs/Header header\nackermann_msgs/AckermannDrive drive",
}


def register(store: Typestore) -> None:
    """Make the types known to a store of types."""
    for name, text in _DEFINITIONS.items():
        if name not in store.fielddefs:
            store.register(get_types_from_msg(text, name))
