# SPDX-License-Identifier: Apache-2.0
"""The arrays that a violated pair's bird's-eye view is drawn from (see ``report/birdseye.py``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.base.errors import UsageError
from mt_nodes.data.association import moved
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.outputs import Detections, Output
from mt_nodes.data.outputs import Path as OutputPath
from mt_nodes.data.perception import FreeSpace
from mt_nodes.data.transforms import Matrix, UnknownTransform, move
from mt_nodes.engine.pair_view import PairView
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.free_space_checks import FreeSpaceCheck
from mt_nodes.relations.checks.obstacles import ObstacleComparison
from mt_nodes.relations.checks.path_checks import expected_places, resampled

#: Cells count as occupied from here on, as for map_server of nav2.
_OCCUPIED_PERCENT = 65
#: Half the sides of a unit cell, corner by corner.
_CORNERS = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
_GAP = np.full((1, 2), np.nan)

Arrays = dict[str, npt.NDArray[Any]]
#: Wider pictures are made smaller.
_WIDEST_PX = 1280.0
#: Numbers of a cloud have 32 bits: at 100 m they are right to 8 µm.
_SAME_M = 1e-3
#: How far along a path is drawn, and from how many places.
_PATH_SHOWN_M, _PATH_STEP_M = 60.0, 0.25


def write_view(
    path: Path,
    source: Bundle,
    followup: Bundle,
    *,
    outputs: tuple[Output, Output],
    effects: Effects,
    check: Check | None,
    detail: dict[str, Any],
) -> None:
    """Write the arrays, everything in the frame of the check's region; without a region, in the source cloud's."""
    frame = next((cloud.frame_id for cloud in (*source.clouds, *source.radars)), "")
    arrays: Arrays = {}
    if isinstance(check, (ObstacleComparison, FreeSpaceCheck)):
        region = check.region.resolve(source)
        frame = region.frame_id
        arrays["region"] = _outline(region.geometry)
        if isinstance(check, ObstacleComparison):
            arrays["keep"] = _outline(region.buffered(-check.keep_inset_m))
    for name, bundle in (("source", source), ("followup", followup)):
        arrays[f"{name}_xyz"] = _points([(c, c.xyz) for c in (*bundle.clouds, *bundle.radars)], bundle, frame)
    sent = {cloud.topic: cloud for cloud in (*followup.clouds, *followup.radars)}
    added = [
        (c, _points_in_cloud(effects.added_points[c.topic], sent.get(c.topic)))
        for c in (*source.clouds, *source.radars)
        if c.topic in effects.added_points
    ]
    arrays["added_xyz"] = _points(added, source, frame)
    for name, output in zip(("source", "followup"), outputs, strict=True):
        shown = output.detections if output.detections is not None else output.tracks
        arrays |= {**_boxes(name, shown, source, frame), **_on_ground(name, output, source, frame)}
    for name in ("lost_at", "gained_at"):
        arrays[name] = np.array([place[:2] for place in detail.get(name, [])], dtype=np.float64).reshape(-1, 2)
    arrays |= _images(source, followup, outputs, effects, detail)
    window = PairView.of(arrays).window
    for name in ("source_xyz", "followup_xyz"):  # added points stay: how many there are is told
        arrays[name] = _within(arrays[name], window)
    np.savez(path, **arrays)  # type: ignore[arg-type]


def _points_in_cloud(added: npt.NDArray[Any], cloud: Cloud | None) -> npt.NDArray[Any]:
    """Return those of added points (N, 3) that a cloud has: of a follow-up that was made small only some are left."""
    if cloud is None or not len(added):
        return added[:0]
    from scipy.spatial import KDTree

    known = cloud.xyz[np.isfinite(cloud.xyz).all(axis=1)]
    if not len(known):
        return added[:0]
    near, _ = KDTree(known).query(added, distance_upper_bound=_SAME_M)
    return np.asarray(added[np.isfinite(near)])


def _images(
    source: Bundle, followup: Bundle, outputs: tuple[Output, Output], effects: Effects, detail: dict[str, Any]
) -> Arrays:
    """Return what a stack with cameras was shown, of its first image, and the boxes and paths it told there."""
    from mt_nodes.data.images.codecs import decode

    arrays: Arrays = {}
    try:
        shown = [decode(bundle.images[0]).rgb8() for bundle in (source, followup) if bundle.images]
    except UsageError:
        return {}
    if len(shown) != 2:
        return {}
    scale = min(1.0, _WIDEST_PX / max(picture.shape[1] for picture in shown))
    for name, picture, output in zip(("source", "followup"), shown, outputs, strict=True):
        arrays[f"{name}_image"] = _jpeg(picture, scale)
        parts = [part for part in (output.boxes, output.signals) if part is not None]
        arrays[f"{name}_px"] = np.concatenate([np.empty((0, 4)), *(part.box_px * scale for part in parts)])
        arrays[f"{name}_px_labels"] = np.concatenate([np.empty(0, np.str_), *(part.label for part in parts)])
    for name in ("lost_px", "gained_px"):
        arrays[name] = np.array([row[:4] for row in detail.get(name, [])], dtype=np.float64).reshape(-1, 4) * scale
    added = [box.box_px for box in effects.image_boxes if box.topic == followup.images[0].topic]
    arrays["added_px"] = np.array(added, dtype=np.float64).reshape(-1, 4) * scale
    sizes = [(picture.shape[0], picture.shape[1]) for picture in shown]
    for name, output, bundle, size in zip(("source", "followup"), outputs, (source, followup), sizes, strict=True):
        lines = [_on_the_road(frame, places, bundle, size) * scale for frame, places in lines_of(output)]
        arrays[f"{name}_lines_px"] = joined(line for line in lines if len(line))
    arrays["expected_lines_px"] = _expected_path(outputs[0].path, effects, followup, sizes[1]) * scale
    return arrays


def _expected_path(path: OutputPath | None, effects: Effects, followup: Bundle, size: tuple[int, int]) -> Floats:
    """Return where in the follow-up's image the source's path is expected, as pixels (N, 2)."""
    if path is None:
        return np.empty((0, 2))
    try:
        places = expected_places(path, effects, followup)
    except UnknownTransform:
        return np.empty((0, 2))
    return _on_the_road(path.frame_id, places, followup, size)


def _on_the_road(frame: str, places: npt.NDArray[Any], bundle: Bundle, size: tuple[int, int]) -> Floats:
    """Return where in a bundle's first image (height, width) places (K, 2) of a line lie, as pixels (N, 2).

    They are taken for places on the ground of the line's own frame. None are returned where the camera is not known,
    and not-a-number where it does not look.
    """
    from mt_nodes.world.camera.model import CameraModel, rectified

    image = bundle.images[0]
    info = next((info for info in bundle.camera_infos if info.frame_id == image.frame_id), None)
    if len(places) < 2 or not np.isfinite(places).all() or info is None:
        return np.empty((0, 2))
    try:
        to_camera = bundle.transforms.lookup(image.frame_id, frame)
        camera = CameraModel.of(info, size, rectified(image.topic))
    except (UnknownTransform, UsageError):
        return np.empty((0, 2))
    close = resampled(places, _PATH_SHOWN_M, _PATH_STEP_M)
    return np.asarray(camera.project(move(to_camera, np.column_stack([close, np.zeros(len(close))]))))


def _jpeg(rgb: npt.NDArray[np.uint8], scale: float) -> npt.NDArray[np.uint8]:
    import cv2

    bgr = cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR)
    small = bgr if scale == 1.0 else cv2.resize(bgr, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, 85])[1]).reshape(-1)


def _within(xyz: npt.NDArray[Any], window: tuple[float, float, float, float]) -> npt.NDArray[Any]:
    """Keep what the picture shows (x min, x max, y min, y max)."""
    x0, x1, y0, y1 = window
    return xyz[(xyz[:, 0] >= x0) & (xyz[:, 0] <= x1) & (xyz[:, 1] >= y0) & (xyz[:, 1] <= y1)]


def _points(parts: list[tuple[Cloud, npt.NDArray[Any]]], bundle: Bundle, frame: str) -> Singles:
    moved_parts = [
        move(bundle.transforms.lookup(frame, cloud.frame_id), part[np.isfinite(part).all(axis=1)])
        for cloud, part in parts
    ]
    return np.concatenate([np.empty((0, 3)), *moved_parts]).astype(np.float32)


def _boxes(name: str, detections: Detections | None, bundle: Bundle, frame: str) -> Arrays:
    way = None if detections is None else _to_picture(detections.frame_id, bundle, frame)
    if detections is None or way is None:
        return {f"{name}_boxes": np.empty((0, 7)), f"{name}_labels": np.empty(0, dtype=np.str_)}
    if detections.frame_id != frame:
        detections = moved(detections, way, frame)
    boxes = np.column_stack([detections.center_m, detections.size_m, detections.yaw_rad])
    return {f"{name}_boxes": boxes, f"{name}_labels": detections.label}


def _on_ground(name: str, output: Output, bundle: Bundle, frame: str) -> Arrays:
    """Return the lines of an output, and the outlines of what it holds for occupied, in the picture's frame."""

    def here(lines: Iterable[tuple[str, npt.NDArray[Any]]]) -> Floats:
        sound = [(frame_id, line) for frame_id, line in lines if len(line) > 1 and np.isfinite(line).all()]
        ways = [(_to_picture(frame_id, bundle, frame), line) for frame_id, line in sound]
        return joined(move(way, np.pad(line, ((0, 0), (0, 1))))[:, :2] for way, line in ways if way is not None)

    grid = output.free_space
    rings = () if grid is None or grid.broken else ((grid.frame_id, ring) for ring in occupied_outlines(grid))
    return {f"{name}_lines": here(lines_of(output)), f"{name}_occupied": here(rings)}


def _to_picture(frame_id: str, bundle: Bundle, frame: str) -> Matrix | None:
    """Return the way (4, 4) into the frame of the picture; None: there is no picture of the ground, or no way."""
    try:
        return bundle.transforms.lookup(frame, frame_id) if frame else None
    except UnknownTransform:
        return None


def _outline(geometry: Any) -> Floats:
    """Corners (P, 2) of a polygon; of several, those of the largest."""
    parts = [p for p in shapely.get_parts(geometry) if isinstance(p, shapely.Polygon)]
    if not parts:
        return np.empty((0, 2))
    return np.asarray(max(parts, key=lambda p: p.area).exterior.coords)[:, :2]


def lines_of(output: Output) -> Iterator[tuple[str, Floats]]:
    """Yield the frame and the places (N, 2) of each lane, of the path, and of each obstacle's likeliest path."""
    if output.lanes is not None:
        for strip in output.lanes.strips:
            yield output.lanes.frame_id, strip.middle_m
    if output.path is not None:
        yield output.path.frame_id, output.path.pose[:, :2]
    if output.predictions is not None:
        for paths in output.predictions.paths:
            if paths:
                yield output.predictions.frame_id, max(paths, key=lambda path: path.probability).place_m


def occupied_outlines(grid: FreeSpace) -> Iterator[Floats]:
    """Yield the outlines (N, 2), in the grid's frame, of the connected areas that are occupied, and of their holes."""
    centers = grid.centers_m(np.asarray(grid.cells >= _OCCUPIED_PERCENT))
    yaw = grid.origin[2]
    turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    # A little larger than a cell: neighbours overlap, and so become one area whatever is rounded.
    corners = centers[:, None] + 1.001 * grid.resolution_m * _CORNERS @ turn.T
    area = shapely.union_all(shapely.polygons(corners)) if len(corners) else shapely.Polygon()
    for part in shapely.get_parts(area):
        for ring in (part.exterior, *part.interiors):
            yield np.asarray(ring.coords)


def joined(lines: Iterable[Floats]) -> Floats:
    """Return lines (N, 2) as one array, not-a-number between two of them."""
    parts = [part for line in lines for part in (line, _GAP)]
    return np.concatenate([np.empty((0, 2)), *parts[:-1]])
