# SPDX-License-Identifier: Apache-2.0
"""Outputs as messages without ROS: obstacles and boxes in images as markers, commands and paths as ROS has them.

The conventions of the adapters: :mod:`mt_nodes.nodes.adapters.marker_adapters` is built from the same :func:`cubes`, so
evidence looks alike whichever way the messages went.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from mt_nodes.data.cdr import codec
from mt_nodes.data.outputs import Control, Detections, ImageBoxes, Path
from mt_nodes.data.rotations import quaternion_of_yaw

MARKERS = "visualization_msgs/msg/MarkerArray"
TWIST = "geometry_msgs/msg/TwistStamped"
IMAGE_MARKER = "visualization_msgs/msg/ImageMarker"
PATH = "nav_msgs/msg/Path"
#: Constants of ``visualization_msgs/Marker``.
ARROW, CUBE, LINE_STRIP, ADD, DELETE_ALL = 0, 1, 4, 0, 3
#: Constant of ``visualization_msgs/ImageMarker``, where lines are of another number.
LINE_LIST = 2
OPACITY = 0.6
#: Colour-blind safe (Okabe-Ito) colours by class.
COLOURS = {
    "car": (0.0, 0.45, 0.70),
    "pedestrian": (0.84, 0.37, 0.0),
    "cyclist": (0.0, 0.62, 0.45),
    "unknown": (0.6, 0.6, 0.6),
}

#: Corners of a box as places in its edges (x0, y0, x1, y1), in the order of its four lines.
LINES = ((0, 1), (2, 1), (2, 1), (2, 3), (2, 3), (0, 3), (0, 3), (0, 1))
#: One colour for every class; its alpha is the score.
OUTLINE = (1.0, 0.75, 0.0)


class Cube(NamedTuple):
    """One obstacle as a marker shows it; ``size_m`` is length, width, height.

    ``text`` is as ``score=0.9 track=7 velocity=1.5,0.0,0.0 age_years=7``; without ``track``, ``velocity`` and what is
    told of people (:mod:`mt_nodes.data.traits`) where nobody knows.
    With ``line_m``, places x, y on the ground, it is a band through these that is ``size_m[0]`` wide.
    """

    label: str
    center_m: tuple[float, float, float]
    quaternion_xyzw: tuple[float, float, float, float]
    size_m: tuple[float, float, float]
    colour: tuple[float, float, float]
    text: str
    line_m: tuple[tuple[float, float], ...] = ()


def cubes(output: Detections) -> Iterator[Cube]:
    """Yield one cube an obstacle."""
    for i in range(len(output)):
        label = str(output.label[i])
        yield Cube(
            label,
            tuple(output.center_m[i].tolist()),
            quaternion_of_yaw(float(output.yaw_rad[i])),
            tuple(output.size_m[i].tolist()),
            COLOURS.get(label, COLOURS["unknown"]),
            " ".join(_notes(output, i)),
        )


def _notes(output: Detections, i: int) -> Iterator[str]:
    yield f"score={float(output.score[i])!r}"
    if output.track_id[i]:
        yield f"track={output.track_id[i]}"
    if np.isfinite(output.velocity_mps[i]).all():
        yield f"velocity={','.join(map(repr, output.velocity_mps[i].tolist()))}"
    if output.traits[i]:
        yield str(output.traits[i])


def encode_detections(output: Detections) -> bytes:
    """Return the CDR bytes of a ``MarkerArray``: a DELETEALL marker with the stamp, then one CUBE an obstacle."""
    return encode_cubes(output.frame_id, output.stamp_ns, cubes(output))


def encode_cubes(frame_id: str, stamp_ns: int | None, shown: Iterable[Cube]) -> bytes:
    """Return the CDR bytes of a ``MarkerArray``: a DELETEALL marker with the stamp, then the cubes."""
    header = codec.header_of(frame_id, stamp_ns or 0)
    nothing = Cube("", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), "")
    clear = _marker(nothing, header, 0, (ARROW, DELETE_ALL), 0.0)
    kinds = {False: CUBE, True: LINE_STRIP}
    boxes = [_marker(cube, header, i, (kinds[bool(cube.line_m)], ADD), OPACITY) for i, cube in enumerate(shown)]
    return codec.encode(MARKERS, codec.typestore().types[MARKERS](markers=[clear, *boxes]))


def encode_control(output: Control) -> bytes:
    """Return the CDR bytes of a ``TwistStamped`` with speed and yaw rate; what the command does not hold is 0."""
    types = codec.typestore().types
    speed, turn = _known(output.speed_mps), _known(output.yaw_rate_radps)
    twist = types["geometry_msgs/msg/Twist"](linear=_vector((speed, 0.0, 0.0)), angular=_vector((0.0, 0.0, turn)))
    return codec.encode(TWIST, types[TWIST](header=codec.header_of("", output.stamp_ns or 0), twist=twist))


def _marker(cube: Cube, header: Any, number: int, kind: tuple[int, int], opacity: float) -> Any:
    types = codec.typestore().types
    no_time = types["builtin_interfaces/msg/Duration"](sec=0, nanosec=0)
    no_image = types["sensor_msgs/msg/CompressedImage"](
        header=codec.header_of("", 0), format="", data=np.empty(0, np.uint8)
    )
    pose = types["geometry_msgs/msg/Pose"](
        position=types["geometry_msgs/msg/Point"](**dict(zip("xyz", cube.center_m, strict=True))),
        orientation=types["geometry_msgs/msg/Quaternion"](**dict(zip("xyzw", cube.quaternion_xyzw, strict=True))),
    )
    return types["visualization_msgs/msg/Marker"](
        header=header,
        ns=cube.label,
        id=number,
        type=kind[0],
        action=kind[1],
        pose=pose,
        scale=_vector(cube.size_m),
        color=types["std_msgs/msg/ColorRGBA"](**dict(zip("rgb", cube.colour, strict=True)), a=opacity),
        lifetime=no_time,
        frame_locked=False,
        points=[types["geometry_msgs/msg/Point"](x=x, y=y, z=0.0) for x, y in cube.line_m],
        colors=[],
        texture_resource="",
        texture=no_image,
        uv_coordinates=[],
        text=cube.text,
        mesh_resource="",
        mesh_file=types["visualization_msgs/msg/MeshFile"](filename="", data=np.empty(0, np.uint8)),
        mesh_use_embedded_materials=False,
    )


def _vector(xyz: tuple[float, float, float]) -> Any:
    return codec.typestore().types["geometry_msgs/msg/Vector3"](**dict(zip("xyz", xyz, strict=True)))


def _known(value: float) -> float:
    return 0.0 if math.isnan(value) else float(value)


def encode_boxes(output: ImageBoxes) -> bytes:
    """Return the CDR bytes of one ``ImageMarker``: four lines a box, in pixels."""
    types = codec.typestore().types
    point, colour = types["geometry_msgs/msg/Point"], types["std_msgs/msg/ColorRGBA"]
    boxes, scores = output.box_px.tolist(), output.score.tolist()
    colours = [colour(**dict(zip("rgb", OUTLINE, strict=True)), a=score) for score in scores for _ in LINES]
    message = types[IMAGE_MARKER](
        header=codec.header_of(output.frame_id, output.stamp_ns or 0),
        ns=",".join(output.label.tolist()),
        id=0,
        type=LINE_LIST,
        action=ADD,
        position=point(x=0.0, y=0.0, z=0.0),
        scale=1.0,
        outline_color=colour(r=0.0, g=0.0, b=0.0, a=0.0),
        filled=0,
        fill_color=colour(r=0.0, g=0.0, b=0.0, a=0.0),
        lifetime=types["builtin_interfaces/msg/Duration"](sec=0, nanosec=0),
        points=[point(x=box[x], y=box[y], z=0.0) for box in boxes for x, y in LINES],
        outline_colors=colours,
    )
    return codec.encode(IMAGE_MARKER, message)


def encode_path(output: Path) -> bytes:
    """Return the CDR bytes of a ``Path`` on the ground, all poses in its frame and of its instant."""
    types = codec.typestore().types
    header = codec.header_of(output.frame_id, output.stamp_ns or 0)

    def pose(x: float, y: float, yaw: float) -> Any:
        turn = types["geometry_msgs/msg/Quaternion"](**dict(zip("xyzw", quaternion_of_yaw(yaw), strict=True)))
        place = types["geometry_msgs/msg/Point"](x=x, y=y, z=0.0)
        placed = types["geometry_msgs/msg/Pose"](position=place, orientation=turn)
        return types["geometry_msgs/msg/PoseStamped"](header=header, pose=placed)

    return codec.encode(PATH, types[PATH](header=header, poses=[pose(*row) for row in output.pose.tolist()]))
