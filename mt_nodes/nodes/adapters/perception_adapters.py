# SPDX-License-Identifier: Apache-2.0
"""Traffic lights, lanes, free space and predicted paths in messages of standard packages."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import shapely
from nav_msgs.msg import OccupancyGrid
from visualization_msgs.msg import Marker, MarkerArray

from mt_nodes.base.params import param
from mt_nodes.data.cdr.output_wires import prediction_markers, signal_boxes
from mt_nodes.data.lanes import OWN, Lanes, SignalStates, Strip
from mt_nodes.data.message_headers import set_header, stamp_of
from mt_nodes.data.outputs import Detections, ImageBoxes
from mt_nodes.data.perception import UNKNOWN_CELL, FreeSpace, PredictedObjects, PredictedPath
from mt_nodes.nodes.adapters.detection_adapters import Detection2dArrayBoxes, Detection3dArrayObstacles
from mt_nodes.nodes.adapters.marker_adapters import ImageMarkerBoxes, MarkerArrayObstacles, message_of
from mt_nodes.nodes.orientation import planar, points, set_planar
from mt_nodes.stacks.message_adapter import OutputPart, StampedAdapter

#: A grid of ten million cells is one of 300 m in cells of 0.1 m.
_MOST_CELLS = 10_000_000


class BoxSignals(StampedAdapter):
    """Base of adapters of traffic lights that are told as boxes in an image; the class of a box is its state."""

    role: ClassVar[str] = "signals"

    @property
    @abstractmethod
    def boxes(self) -> type[StampedAdapter]:
        """The adapter of the boxes."""

    def decode(self, message: Any) -> SignalStates:
        """Read a light from every box."""
        read = self.boxes().decode(message)
        assert isinstance(read, ImageBoxes)
        names = [""] * len(read)
        return SignalStates.make(
            read.frame_id, read.stamp_ns, names, read.label.tolist(), None, read.score, read.box_px
        )

    def encode(self, output: OutputPart) -> Any:
        """Write a box for every light that is in the image; names are lost."""
        assert isinstance(output, SignalStates)
        return self.boxes().encode(signal_boxes(output))


class ImageMarkerSignals(BoxSignals):
    """Traffic lights as boxes of one ImageMarker, by the convention of ``image_marker_boxes``; the class is the state.

    States are ``red``, ``yellow``, ``green``, ``off`` and ``unknown``; ``classes`` of the stack file renames others.
    """

    type: ClassVar[str] = "visualization_msgs/msg/ImageMarker"
    boxes = ImageMarkerBoxes


class Detection2dArraySignals(BoxSignals):
    """Traffic lights as detections in an image, by the convention of ``detection2d_array_boxes``.

    The class of a detection is the state of the light; ``classes`` of the stack file renames it, as ``{"1": red}``.
    """

    type: ClassVar[str] = "vision_msgs/msg/Detection2DArray"
    boxes = Detection2dArrayBoxes


class Detection3dArraySignals(StampedAdapter):
    """Traffic lights as boxes in metres, by the convention of ``detection3d_array_obstacles``.

    The class of a detection is the state of the light, ``id`` its name. Read only: heights and sizes are not kept.
    """

    type: ClassVar[str] = "vision_msgs/msg/Detection3DArray"
    role: ClassVar[str] = "signals"

    def decode(self, message: Any) -> SignalStates:
        """Read a light from every detection."""
        read = Detection3dArrayObstacles().decode(message)
        places = np.column_stack([read.center_m[:, :2], read.yaw_rad])
        names, states = read.track_id.tolist(), read.label.tolist()
        return SignalStates.make(read.frame_id, read.stamp_ns, names, states, places, read.score)


class PathLane(StampedAdapter):
    """One lane, the own one, by the poses of its middle line in the order of driving; its width is not known.

    A path without poses, stamped like its input, says that no lane is seen. Read only: a path is one lane.
    """

    type: ClassVar[str] = "nav_msgs/msg/Path"
    role: ClassVar[str] = "lanes"

    def decode(self, message: Any) -> Lanes:
        """Read x and y of every pose."""
        middle = planar([row.pose for row in message.poses])[:, :2]
        strips = [Strip("", OWN, 0.0, middle)] if len(middle) else []
        return Lanes.make(message.header.frame_id, stamp_of(message), strips)


class OccupancyGridFreeSpace(StampedAdapter):
    """A grid of cells: 0 to 100 percent occupied, -1 unknown. Origin, yaw and resolution (m) are those of its info."""

    type: ClassVar[str] = "nav_msgs/msg/OccupancyGrid"
    role: ClassVar[str] = "free_space"

    def decode(self, message: Any) -> FreeSpace:
        """Read the cells. Raises ValueError: their number is not width times height."""
        info, cells = message.info, np.array(message.data, dtype=np.int8)
        if len(cells) != info.width * info.height:
            raise ValueError(f"got {len(cells)} cells, expected width x height = {info.width} x {info.height}")
        origin = planar([info.origin])[0]
        return FreeSpace(
            message.header.frame_id,
            stamp_of(message),
            float(f"{info.resolution:.7g}"),  # 32 bits: 0.1 comes as 0.10000000149
            (float(origin[0]), float(origin[1]), float(origin[2])),
            cells.reshape(info.height, info.width),
        )

    def encode(self, output: OutputPart) -> OccupancyGrid:
        """Write the cells."""
        assert isinstance(output, FreeSpace)
        message = OccupancyGrid()
        set_header(message.header, output.frame_id, output.stamp_ns)
        message.info.map_load_time = message.header.stamp
        message.info.resolution = float(output.resolution_m)
        message.info.height, message.info.width = output.cells.shape
        set_planar(message.info.origin, *output.origin)
        message.data = output.cells.reshape(-1).astype(np.int8).tolist()
        return message


@dataclass(frozen=True)
class PolygonStampedFreeSpace(StampedAdapter):
    """The outline of free space on the ground, in metres: cells whose centre lies within are free, others unknown.

    Nothing is occupied in it, so that ``occupied_cells_kept`` decides nothing. A polygon with fewer than three corners
    says that nothing is free. Read only.
    """

    resolution_m: float = param(
        0.25, low=0.01, high=5.0, unit="m", help="side of a cell of the grid that is made of it"
    )

    type: ClassVar[str] = "geometry_msgs/msg/PolygonStamped"
    role: ClassVar[str] = "free_space"

    def decode(self, message: Any) -> FreeSpace:
        """Read the outline. Raises ValueError: a corner is not finite, or the polygon needs too many cells."""
        frame, stamp = message.header.frame_id, stamp_of(message)
        corners = points(message.polygon.points)[:, :2]
        if not np.isfinite(corners).all():
            raise ValueError("got a corner that is not finite, expected numbers in metres")
        if len(corners) < 3:
            return FreeSpace(frame, stamp, self.resolution_m, (0.0, 0.0, 0.0), np.empty((0, 0), np.int8))
        # On a raster that does not move with the outline, so that cells of two outlines are the same ones.
        low, high = (np.floor(edge / self.resolution_m) for edge in (corners.min(axis=0), corners.max(axis=0)))
        width, height = (high - low + 1).tolist()
        if width * height > _MOST_CELLS:
            raise ValueError(f"got a polygon of {width:.0f} x {height:.0f} cells, expected at most {_MOST_CELLS:,}")
        x, y = np.meshgrid(
            *((low[i] + np.arange(int(n)) + 0.5) * self.resolution_m for i, n in enumerate((width, height)))
        )
        free = shapely.contains_xy(shapely.make_valid(shapely.Polygon(corners)), x, y)
        origin = (*(low * self.resolution_m).tolist(), 0.0)
        return FreeSpace(frame, stamp, self.resolution_m, origin, np.where(free, 0, UNKNOWN_CELL).astype(np.int8))


class MarkerArrayPredictions(StampedAdapter):
    """Obstacles as in ``marker_array_obstacles``, and a LINE_STRIP for each path that one of them may take.

    ``text`` of a line is ``of=0 probability=0.7 times=0.5,1.0``: the place of its obstacle among the array's cubes, the
    probability, and the time from now in s of each point. All must be in one frame.
    """

    type: ClassVar[str] = "visualization_msgs/msg/MarkerArray"
    role: ClassVar[str] = "predictions"

    def stamp_ns(self, message: Any) -> int | None:
        """Stamp of the first marker that has one."""
        return MarkerArrayObstacles().stamp_ns(message)

    def decode(self, message: Any) -> PredictedObjects:
        """Read obstacles and paths.

        Raises ValueError: a line names no obstacle, or its times are not as many as its points.
        """
        objects = MarkerArrayObstacles().decode(message)
        paths: list[list[PredictedPath]] = [[] for _ in range(len(objects))]
        for marker in message.markers:
            if marker.action == Marker.ADD and marker.type == Marker.LINE_STRIP:
                of, path = _path_of(marker, len(objects))
                paths[of].append(path)
        return PredictedObjects(objects.frame_id, objects.stamp_ns, objects, tuple(map(tuple, paths)))

    def encode(self, output: OutputPart) -> MarkerArray:
        """Write the obstacles and a line for each path."""
        assert isinstance(output, PredictedObjects)
        return message_of(output.frame_id, output.stamp_ns, prediction_markers(output))


def _path_of(marker: Any, objects: int) -> tuple[int, PredictedPath]:
    notes = dict(part.split("=", 1) for part in marker.text.split() if "=" in part)
    of = int(notes.get("of", -1))
    times = np.array([float(text) for text in notes.get("times", "").split(",") if text], dtype=np.float64)
    if not 0 <= of < objects or len(times) != len(marker.points):
        raise ValueError(
            f"got a line of {len(marker.points)} points with text {marker.text!r}, expected of=N, N below {objects}, "
            "and times=… with a time for each point"
        )
    return of, PredictedPath(float(notes.get("probability", 1.0)), times, points(marker.points)[:, :2])


class PathPrediction(StampedAdapter):
    """One predicted path, of one obstacle without class and size that is where the path begins.

    The time of a pose is its own stamp after that of the header. A path without poses, stamped like its input, says
    that nothing is predicted. Read only.
    """

    type: ClassVar[str] = "nav_msgs/msg/Path"
    role: ClassVar[str] = "predictions"

    def decode(self, message: Any) -> PredictedObjects:
        """Read places and times of every pose."""
        frame, stamp, poses = message.header.frame_id, stamp_of(message), message.poses
        places = planar([row.pose for row in poses])
        time_s = np.array([((stamp_of(row) or 0) - (stamp or 0)) * 1e-9 for row in poses])
        first = [[x, y, 0.0] for x, y, _ in places[:1].tolist()]
        objects = Detections.make(frame, stamp, first, yaw_rad=places[: len(first), 2])
        paths = ((PredictedPath(1.0, time_s, places[:, :2]),),) if len(places) else ()
        return PredictedObjects(frame, stamp, objects, paths)
