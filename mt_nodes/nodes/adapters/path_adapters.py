# SPDX-License-Identifier: Apache-2.0
"""Planned paths and trajectories."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path as PathMessage

from mt_nodes.base.arrays import Floats
from mt_nodes.data.message_headers import set_stamp, stamp_of
from mt_nodes.data.outputs import Path
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.orientation import planar, set_planar
from mt_nodes.stacks.message_adapter import OutputPart, StampedAdapter


class PathPoses(StampedAdapter):
    """One pose a place, on the ground; a path without poses, stamped like its input, says that there is none."""

    type: ClassVar[str] = "nav_msgs/msg/Path"
    role: ClassVar[str] = "path"

    def decode(self, message: Any) -> Path:
        """Read x, y and yaw of every pose; speeds and times are not given."""
        return Path.make(message.header.frame_id, stamp_of(message), planar([row.pose for row in message.poses]))

    def encode(self, output: OutputPart) -> PathMessage:
        """Write the poses, all in the frame and of the instant of the path."""
        assert isinstance(output, Path)
        message = PathMessage()
        message.header.frame_id = output.frame_id
        set_stamp(message.header.stamp, output.stamp_ns or 0)
        for row in output.pose.tolist():
            stamped = PoseStamped(header=message.header)
            set_planar(stamped.pose, *row)
            message.poses.append(stamped)
        return message


class AutowareTrajectory(StampedAdapter):
    """Place, yaw, longitudinal speed in m/s and time from the start in s of every point, in the header's frame.

    Where ``time_from_start`` is 0 in every point, it was not filled in, and no times are given. A trajectory without
    points, stamped like its input, says that there is none. Heights, lateral speeds, accelerations and wheel angles
    are not read.
    """

    type: ClassVar[str] = "autoware_planning_msgs/msg/Trajectory"
    role: ClassVar[str] = "path"

    def decode(self, message: Any) -> Path:
        """Read poses, speeds and times."""
        points = message.points
        return Path(
            message.header.frame_id,
            stamp_of(message),
            planar([point.pose for point in points]),
            np.array([point.longitudinal_velocity_mps for point in points], dtype=np.float64),
            _times([point.time_from_start for point in points]),
        )

    def encode(self, output: OutputPart) -> Any:
        """Write every point; a speed or time that is not known is 0."""
        assert isinstance(output, Path)
        message = message_class(self.type)()
        message.header.frame_id = output.frame_id
        set_stamp(message.header.stamp, output.stamp_ns or 0)
        rows = np.column_stack([output.pose, _known(output.speed_mps), _known(output.time_s)])
        message.points = [self._point(*row) for row in rows.tolist()]
        return message

    def _point(self, x: float, y: float, yaw: float, speed_mps: float, time_s: float) -> Any:
        point = message_class(f"{self.type}Point")()
        set_planar(point.pose, x, y, yaw)
        point.longitudinal_velocity_mps = speed_mps
        since = point.time_from_start
        since.sec, since.nanosec = divmod(round(time_s * 1e9), 1_000_000_000)
        return point


def _known(values: Floats) -> Floats:
    return np.where(np.isnan(values), 0.0, values)


def _times(durations: list[Any]) -> Floats:
    times = np.array([d.sec + 1e-9 * d.nanosec for d in durations], dtype=np.float64)
    return times if times.any() else np.full(len(times), np.nan)


class AutowareAutoTrajectory(AutowareTrajectory):
    """The same fields as ``autoware_trajectory``, under the older name of the package."""

    type: ClassVar[str] = "autoware_auto_planning_msgs/msg/Trajectory"
