# SPDX-License-Identifier: Apache-2.0
"""Obstacles as ``visualization_msgs/MarkerArray``."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from geometry_msgs.msg import Point, Pose, Quaternion, Vector3
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from mt_nodes.nodes.adapters.base import Adapter
from mt_nodes.nodes.messages import set_stamp, stamp_of
from mt_nodes.nodes.orientation import quaternion_of_yaw, yaws
from mt_nodes.outputs import Control, Detections

#: Colour-blind safe (Okabe-Ito) colours by class.
COLOURS = {
    "car": (0.0, 0.45, 0.70),
    "pedestrian": (0.84, 0.37, 0.0),
    "cyclist": (0.0, 0.62, 0.45),
    "unknown": (0.6, 0.6, 0.6),
}


class MarkerArrayObstacles(Adapter):
    """One CUBE marker an obstacle; ``ns`` is its class, ``text`` may hold ``score=0.9 track=7``.

    Every array, empty or not, begins with a DELETEALL marker that carries the stamp of the cloud: so "nothing seen"
    is said, and is said of a certain instant. An array without any marker has no stamp and answers by order.
    """

    type: ClassVar[str] = "visualization_msgs/msg/MarkerArray"
    role: ClassVar[str] = "detections"

    def stamp_ns(self, message: Any) -> int | None:
        """Stamp of the first marker."""
        return stamp_of(message.markers[0]) if message.markers else None

    def decode(self, message: Any) -> Detections:
        """Read every added CUBE, CYLINDER or SPHERE marker."""
        solid = (Marker.CUBE, Marker.CYLINDER, Marker.SPHERE)
        boxes = [m for m in message.markers if m.action == Marker.ADD and m.type in solid]
        frames = sorted({m.header.frame_id for m in boxes}) or [m.header.frame_id for m in message.markers[:1]]
        if len(frames) > 1:
            raise ValueError(f"the markers are in several frames: {', '.join(frames)}")
        notes = [_notes(m.text) for m in boxes]
        orientation = np.array([[q.x, q.y, q.z, q.w] for q in (m.pose.orientation for m in boxes)])
        return Detections.make(
            frames[0] if frames else "",
            self.stamp_ns(message),
            [[p.x, p.y, p.z] for p in (m.pose.position for m in boxes)],
            [[s.x, s.y, s.z] for s in (m.scale for m in boxes)],
            yaws(orientation),
            [m.ns or "unknown" for m in boxes],
            [float(n.get("score", 1.0)) for n in notes],
            [n.get("track", "") for n in notes],
        )

    def encode(self, said: Detections | Control) -> MarkerArray:
        """Write DELETEALL and one CUBE an obstacle."""
        assert isinstance(said, Detections)
        clear = Marker(action=Marker.DELETEALL)
        clear.header.frame_id = said.frame_id
        set_stamp(clear.header.stamp, said.stamp_ns or 0)
        return MarkerArray(markers=[clear, *(self._cube(said, i, clear.header) for i in range(len(said)))])

    def _cube(self, said: Detections, i: int, header: Any) -> Marker:
        x, y, z = said.center_m[i].tolist()
        length, width, height = said.size_m[i].tolist()
        label, track = str(said.label[i]), str(said.track_id[i])
        red, green, blue = COLOURS.get(label, COLOURS["unknown"])
        qx, qy, qz, qw = quaternion_of_yaw(float(said.yaw_rad[i]))
        return Marker(
            header=header,
            ns=label,
            id=i,
            type=Marker.CUBE,
            action=Marker.ADD,
            pose=Pose(position=Point(x=x, y=y, z=z), orientation=Quaternion(x=qx, y=qy, z=qz, w=qw)),
            scale=Vector3(x=length, y=width, z=height),
            color=ColorRGBA(r=red, g=green, b=blue, a=0.6),
            text=f"score={float(said.score[i])!r}" + (f" track={track}" if track else ""),
        )


def _notes(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split() if "=" in part)
