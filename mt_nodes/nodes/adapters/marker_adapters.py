# SPDX-License-Identifier: Apache-2.0
"""Obstacles, boxes in an image, lanes and traffic lights as ``visualization_msgs``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from geometry_msgs.msg import Point, Pose, Quaternion, Vector3
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import ImageMarker, Marker, MarkerArray

from mt_nodes.base.arrays import Floats
from mt_nodes.data.cdr.markers import LINES, OPACITY, OUTLINE, Cube, cubes
from mt_nodes.data.cdr.world_messages import lane_markers, light_markers
from mt_nodes.data.lanes import Lanes, SignalStates, Strip
from mt_nodes.data.message_headers import set_header, stamp_of
from mt_nodes.data.outputs import Detections, ImageBoxes
from mt_nodes.data.traits import text_of
from mt_nodes.nodes.orientation import planar, points, quaternions, turned, yaws
from mt_nodes.stacks.message_adapter import Adapter, OutputPart, StampedAdapter
from mt_nodes.stacks.upright_boxes import boxes_around

SOLID = (Marker.CUBE, Marker.CYLINDER, Marker.SPHERE)
LISTS = (Marker.CUBE_LIST, Marker.SPHERE_LIST)
#: Ends of the edges of one box that is drawn as lines.
ENDS = 24
UNKNOWN = (float("nan"),) * 3
#: Notes that are no traits of a person.
_OWN_NOTES = ("score", "track", "velocity")

Boxes = tuple[Floats, Floats, Floats]


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

        Raises ValueError: they are in several frames, or a score or velocity is no number.
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
            traits=[text_of({name: value for name, value in n.items() if name not in _OWN_NOTES}) for n in notes],
        )

    def encode(self, output: OutputPart) -> MarkerArray:
        """Write DELETEALL and one CUBE an obstacle."""
        assert isinstance(output, Detections)
        return message_of(output.frame_id, output.stamp_ns, cubes(output))


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


class ImageMarkerBoxes(StampedAdapter):
    """One marker of type LINE_LIST an image: four lines, so eight points in pixels, a box.

    ``ns`` names the classes: one for each box, separated by commas, or one for all. The alpha of a box's first outline
    colour is its score; without outline colours every score is 1. A marker without points, stamped with the image's
    stamp, says that nothing was seen.
    """

    type: ClassVar[str] = "visualization_msgs/msg/ImageMarker"
    role: ClassVar[str] = "boxes"

    def decode(self, message: Any) -> ImageBoxes:
        """Read the boxes around every eight points."""
        count, rest = divmod(len(message.points), len(LINES))
        if message.type != ImageMarker.LINE_LIST or rest:
            raise ValueError(
                f"got an ImageMarker of type {message.type} with {len(message.points)} points, expected LINE_LIST "
                f"({ImageMarker.LINE_LIST}) with eight points a box"
            )
        points = np.array([(p.x, p.y) for p in message.points]).reshape(count, len(LINES), 2)
        edges = np.column_stack([points.min(axis=1), points.max(axis=1)]) if count else np.empty((0, 4))
        colours = message.outline_colors[:: len(LINES)]
        scores = [float(c.a) for c in colours] if len(colours) == count else None
        names = message.ns.split(",")
        return ImageBoxes.make(
            message.header.frame_id,
            stamp_of(message),
            edges,
            [name or "unknown" for name in (names if len(names) == count else names[:1] * count)],
            scores,
        )

    def encode(self, output: OutputPart) -> ImageMarker:
        """Write four lines a box."""
        assert isinstance(output, ImageBoxes)
        message = ImageMarker(ns=",".join(output.label.tolist()), type=ImageMarker.LINE_LIST, action=ImageMarker.ADD)
        message.scale = 1.0
        set_header(message.header, output.frame_id, output.stamp_ns)
        for box, score in zip(output.box_px.tolist(), output.score.tolist(), strict=True):
            colour = ColorRGBA(**dict(zip("rgb", OUTLINE, strict=True)), a=score)
            message.points += [Point(x=box[x], y=box[y]) for x, y in LINES]
            message.outline_colors += [colour] * len(LINES)
        return message


class LaneMarkers(Adapter):
    """One LINE_STRIP a lane along its middle, in the order of driving: ``ns`` is its name, ``text`` its direction
    (``own``, ``along``, ``oncoming``), x of the scale its width.

    Every array begins with a DELETEALL marker that carries stamp and frame, so that "no lanes here" is said.
    """

    type: ClassVar[str] = "visualization_msgs/msg/MarkerArray"
    role: ClassVar[str] = "lanes"

    def stamp_ns(self, message: Any) -> int | None:
        """Stamp of the first marker; an empty array has none."""
        return stamp_of(message.markers[0]) if message.markers else None

    def decode(self, message: Any) -> Lanes:
        """Read every added line; other markers are no lanes."""
        rows = [m for m in message.markers if m.action == Marker.ADD and m.type == Marker.LINE_STRIP]
        frame = message.markers[0].header.frame_id if message.markers else ""
        return Lanes.make(frame, self.stamp_ns(message), [Strip(m.ns, m.text, m.scale.x, _middle(m)) for m in rows])

    def encode(self, output: OutputPart) -> MarkerArray:
        """Write DELETEALL and one line a lane."""
        assert isinstance(output, Lanes)
        return message_of(output.frame_id, output.stamp_ns, lane_markers(output))


def _middle(marker: Any) -> Any:
    """Return (K, 2) the points of a line in the frame of its header."""
    own = turned(quaternions([marker.pose.orientation]), points(marker.points))
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is nobody's to judge
        return (points([marker.pose.position]) + own)[:, :2]


class LightMarkers(Adapter):
    """One marker a light: ``ns`` is its name, ``text`` its colour, the pose where one stops for it, and in which
    direction one drives there.

    Every array begins with a DELETEALL marker that carries stamp and frame, so that "no lights here" is said.
    """

    type: ClassVar[str] = "visualization_msgs/msg/MarkerArray"
    role: ClassVar[str] = "signals"

    def stamp_ns(self, message: Any) -> int | None:
        """Stamp of the first marker; an empty array has none."""
        return stamp_of(message.markers[0]) if message.markers else None

    def decode(self, message: Any) -> SignalStates:
        """Read every added marker."""
        rows = [m for m in message.markers if m.action == Marker.ADD]
        frame = message.markers[0].header.frame_id if message.markers else ""
        names, colours = [m.ns for m in rows], [m.text for m in rows]
        return SignalStates.make(frame, self.stamp_ns(message), names, colours, planar([m.pose for m in rows]))

    def encode(self, output: OutputPart) -> MarkerArray:
        """Write DELETEALL and one bar across the lane a light."""
        assert isinstance(output, SignalStates)
        return message_of(output.frame_id, output.stamp_ns, (light.cube for light in light_markers(output)))
