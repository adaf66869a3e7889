# SPDX-License-Identifier: Apache-2.0
"""Message types that ROS 2 itself lacks: ``radar_msgs``, with the layouts of their rows, and ``ackermann_msgs``.

Source of the definitions: https://github.com/ros-perception/radar_msgs (branch ``ros2``); no ROS installation is needed
to read and write them in bags.
"""

from __future__ import annotations

import numpy as np
from rosbags.typesys import get_types_from_msg
from rosbags.typesys.store import Typestore

DRIVE, DRIVE_STAMPED = "ackermann_msgs/msg/AckermannDrive", "ackermann_msgs/msg/AckermannDriveStamped"
RADAR_SCAN = "radar_msgs/msg/RadarScan"
RADAR_TRACKS = "radar_msgs/msg/RadarTracks"
_RETURN, TRACK_TYPE = "radar_msgs/msg/RadarReturn", "radar_msgs/msg/RadarTrack"
VECTORS = ("velocity", "acceleration", "size")
COVARIANCES = ("position_covariance", "velocity_covariance", "acceleration_covariance", "size_covariance")
_DEFINITIONS = {
    # https://github.com/ros-drivers/ackermann_msgs (branch ``ros2``): the steering angle is that of the road wheels in
    # rad, positive to the left; the speed in m/s.
    DRIVE: "\n".join(
        f"float32 {name}" for name in ("steering_angle", "steering_angle_velocity", "speed", "acceleration", "jerk")
    ),
    DRIVE_STAMPED: "std_msgs/Header header\nackermann_msgs/AckermannDrive drive",
    _RETURN: "\n".join(
        f"float32 {name}" for name in ("range", "azimuth", "elevation", "doppler_velocity", "amplitude")
    ),
    RADAR_SCAN: "std_msgs/Header header\nradar_msgs/RadarReturn[] returns",
    TRACK_TYPE: "\n".join(
        [
            "uint16 NO_CLASSIFICATION=0\nuint16 STATIC=1\nuint16 DYNAMIC=2",
            "unique_identifier_msgs/UUID uuid\ngeometry_msgs/Point position",
            *(f"geometry_msgs/Vector3 {name}" for name in VECTORS),
            "uint16 classification",
            *(f"float32[6] {name}" for name in COVARIANCES),
        ]
    ),
    RADAR_TRACKS: "std_msgs/Header header\nradar_msgs/RadarTrack[] tracks",
}
RETURN = np.dtype([(n, "<f4") for n in ("range", "azimuth", "elevation", "doppler_velocity", "amplitude")])
"""Layout of the detections of a ``RadarScan``: metres, radians, metres per second, decibels."""
TRACK = np.dtype(
    [("uuid", "u1", (16,)), *((name, "<f8") for name in ("x", "y", "z", "vx", "vy", "vz", "ax", "ay", "az"))]
    + [(name, "<f8") for name in ("length", "width", "height")]
    + [("classification", "<u2"), *((name, "<f4", (6,)) for name in COVARIANCES)]
)
"""Layout of the tracks of ``RadarTracks``; speeds are relative to the sensor (assumed: the package does not say)."""


def register(store: Typestore) -> None:
    """Make the types known to a store of types."""
    for name, text in _DEFINITIONS.items():
        if name not in store.fielddefs:
            store.register(get_types_from_msg(text, name))
