# SPDX-License-Identifier: Apache-2.0
"""Obstacles as ``visualization_msgs/MarkerArray``."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from geometry_msgs.msg import Point, Pose, Quaternion, Vector3
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from mt_nodes.markers import OPACITY, Cube, cubes
from mt_nodes.nodes.adapters.base import Adapter, Said
from mt_nodes.nodes.messages import set_stamp, stamp_of
from mt_nodes.nodes.orientation import yaws
from mt_nodes.outputs import Detections


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

    def encode(self, said: Said) -> MarkerArray:
        """Write DELETEALL and one CUBE an obstacle."""
        assert isinstance(said, Detections)
        clear = Marker(action=Marker.DELETEALL)
        clear.header.frame_id = said.frame_id
        set_stamp(clear.header.stamp, said.stamp_ns or 0)
        boxes = [_marker(cube, clear.header, i) for i, cube in enumerate(cubes(said))]
        return MarkerArray(markers=[clear, *boxes])


def _marker(cube: Cube, header: Any, number: int) -> Marker:
    return Marker(
        header=header,
        ns=cube.label,
        id=number,
        type=Marker.CUBE,
        action=Marker.ADD,
        pose=Pose(
            position=Point(**dict(zip("xyz", cube.center_m, strict=True))),
            orientation=Quaternion(**dict(zip("xyzw", cube.quaternion_xyzw, strict=True))),
        ),
        scale=Vector3(**dict(zip("xyz", cube.size_m, strict=True))),
        color=ColorRGBA(**dict(zip("rgb", cube.colour, strict=True)), a=OPACITY),
        text=cube.text,
    )


def _notes(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split() if "=" in part)
