# SPDX-License-Identifier: Apache-2.0
"""Obstacles as ``geometry_msgs/PoseArray``: places without sizes and classes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from geometry_msgs.msg import Point, Pose, PoseArray, Quaternion

from mt_nodes.nodes.adapters.base import Adapter, Said
from mt_nodes.nodes.messages import set_stamp, stamp_of
from mt_nodes.nodes.orientation import yaws
from mt_nodes.outputs import Detections
from mt_nodes.transforms import quaternion_of_yaw


class PoseArrayObstacles(Adapter):
    """One pose an obstacle; an empty array with the cloud's stamp says that nothing was seen."""

    type: ClassVar[str] = "geometry_msgs/msg/PoseArray"
    role: ClassVar[str] = "detections"

    def stamp_ns(self, message: Any) -> int | None:
        """Header stamp."""
        return stamp_of(message)

    def decode(self, message: Any) -> Detections:
        """Read every pose as an obstacle of unknown class and no size."""
        turns = np.array([[q.x, q.y, q.z, q.w] for q in (p.orientation for p in message.poses)])
        places = [[p.x, p.y, p.z] for p in (pose.position for pose in message.poses)]
        return Detections.make(message.header.frame_id, stamp_of(message), places, yaw_rad=yaws(turns))

    def encode(self, said: Said) -> PoseArray:
        """Write the centre and yaw of each obstacle."""
        assert isinstance(said, Detections)
        message = PoseArray()
        message.header.frame_id = said.frame_id
        set_stamp(message.header.stamp, said.stamp_ns or 0)
        for (x, y, z), yaw in zip(said.center_m.tolist(), said.yaw_rad.tolist(), strict=True):
            qx, qy, qz, qw = quaternion_of_yaw(yaw)
            turn = Quaternion(x=qx, y=qy, z=qz, w=qw)
            message.poses.append(Pose(position=Point(x=x, y=y, z=z), orientation=turn))
        return message
