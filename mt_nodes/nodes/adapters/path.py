# SPDX-License-Identifier: Apache-2.0
"""Paths and the middles of lanes as ``nav_msgs/Path``."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion
from nav_msgs.msg import Path as PathMessage

from mt_nodes.nodes.adapters.base import Adapter, Said
from mt_nodes.nodes.messages import set_stamp, stamp_of
from mt_nodes.nodes.orientation import yaws
from mt_nodes.outputs import Path
from mt_nodes.transforms import quaternion_of_yaw


class PathPoses(Adapter):
    """One pose a place, on the ground; a path without poses, stamped like its input, says that there is none."""

    type: ClassVar[str] = "nav_msgs/msg/Path"
    role: ClassVar[str] = "path"

    def stamp_ns(self, message: Any) -> int | None:
        """Header stamp."""
        return stamp_of(message)

    def decode(self, message: Any) -> Path:
        """Read x, y and yaw of every pose; speeds and times are not given."""
        poses = [stamped.pose for stamped in message.poses]
        turns = np.array([[q.x, q.y, q.z, q.w] for q in (pose.orientation for pose in poses)])
        places = np.array([[pose.position.x, pose.position.y] for pose in poses]).reshape(-1, 2)
        return Path.make(message.header.frame_id, stamp_of(message), np.column_stack([places, yaws(turns)]))

    def encode(self, said: Said) -> PathMessage:
        """Write the poses, all in the frame and of the instant of the path."""
        assert isinstance(said, Path)
        message = PathMessage()
        message.header.frame_id = said.frame_id
        set_stamp(message.header.stamp, said.stamp_ns or 0)
        for x, y, yaw in said.pose.tolist():
            turn = Quaternion(**dict(zip("xyzw", quaternion_of_yaw(yaw), strict=True)))
            pose = Pose(position=Point(x=x, y=y), orientation=turn)
            message.poses.append(PoseStamped(header=message.header, pose=pose))
        return message
