# SPDX-License-Identifier: Apache-2.0
"""Obstacles as ``vision_msgs/Detection3DArray``."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mt_nodes.data.outputs import Detections
from mt_nodes.nodes.adapters.arrays import best, frame_of
from mt_nodes.nodes.adapters.base import Adapter, Said
from mt_nodes.nodes.message_classes import message_class, set_header, stamp_of
from mt_nodes.nodes.orientation import points, quaternions, set_pose, set_vector, yaws


class Detection3dArrayObstacles(Adapter):
    """Boxes of detections, in metres, in the frame of the header; all detections must be in one frame.

    Class and score are those of the hypothesis with the highest score (unknown, 1 without any), the covariance that of
    its pose where it is not all zero. ``id`` is the track. Roll and pitch of the box, the poses of the hypotheses and
    the lesser hypotheses are not read; the type has no velocities. An empty array with the input's stamp says that
    nothing was seen.
    """

    type: ClassVar[str] = "vision_msgs/msg/Detection3DArray"
    role: ClassVar[str] = "detections"

    def stamp_ns(self, message: Any) -> int | None:
        """Header stamp of the array."""
        return stamp_of(message)

    def decode(self, message: Any) -> Detections:
        """Read the box of every detection."""
        rows = message.detections
        chosen = [best(row) for row in rows]
        covariance = np.array([np.zeros(36) if c is None else c.pose.covariance for c in chosen], dtype=np.float64)
        covariance = covariance.reshape(-1, 6, 6)
        covariance[~covariance.any(axis=(1, 2))] = np.nan
        return Detections.make(
            frame_of(message, rows),
            stamp_of(message),
            points(row.bbox.center.position for row in rows),
            points(row.bbox.size for row in rows),
            yaws(quaternions(row.bbox.center.orientation for row in rows)),
            [(c and c.hypothesis.class_id) or "unknown" for c in chosen],
            [1.0 if c is None else c.hypothesis.score for c in chosen],
            [row.id for row in rows],
            covariance=covariance,
        )

    def encode(self, said: Said) -> Any:
        """Write one detection with one hypothesis an obstacle; velocities are lost."""
        assert isinstance(said, Detections)
        message = message_class(self.type)()
        set_header(message.header, said.frame_id, said.stamp_ns)
        for i in range(len(said)):
            row = message_class("vision_msgs/msg/Detection3D")(header=message.header, id=str(said.track_id[i]))
            chosen = message_class("vision_msgs/msg/ObjectHypothesisWithPose")()
            chosen.hypothesis.class_id, chosen.hypothesis.score = str(said.label[i]), float(said.score[i])
            for pose in (row.bbox.center, chosen.pose.pose):
                set_pose(pose, said.center_m[i], said.yaw_rad[i])
            set_vector(row.bbox.size, said.size_m[i])
            if np.isfinite(said.covariance[i]).all():
                chosen.pose.covariance = said.covariance[i].ravel()
            row.results = [chosen]
            message.detections.append(row)
        return message
