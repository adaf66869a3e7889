# SPDX-License-Identifier: Apache-2.0
"""Paths and the middles of lanes as ``nav_msgs/Path``."""

from __future__ import annotations

from typing import Any, ClassVar

from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path as PathMessage

from mt_nodes.data.outputs import Path
from mt_nodes.nodes.adapters.base import Adapter, Said
from mt_nodes.nodes.message_classes import set_stamp, stamp_of
from mt_nodes.nodes.orientation import planar, set_planar


class PathPoses(Adapter):
    """One pose a place, on the ground; a path without poses, stamped like its input, says that there is none."""

    type: ClassVar[str] = "nav_msgs/msg/Path"
    role: ClassVar[str] = "path"

    def stamp_ns(self, message: Any) -> int | None:
        """Header stamp."""
        return stamp_of(message)

    def decode(self, message: Any) -> Path:
        """Read x, y and yaw of every pose; speeds and times are not given."""
        return Path.make(message.header.frame_id, stamp_of(message), planar([row.pose for row in message.poses]))

    def encode(self, said: Said) -> PathMessage:
        """Write the poses, all in the frame and of the instant of the path."""
        assert isinstance(said, Path)
        message = PathMessage()
        message.header.frame_id = said.frame_id
        set_stamp(message.header.stamp, said.stamp_ns or 0)
        for row in said.pose.tolist():
            stamped = PoseStamped(header=message.header)
            set_planar(stamped.pose, *row)
            message.poses.append(stamped)
        return message
