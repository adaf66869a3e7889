# SPDX-License-Identifier: Apache-2.0
"""Obstacles as ``visualization_msgs/MarkerArray``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from geometry_msgs.msg import Point, Pose, Quaternion, Vector3
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from mt_nodes.data.cdr.markers import OPACITY, Cube, cubes
from mt_nodes.data.outputs import Detections
from mt_nodes.data.traits import text_of
from mt_nodes.nodes.adapters.base import Adapter, Said
from mt_nodes.nodes.message_classes import set_header, stamp_of
from mt_nodes.nodes.orientation import points, quaternions, turned, yaws
from mt_nodes.stacks.upright_boxes import boxes_around

SOLID = (Marker.CUBE, Marker.CYLINDER, Marker.SPHERE)
LISTS = (Marker.CUBE_LIST, Marker.SPHERE_LIST)
#: Ends of the edges of one box that is drawn as lines.
ENDS = 24
UNKNOWN = (float("nan"),) * 3
#: Notes that are no traits of a person.
_OWN_NOTES = ("score", "track", "velocity")

Boxes = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]


class MarkerArrayObstacles(Adapter):
    """One CUBE marker an obstacle, in metres; ``ns`` is its class, ``text`` may hold ``score=0.9 track=7
    velocity=1.5,0.0,0.0``, and behind that what is told of people, as ``age_years=7 compliance=jaywalking``.

    Every array, empty or not, begins with a DELETEALL marker that carries the stamp of the cloud: so "nothing seen"
    is said, and is said of a certain instant. An array without any marker has no stamp and answers by order.

    Of other people's arrays CYLINDER and SPHERE markers are read, too, each point of a CUBE_LIST or SPHERE_LIST and,
    where nothing of that kind is in it, boxes drawn as the twelve lines of a LINE_LIST. All must be in one frame.
    Arrows, texts, line strips and meshes are not obstacles; roll and pitch, colours and lifetimes are not read.
    """

    type: ClassVar[str] = "visualization_msgs/msg/MarkerArray"
    role: ClassVar[str] = "detections"

    def stamp_ns(self, message: Any) -> int | None:
        """Stamp of the first marker that has one: some clear the screen with a marker that has none."""
        stamps = [stamp_of(marker) for marker in message.markers]
        return next((stamp for stamp in stamps if stamp), 0) if stamps else None

    def decode(self, message: Any) -> Detections:
        """Read every added marker that is an obstacle.

        Raises:
            ValueError: they are in several frames, or a score or velocity is no number.
        """
        added = [m for m in message.markers if m.action == Marker.ADD]
        drawn = [m for m in added if m.type == Marker.LINE_LIST and m.points and len(m.points) % ENDS == 0]
        solid = [m for m in added if m.type in SOLID]
        others = [m for m in added if m.type in LISTS] or (drawn if not solid else [])
        shown = [*solid, *others]
        frames = sorted({m.header.frame_id for m in shown}) or [m.header.frame_id for m in message.markers[:1]]
        if len(frames) > 1:
            raise ValueError(f"the markers are in several frames: {', '.join(frames)}")
        parts = [_boxes(m) for m in others]
        rows = solid + [m for m, (center, _, _) in zip(others, parts, strict=True) for _ in center]
        notes = [_notes(m.text) for m in rows]
        center, size, yaw = (np.concatenate(column) for column in zip(_solids(solid), *parts, strict=True))
        return Detections.make(
            frames[0] if frames else "",
            self.stamp_ns(message),
            center,
            size,
            yaw,
            [m.ns or "unknown" for m in rows],
            [float(n.get("score", 1.0)) for n in notes],
            [n.get("track", "") for n in notes],
            [_velocity(n["velocity"]) if "velocity" in n else UNKNOWN for n in notes],
            traits=[text_of({name: told for name, told in n.items() if name not in _OWN_NOTES}) for n in notes],
        )

    def encode(self, said: Said) -> MarkerArray:
        """Write DELETEALL and one CUBE an obstacle."""
        assert isinstance(said, Detections)
        return message_of(said.frame_id, said.stamp_ns, cubes(said))


def message_of(frame_id: str, stamp_ns: int | None, shown: Iterable[Cube]) -> MarkerArray:
    """Return a DELETEALL marker with the stamp, and the cubes."""
    clear = Marker(action=Marker.DELETEALL)
    set_header(clear.header, frame_id, stamp_ns)
    return MarkerArray(markers=[clear, *(_marker(cube, clear.header, i) for i, cube in enumerate(shown))])


def _marker(cube: Cube, header: Any, number: int) -> Marker:
    return Marker(
        header=header,
        ns=cube.label,
        id=number,
        type=Marker.LINE_STRIP if cube.line_m else Marker.CUBE,
        action=Marker.ADD,
        pose=Pose(
            position=Point(**dict(zip("xyz", cube.center_m, strict=True))),
            orientation=Quaternion(**dict(zip("xyzw", cube.quaternion_xyzw, strict=True))),
        ),
        scale=Vector3(**dict(zip("xyz", cube.size_m, strict=True))),
        color=ColorRGBA(**dict(zip("rgb", cube.colour, strict=True)), a=OPACITY),
        points=[Point(x=x, y=y) for x, y in cube.line_m],
        text=cube.text,
    )


def _solids(markers: Sequence[Any]) -> Boxes:
    """Return centres (M, 3), sizes (M, 3) and yaws (M,)."""
    center, size = points(m.pose.position for m in markers), points(m.scale for m in markers)
    return center, size, yaws(quaternions(m.pose.orientation for m in markers))


def _boxes(marker: Any) -> Boxes:
    """Return the same of the points of one list, or of the boxes drawn as lines."""
    (place, size, yaw), turn = _solids([marker]), quaternions([marker.pose.orientation])
    own = points(marker.points)
    if marker.type in LISTS:
        return place + turned(turn, own), np.repeat(size, len(own), axis=0), np.repeat(yaw, len(own))
    if not np.isfinite(own).all():
        return place * np.nan, size, yaw
    center, size, angle = boxes_around(own, np.repeat(np.arange(len(own) // ENDS), ENDS))
    return place + turned(turn, center), size, angle + yaw


def _notes(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split() if "=" in part)


def _velocity(text: str) -> list[float]:
    numbers = [float(part) for part in text.split(",")]
    if len(numbers) != 3:
        raise ValueError(f"velocity={text} has {len(numbers)} numbers, expected x,y,z")
    return numbers
