# SPDX-License-Identifier: Apache-2.0
"""Regions of interest: ground-plan polygons in a named frame, from YAML, a topic, or a high-definition map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.base import resources
from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.base.errors import UsageError
from mt_nodes.base.yaml_files import read_mapping, refuse_unknown
from mt_nodes.data.hd_maps.road_area import RoadArea, load_road_area
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import MAP_FRAME, UnknownTransform

Polygon = tuple[tuple[float, float], ...]
TOPIC_PREFIX = "topic:"
_KEYS = ("name", "frame_id", "polygon_m", "box_m", "z_m", "topic", "road")


class RegionUnavailable(LookupError):
    """The bundle has no (usable) polygon for a region from a topic, or no lane for a region from a map."""


@dataclass(frozen=True)
class Region:
    """A part of the ground plan, optionally between two heights.

    Attributes:
        name: what people call it.
        polygon_m: outlines, each ((x, y), …) in metres; the region is their union.
        z_m: (lowest, highest) z that counts as inside, None for any.
        topic: the ``PolygonStamped`` topic that says the outline at every instant; see :meth:`resolve`.
        road: the lanes of a map in ``frame_id`` that are the region at every instant; see :meth:`resolve`.
    """

    name: str
    frame_id: str
    polygon_m: tuple[Polygon, ...] = ()
    z_m: tuple[float, float] | None = None
    topic: str = ""
    road: RoadArea | None = None

    @property
    def fixed(self) -> bool:
        """Whether the outline is the same at every instant."""
        return not self.topic and self.road is None

    def resolve(self, bundle: Bundle) -> Region:
        """Return the region of this instant: itself unless it comes from a topic or a map.

        Raises RegionUnavailable: the bundle has no polygon of the topic, or one that is no polygon; or no transform
        from the map, or no lane in reach.
        """
        if self.road is not None:
            return self._on_road(self.road, bundle)
        if not self.topic:
            return self
        if self.topic not in bundle.regions:
            known = ", ".join(sorted(bundle.regions)) or "(none)"
            raise RegionUnavailable(
                f"no polygon on {self.topic} by bundle {bundle.index}; topics with polygons: {known}"
            )
        frame_id, points = bundle.regions[self.topic]
        try:
            outline = _polygon(np.asarray(points)[:, :2].tolist(), f"{self.topic} at bundle {bundle.index}")
        except UsageError as error:
            raise RegionUnavailable(str(error)) from error
        return replace(self, frame_id=frame_id, polygon_m=(outline,), topic="")

    def _on_road(self, road: RoadArea, bundle: Bundle) -> Region:
        try:
            to_map = bundle.transforms.lookup(self.frame_id, road.ego_frame_id)
        except UnknownTransform as error:
            raise RegionUnavailable(f"region '{self.name}' needs the ego's pose on the map: {error}") from error
        found = _around(self, to_map.tobytes())
        if not found.polygon_m:
            x_m, y_m = to_map[:2, 3]
            place = f"within {road.reach_m:g} m of {road.ego_frame_id} at x {x_m:.1f}, y {y_m:.1f} m"
            raise RegionUnavailable(f"{Path(road.map).name} has no lane {place} in frame '{self.frame_id}'")
        return found

    @cached_property
    def geometry(self) -> Any:
        """The union of the polygons as a prepared shapely geometry."""
        geometry = shapely.union_all([shapely.Polygon(outline) for outline in self.polygon_m])
        shapely.prepare(geometry)
        return geometry

    @cached_property
    def bounds(self) -> tuple[float, float, float, float]:
        """Lowest x, lowest y, highest x, highest y in metres."""
        low_x, low_y, high_x, high_y = self.geometry.bounds
        return float(low_x), float(low_y), float(high_x), float(high_y)

    @cached_property
    def rectangular(self) -> bool:
        """Whether the region is one axis-aligned box, which needs no shapely."""
        return bool(self.geometry.equals(shapely.box(*self.bounds)))

    def buffered(self, by_m: float) -> Any:
        """Return the shapely outline grown by ``by_m``, or shrunk when negative (for pictures and validation)."""
        return shapely.buffer(self.geometry, by_m, join_style="mitre")

    def contains(self, xyz: npt.NDArray[Any]) -> Mask:
        """Return which points (N, 3), or (N, 2) at any height, of the region's frame lie inside; NaN does not."""
        x, y = xyz[:, 0], xyz[:, 1]
        low_x, low_y, high_x, high_y = self.bounds
        inside = (x >= low_x) & (x <= high_x) & (y >= low_y) & (y <= high_y)
        if self.z_m is not None and xyz.shape[1] > 2:
            inside &= (xyz[:, 2] >= self.z_m[0]) & (xyz[:, 2] <= self.z_m[1])
        if not self.rectangular:
            rows = np.flatnonzero(inside)
            inside[rows] = shapely.intersects_xy(self.geometry, x[rows], y[rows])
        return np.asarray(inside)

    def signed_distance(self, xy: npt.NDArray[Any]) -> Floats:
        """Return the distance in metres of points (N, 2) to the outline, negative inside, in the ground plan."""
        if self.rectangular:
            low_x, low_y, high_x, high_y = self.bounds
            dx = np.maximum(low_x - xy[:, 0], xy[:, 0] - high_x)
            dy = np.maximum(low_y - xy[:, 1], xy[:, 1] - high_y)
            outside = np.hypot(np.maximum(dx, 0.0), np.maximum(dy, 0.0))
            return np.asarray(outside + np.minimum(np.maximum(dx, dy), 0.0), dtype=np.float64)
        points = shapely.points(np.ascontiguousarray(xy[:, :2], dtype=np.float64))
        distance = shapely.distance(self.geometry.boundary, points)
        return np.asarray(np.where(shapely.intersects(self.geometry, points), -distance, distance), dtype=np.float64)

    def beyond(self, xy: npt.NDArray[Any], away_m: float) -> Mask:
        """Return which points (N, 2) lie more than ``away_m``, at least 0, outside: faster than their distances."""
        if self.rectangular:
            return np.asarray(self.signed_distance(xy) > away_m)
        points = shapely.points(np.ascontiguousarray(xy[:, :2], dtype=np.float64))
        return np.asarray(~shapely.dwithin(self.geometry, points, away_m))


@lru_cache(maxsize=8)
def _around(region: Region, pose: bytes) -> Region:
    """Return the region of a map around a pose; cached, because mutation and checks ask for the same one."""
    assert region.road is not None
    outlines = region.road.around(np.frombuffer(pose).reshape(4, 4))
    return replace(region, frame_id=region.road.ego_frame_id, polygon_m=outlines, road=None)


def load_region(value: Any, where: str = "region") -> Region:
    """Make a region from the value of a parameter.

    ``value`` is the name of a shipped region, the path of a YAML file, ``topic:/name``, or a mapping
    with ``frame_id`` and ``polygon_m`` (one outline or a list of outlines) or ``box_m: {x: [a, b], y: [c, d]}``,
    and optionally ``name`` and ``z_m: [low, high]``;
    or ``road: {map: FILE, …}`` in place of outlines, see :class:`RoadArea`.
    Raises UsageError: unknown name or key, or an outline that crosses itself, is empty or has fewer than three corners.
    """
    if isinstance(value, Region):
        return value
    if isinstance(value, Mapping):
        return _from_mapping(value, where, "inline", Path())
    if not isinstance(value, str):
        raise UsageError(f"{where}: got {value!r}, expected a region's name, a .yaml file, topic:/name or a mapping")
    if value.startswith(TOPIC_PREFIX):
        return _from_topic(value.removeprefix(TOPIC_PREFIX), where)
    try:
        path = resources.find("regions", value)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    return _from_mapping(read_mapping(path), str(path), path.stem, Path(path).parent)


class RegionGiven:
    """A frozen dataclass whose parameter ``region`` is whatever :func:`load_region` takes."""

    region: Region

    def __post_init__(self) -> None:
        object.__setattr__(self, "region", load_region(self.region))


def load_optional_region(value: Any, where: str = "region") -> Region | None:
    """Make a region; None from None."""
    return None if value is None else load_region(value, where)


def _from_topic(topic: str, where: str) -> Region:
    if not topic.startswith("/") or topic == "/":
        raise UsageError(f"{where}: got topic '{topic}', expected an absolute one such as topic:/perception/roi")
    return Region(name=topic, frame_id="", topic=topic)


def _from_mapping(data: Mapping[str, Any], where: str, default_name: str, folder: Path) -> Region:
    refuse_unknown(data, _KEYS, where)
    if data.get("topic"):
        return _from_topic(str(data["topic"]), where)
    if data.get("road") is not None:
        return _from_road(data, where, default_name, folder)
    frame_id = data.get("frame_id")
    if not isinstance(frame_id, str) or not frame_id:
        raise UsageError(f"{where}: frame_id: got {frame_id!r}, expected the name of the frame of the coordinates")
    if ("polygon_m" in data) == ("box_m" in data):
        raise UsageError(f"{where}: expected exactly one of polygon_m and box_m")
    outlines = _outlines(data["polygon_m"], where) if "polygon_m" in data else (_box(data["box_m"], where),)
    z_m = None if data.get("z_m") is None else _interval(data["z_m"], f"{where}: z_m")
    return Region(str(data.get("name", default_name)), frame_id, outlines, z_m)


def _from_road(data: Mapping[str, Any], where: str, default_name: str, folder: Path) -> Region:
    if data.get("polygon_m") or data.get("box_m"):
        raise UsageError(f"{where}: expected road alone, or polygon_m or box_m")
    z_m = None if data.get("z_m") is None else _interval(data["z_m"], f"{where}: z_m")
    road = load_road_area(data["road"], f"{where}: road", folder)
    frame_id = data.get("frame_id", MAP_FRAME)
    return Region(str(data.get("name", default_name)), str(frame_id), z_m=z_m, road=road)


def _outlines(value: Any, where: str) -> tuple[Polygon, ...]:
    if not isinstance(value, (list, tuple)) or not value:
        raise UsageError(f"{where}: polygon_m: got {value!r}, expected a list of [x, y] or a list of such lists")
    depth_of_one = all(isinstance(p, (list, tuple)) and p and not isinstance(p[0], (list, tuple)) for p in value)
    rows = [value] if depth_of_one else value
    return tuple(_polygon(row, f"{where}: polygon_m[{i}]") for i, row in enumerate(rows))


def _polygon(rows: Any, where: str) -> Polygon:
    try:
        xy = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where}: got {rows!r}, expected corners [x, y] in metres") from error
    if xy.ndim != 2 or xy.shape[1] != 2 or len(xy) < 3:
        raise UsageError(f"{where}: got an array of shape {xy.shape}, expected at least three corners [x, y]")
    if not np.isfinite(xy).all():
        raise UsageError(f"{where}: got a corner that is not a finite number")
    polygon = shapely.Polygon(xy)
    if not polygon.is_valid or polygon.area == 0.0:
        reason = "no area" if polygon.is_valid else shapely.is_valid_reason(polygon)
        raise UsageError(f"{where}: got an outline that is no simple polygon ({reason}); list its corners in order")
    return tuple((float(x), float(y)) for x, y in xy)


def _box(value: Any, where: str) -> Polygon:
    if not isinstance(value, Mapping) or set(value) != {"x", "y"}:
        raise UsageError(f"{where}: box_m: got {value!r}, expected {{x: [low, high], y: [low, high]}}")
    (x0, x1), (y0, y1) = (_interval(value[axis], f"{where}: box_m.{axis}") for axis in "xy")
    return _polygon([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], f"{where}: box_m")


def _interval(value: Any, where: str) -> tuple[float, float]:
    try:
        low, high = (float(v) for v in value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where}: got {value!r}, expected [low, high]") from error
    if not low < high:
        raise UsageError(f"{where}: got {value!r}, expected low below high")
    return low, high
