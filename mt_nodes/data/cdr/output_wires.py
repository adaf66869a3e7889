# SPDX-License-Identifier: Apache-2.0
"""The output of a callable as messages without ROS, of the default types of stack files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.markers import (
    COLOURS,
    IMAGE_MARKER,
    MARKERS,
    PATH,
    TWIST,
    Cube,
    cubes,
    encode_boxes,
    encode_control,
    encode_cubes,
    encode_detections,
    encode_path,
)
from mt_nodes.data.cdr.world_messages import lane_markers, light_markers
from mt_nodes.data.lanes import Lanes, SignalStates
from mt_nodes.data.messages import Wire
from mt_nodes.data.outputs import ROLES, ImageBoxes, Output
from mt_nodes.data.perception import FreeSpace, PredictedObjects
from mt_nodes.data.rotations import quaternion_of_yaw

GRID = "nav_msgs/msg/OccupancyGrid"
#: Width of the line that shows a predicted path.
_LINE_M = 0.2


def wires_of(output: Output, topics: Mapping[str, str], stamp_ns: int) -> tuple[Wire, ...]:
    """Return the output of a callable as messages, on the topics of the stack file.

    ``output``: of the callable; a silent arm gives no message. ``topics``: by role of output; a role without one gives
    no message. ``stamp_ns``: of the input that was answered.
    """
    parts = ((role, getattr(output, role)) for role in ROLES if role in topics)
    return tuple(_wire(role, part, topics[role], stamp_ns) for role, part in parts if part is not None)


def _wire(role: str, part: Any, topic: str, stamp_ns: int) -> Wire:
    type_name, encode = _ENCODERS[role]
    if isinstance(part, SignalStates) and len(part) and not part.in_image.all():
        type_name, encode = MARKERS, encode_signal_places
    return Wire(topic, type_name, stamp_ns, encode(part))


def signal_boxes(signals: SignalStates) -> ImageBoxes:
    """Return traffic lights in an image as boxes whose classes are the states."""
    rows = signals.in_image
    return ImageBoxes.make(
        signals.frame_id, signals.stamp_ns, signals.box_px[rows], signals.colour[rows].tolist(), signals.score[rows]
    )


def encode_signal_places(signals: SignalStates) -> bytes:
    """Return the CDR bytes of a ``MarkerArray`` with a bar at the place of each traffic light."""
    return encode_cubes(signals.frame_id, signals.stamp_ns, (light.cube for light in light_markers(signals)))


def encode_lanes(lanes: Lanes) -> bytes:
    """Return the CDR bytes of a ``MarkerArray`` with a band for each lane."""
    return encode_cubes(lanes.frame_id, lanes.stamp_ns, lane_markers(lanes))


def prediction_markers(predictions: PredictedObjects) -> Iterator[Cube]:
    """Yield the obstacles, then a line for each path that has places.

    The text of a line is ``of=0 probability=0.7 times=0.5,1.0``, ``of`` the place of its obstacle among these.
    """
    yield from cubes(predictions.objects)
    for row, paths in enumerate(predictions.paths):
        label = str(predictions.label[row])
        for path in (path for path in paths if len(path.time_s)):
            times = ",".join(map(repr, path.time_s.tolist()))
            text = f"of={row} probability={float(path.probability)!r} times={times}"
            line = tuple((x, y) for x, y in path.place_m.tolist())
            colour = COLOURS.get(label, COLOURS["unknown"])
            yield Cube(label, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), (_LINE_M, 0.0, 0.0), colour, text, line)


def encode_predictions(predictions: PredictedObjects) -> bytes:
    """Return the CDR bytes of a ``MarkerArray`` with :func:`prediction_markers`."""
    return encode_cubes(predictions.frame_id, predictions.stamp_ns, prediction_markers(predictions))


def encode_free_space(grid: FreeSpace) -> bytes:
    """Return the CDR bytes of an ``OccupancyGrid``."""
    types, (height, width), (x, y, yaw) = codec.typestore().types, grid.cells.shape, grid.origin
    header = codec.header_of(grid.frame_id, grid.stamp_ns or 0)
    turn = types["geometry_msgs/msg/Quaternion"](**dict(zip("xyzw", quaternion_of_yaw(yaw), strict=True)))
    origin: Any = types["geometry_msgs/msg/Pose"](
        position=types["geometry_msgs/msg/Point"](x=x, y=y, z=0.0), orientation=turn
    )
    info: Any = types["nav_msgs/msg/MapMetaData"](
        map_load_time=header.stamp, resolution=grid.resolution_m, width=width, height=height, origin=origin
    )
    data = np.ascontiguousarray(grid.cells.reshape(-1), dtype=np.int8)
    return codec.encode(GRID, types[GRID](header=header, info=info, data=data))


_ENCODERS: dict[str, tuple[str, Callable[[Any], bytes]]] = {
    "detections": (MARKERS, encode_detections),
    "control": (TWIST, encode_control),
    "boxes": (IMAGE_MARKER, encode_boxes),
    "path": (PATH, encode_path),
    "tracks": (MARKERS, encode_detections),
    "predictions": (MARKERS, encode_predictions),
    "signals": (IMAGE_MARKER, lambda signals: encode_boxes(signal_boxes(signals))),
    "lanes": (MARKERS, encode_lanes),
    "free_space": (GRID, encode_free_space),
}
