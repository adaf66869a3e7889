# SPDX-License-Identifier: Apache-2.0
"""Boxes in images as ``ImageMarker`` and paths as ``Path`` without ROS, by the conventions of the adapters."""

from __future__ import annotations

from typing import Any

from mt_nodes.data.cdr import codec
from mt_nodes.data.outputs import ImageBoxes, Path
from mt_nodes.data.rotations import quaternion_of_yaw

IMAGE_MARKER = "visualization_msgs/msg/ImageMarker"
PATH = "nav_msgs/msg/Path"
#: Constants of ``visualization_msgs/ImageMarker``.
LINE_LIST, ADD = 2, 0
#: Corners of a box as places in its edges (x0, y0, x1, y1), in the order of its four lines.
LINES = ((0, 1), (2, 1), (2, 1), (2, 3), (2, 3), (0, 3), (0, 3), (0, 1))
#: One colour for every class; its alpha is the score.
OUTLINE = (1.0, 0.75, 0.0)


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
