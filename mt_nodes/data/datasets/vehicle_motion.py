# SPDX-License-Identifier: Apache-2.0
"""What the driver of a recorded vehicle did, and where it was, as topics of plain types."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.further_messages import DRIVE, DRIVE_STAMPED
from mt_nodes.data.datasets.recorded_topic import RecordedTopic
from mt_nodes.data.transforms import EGO_FRAME

DRIVE_TOPIC, FIX_TOPIC, FIX_FRAME = "/vehicle/drive", "/gps/fix", "gps"
FIX = "sensor_msgs/msg/NavSatFix"


def drive_topic(stamps_ns: Sequence[int], speed_mps: Floats, steering_rad: Floats) -> RecordedTopic:
    """Return ``/vehicle/drive``, where ``mt models train`` finds what to learn.

    Args:
        stamps_ns: (N,), in order.
        speed_mps, steering_rad: (N,) each; steering of the road wheels, positive to the left. They become float32.
    """
    types = codec.typestore().types

    def read(i: int) -> bytes:
        rest = dict.fromkeys(("steering_angle_velocity", "acceleration", "jerk"), 0.0)
        drive = types[DRIVE](steering_angle=float(steering_rad[i]), speed=float(speed_mps[i]), **rest)
        header = codec.header_of(EGO_FRAME, stamps_ns[i])
        return codec.encode(DRIVE_STAMPED, types[DRIVE_STAMPED](header=header, drive=drive))

    return RecordedTopic(DRIVE_TOPIC, DRIVE_STAMPED, stamps_ns, read)


def fix_topic(stamps_ns: Sequence[int], places: Floats) -> RecordedTopic:
    """Return ``/gps/fix`` of places (N, 3): degrees to the north, degrees to the east, metres up (NaN: unknown)."""
    types = codec.typestore().types

    def read(i: int) -> bytes:
        latitude, longitude, altitude = places[i].tolist()
        message = types[FIX](
            header=codec.header_of(FIX_FRAME, stamps_ns[i]),
            status=types["sensor_msgs/msg/NavSatStatus"](status=0, service=1),
            latitude=latitude,
            longitude=longitude,
            altitude=altitude,
            position_covariance=np.zeros(9),
            position_covariance_type=0,
        )
        return codec.encode(FIX, message)

    return RecordedTopic(FIX_TOPIC, FIX, stamps_ns, read)
