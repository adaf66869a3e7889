# SPDX-License-Identifier: Apache-2.0
"""Obstacles as ``derived_object_msgs/ObjectArray``, which radars' drivers and CARLA's ROS bridge publish."""

from __future__ import annotations

import zlib
from typing import Any, ClassVar

import numpy as np

from mt_nodes.data.outputs import Detections
from mt_nodes.nodes.adapters.arrays import frame_of
from mt_nodes.nodes.adapters.base import Adapter, Said
from mt_nodes.nodes.message_classes import message_class, set_header, stamp_of
from mt_nodes.nodes.orientation import points, quaternions, set_pose, set_vector, yaws

#: Names of the constants ``CLASSIFICATION_…``; the sizes of what is unknown are lost.
LABELS = (
    *("unknown", "unknown", "unknown", "unknown", "pedestrian", "bicycle"),
    *("car", "truck", "motorcycle", "other_vehicle", "barrier", "sign"),
)
NUMBERS = {"unknown": 0, "cyclist": 5} | {name: i for i, name in enumerate(LABELS) if name != "unknown"}
#: ``shape_msgs/SolidPrimitive``: type, and of a cylinder height, then radius.
BOX, SPHERE, CYLINDER, CONE = 1, 2, 3, 4
MOST_CERTAIN = 255


class ObjectArrayObstacles(Adapter):
    """Objects in the frame of the header, in metres; all must be in one frame.

    A sphere, cylinder or cone is the box around it. The score is ``classification_certainty`` of 255 where the object
    is classified, else 1. ``id`` is the track, except a 0 of an object that is merely detected. The velocity is in the
    frame of the header, as CARLA's bridge gives it (``Actor.get_current_ros_twist``); as the bridge calls everything
    merely detected, only a twist of zeros of such an object counts as not given. The bridge puts vehicles' poses on the
    ground, half a box below its middle (``Vehicle.get_marker_pose``), which is left so: what is compared is the ground
    plan. Polygons, accelerations and the age of a class are not read. An empty array with the input's stamp says that
    nothing was seen.
    """

    type: ClassVar[str] = "derived_object_msgs/msg/ObjectArray"
    role: ClassVar[str] = "detections"

    def stamp_ns(self, message: Any) -> int | None:
        """Header stamp of the array."""
        return stamp_of(message)

    def decode(self, message: Any) -> Detections:
        """Read every object as a box."""
        rows = message.objects
        velocity = points(row.twist.linear for row in rows)
        unset = np.array([row.detection_level == 0 for row in rows], dtype=bool) & ~velocity.any(axis=1)
        velocity[unset] = np.nan
        return Detections.make(
            frame_of(message, rows),
            stamp_of(message),
            points(row.pose.position for row in rows),
            [_size(row.shape) for row in rows],
            yaws(quaternions(row.pose.orientation for row in rows)),
            [LABELS[row.classification] if row.classification < len(LABELS) else "unknown" for row in rows],
            [row.classification_certainty / MOST_CERTAIN if row.object_classified else 1.0 for row in rows],
            [str(row.id) if row.id or row.detection_level else "" for row in rows],
            velocity,
        )

    def encode(self, said: Said) -> Any:
        """Write boxes; other classes become unknown, unknown velocities 0, tracks that are no numbers their CRC-32."""
        assert isinstance(said, Detections)
        message = message_class(self.type)()
        set_header(message.header, said.frame_id, said.stamp_ns)
        for i in range(len(said)):
            row = message_class("derived_object_msgs/msg/Object")(header=message.header, id=_number(said.track_id[i]))
            row.classification = NUMBERS.get(str(said.label[i]).lower(), 0)
            row.object_classified, row.detection_level = True, int(said.track_id[i] != "")
            row.classification_certainty = round(MOST_CERTAIN * min(1.0, max(0.0, float(said.score[i]))))
            row.shape.type, row.shape.dimensions = BOX, said.size_m[i].tolist()
            set_pose(row.pose, said.center_m[i], said.yaw_rad[i])
            set_vector(row.twist.linear, np.nan_to_num(said.velocity_mps[i]))
            message.objects.append(row)
        return message


def _size(shape: Any) -> tuple[float, float, float]:
    """Length, width and height; NaN where the shape has other dimensions than it should, 0 where it has none."""
    given = list(shape.dimensions)
    if not given:
        return 0.0, 0.0, 0.0
    if shape.type == BOX and len(given) == 3:
        return given[0], given[1], given[2]
    if shape.type == SPHERE and len(given) == 1:
        return 2 * given[0], 2 * given[0], 2 * given[0]
    if shape.type in (CYLINDER, CONE) and len(given) == 2:
        return 2 * given[1], 2 * given[1], given[0]
    return np.nan, np.nan, np.nan


def _number(track: str) -> int:
    return int(track) if track.isdecimal() and int(track) < 1 << 32 else zlib.crc32(str(track).encode())
