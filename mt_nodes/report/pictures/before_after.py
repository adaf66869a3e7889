# SPDX-License-Identifier: Apache-2.0
"""Contents of a picture of a mutation: points before and after with their colours, volumes, and the window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.data.effects import Volume
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.regions import Region, RegionUnavailable
from mt_nodes.data.transforms import EGO_FRAME, Matrix, UnknownTransform, move
from mt_nodes.report.pictures.cloud_diff import CloudChange
from mt_nodes.report.pictures.frame_inspection import MutatedFrame
from mt_nodes.base.arrays import Floats

#: Half the window along x: by default, at most, and at least for a local change.
RANGE_M, FARTHEST_M, NEAREST_M = 40.0, 120.0, 6.0
#: A change within so many metres is local: the picture shows its surroundings.
_LOCAL_M = 24.0
#: The picture cuts off volumes that are taller.
_TALLEST_M = 8.0
#: Height over width of the window from above.
_SHAPE = 0.6
#: Share of the returns that must move, or change in intensity, for the colours to show that.
_SOME = 0.02
#: Returns that move farther than this (median) are coloured by their former bearing.
_FAR_M = 2.0
#: Changes of intensity below this share of the cloud's span are shown as differences.
_SLIGHT = 0.1
#: A change of more than this share of the returns near the ego vehicle gets a smaller window.
_DENSE, _DENSE_M = 0.08, 12.0
#: Arrows along x; fewer for long ones.
_ARROWS, _LONG_ARROWS = 24, 9


@dataclass(frozen=True, eq=False)
class PointColours:
    """A value for each point before (N,) and after (M,), None: grey by height only; and what the values mean."""

    label: str
    before: Floats | None
    after: Floats | None
    of_moves: bool = False


@dataclass(frozen=True, eq=False)
class Outline:
    """A volume in the picture's frame: corners from above (P, 2), x and z from the side (lowest, highest)."""

    what: str
    label: str
    above: Floats
    side_x: tuple[float, float]
    side_z: tuple[float, float]


@dataclass(frozen=True, eq=False)
class BeforeAfter:
    """Everything in one frame: x forward, y left, z up, metres.

    Attributes:
        frame_id: that frame, the ego's where the transform is known.
        before, after, removed, added: points (N, 3); those removed or added are among the former.
        colours: of ``before`` and ``after``.
        arrows: (K, 2, 3) start and end of moved returns, drawn ``magnified`` times as long.
        outlines: volumes in the effects of the mutation.
        regions: polygons (P, 2) of its parameters.
        window: x min, x max, y min, y max, z min, z max.
    """

    frame_id: str
    before: Floats
    after: Floats
    removed: Floats
    added: Floats
    colours: PointColours
    arrows: Floats
    magnified: float
    outlines: tuple[Outline, ...]
    regions: tuple[Floats, ...]
    window: tuple[float, float, float, float, float, float]

    @property
    def side(self) -> tuple[float, float]:
        """x min, x max of the view from the side: a part of a wide window, so that heights are visible."""
        x0, x1 = self.window[:2]
        return (x0, x1) if x1 - x0 < 2.0 * RANGE_M else (x0 + 0.375 * (x1 - x0), x0 + 0.875 * (x1 - x0))


def before_after(frame: MutatedFrame, change: CloudChange, range_m: float | None = None) -> BeforeAfter:
    """Prepare the picture of one frame.

    ``range_m``: half the window along x, around the ego vehicle; by default whatever shows the change.
    """
    frame_id, matrix = _frame(frame.source, change.old)
    before, after, removed, added = (
        _placed(matrix, cloud, rows)
        for cloud, rows in (
            (change.old, slice(None)),
            (change.new, slice(None)),
            (change.old, change.removed),
            (change.new, change.added),
        )
    )
    outlines = tuple(_outlines(frame, frame_id))
    moved, nearer = change.moved_m > 0, _DENSE_M if change.reordered else None
    starts, ends = (
        _placed(matrix, c, rows[moved]) for c, rows in ((change.old, change.old_rows), (change.new, change.new_rows))
    )
    all_move, changed = len(starts) > _SOME * len(before), np.concatenate([removed, added])
    window = _window(changed, before, outlines, all_move, range_m or nearer)
    colours = _colours(change, before)
    arrows, magnified = _arrows(starts, ends, window) if colours.of_moves else (np.empty((0, 2, 3)), 1.0)
    return BeforeAfter(
        frame_id,
        before,
        after,
        removed,
        added,
        colours,
        arrows,
        magnified,
        outlines,
        tuple(_regions(frame, frame_id)),
        window,
    )


def _frame(bundle: Bundle, cloud: Cloud) -> tuple[str, Matrix]:
    try:
        return EGO_FRAME, bundle.transforms.lookup(EGO_FRAME, cloud.frame_id)
    except UnknownTransform:
        return cloud.frame_id, np.eye(4)


def _placed(matrix: Matrix, cloud: Cloud, rows: Any) -> Floats:
    xyz = np.column_stack([cloud.points[name][rows] for name in "xyz"]).astype(np.float64).reshape(-1, 3)
    return move(matrix, xyz)


def _colours(change: CloudChange, before: Floats) -> PointColours:
    paired = max(len(change.old_rows), 1)
    moved = change.moved_m[change.moved_m > 0]
    if change.reordered:
        before, after = (np.arange(len(cloud)) / max(len(cloud) - 1, 1) for cloud in (change.old, change.new))
        return PointColours("place in the message, first to last", before, after)
    if len(moved) > _SOME * paired and np.median(moved) > _FAR_M:
        bearing_deg = np.degrees(np.arctan2(before[:, 1], before[:, 0]))
        return PointColours(
            "bearing that the return had before (°), left positive",
            bearing_deg,
            _at_new(change, bearing_deg[change.old_rows]),
            of_moves=True,
        )
    if np.count_nonzero(change.brightened) > _SOME * paired and change.old.intensity_field is not None:
        return _intensities(change, change.old.intensity_field)
    if len(moved) > _SOME * paired:
        return PointColours("moved by (m)", None, _at_new(change, change.moved_m), of_moves=True)
    return PointColours("", None, None)


def _intensities(change: CloudChange, name: str) -> PointColours:
    before, after = (c.points[name].astype(np.float64) for c in (change.old, change.new))
    low, high = np.percentile(before[change.old_rows], (1, 99))
    if np.percentile(np.abs(change.brightened), 90) < _SLIGHT * (high - low):
        return PointColours(f"{name} changed by", None, _at_new(change, change.brightened))
    return PointColours(name, before, after)


def _at_new(change: CloudChange, values: Floats) -> Floats:
    """Return for each point after (M,) the value (P,) of its return, NaN for what was added."""
    after = np.full(len(change.new), np.nan)
    after[change.new_rows] = values
    return after


def _window(
    changed: Floats, before: Floats, outlines: tuple[Outline, ...], moved: bool, range_m: float | None
) -> tuple[float, float, float, float, float, float]:
    """Return the window: around a local change, else around the ego vehicle, out to half of the change."""
    middle, half = (0.0, 0.0), range_m or RANGE_M
    corners = [o.above for o in outlines if o.what != "occluded"]
    spots = np.concatenate(corners) if corners else changed[:, :2]
    if range_m is None and len(spots) and not moved:
        low, high = np.percentile(spots, (2, 98), axis=0)
        if (high - low).max() < _LOCAL_M:
            middle = tuple((low + high) / 2.0)
            half = max(NEAREST_M, 0.75 * float((high - low).max()) + 2.0)
        else:
            far_m, dense = float(np.median(np.linalg.norm(spots, axis=1))), len(spots) > _DENSE * len(before)
            half = _DENSE_M if dense and far_m < _DENSE_M else float(np.clip(1.2 * far_m, RANGE_M, FARTHEST_M))
    x0, x1, y0, y1 = middle[0] - half, middle[0] + half, middle[1] - _SHAPE * half, middle[1] + _SHAPE * half
    return x0, x1, y0, y1, *_heights(before, (x0, x1, y0, y1), outlines)


def _heights(xyz: Floats, window: tuple[float, ...], outlines: tuple[Outline, ...]) -> tuple[float, float]:
    inside = (xyz[:, 0] >= window[0]) & (xyz[:, 0] <= window[1]) & (xyz[:, 1] >= window[2]) & (xyz[:, 1] <= window[3])
    z = xyz[inside, 2]
    low, high = np.percentile(z, (1, 99)) if len(z) else (0.0, 3.0)
    tops = [min(o.side_z[1], low + _TALLEST_M) for o in outlines if o.what != "occluded"]
    return float(low) - 0.5, float(max(high, low + 2.5, *tops, -np.inf)) + 0.5


def _arrows(starts: Floats, ends: Floats, window: tuple[float, ...]) -> tuple[Floats, float]:
    """Choose one move in each part of the picture, and a round factor that makes them visible."""
    x0, x1, y0, y1 = window[:4]
    inside = (starts[:, 0] >= x0) & (starts[:, 0] <= x1) & (starts[:, 1] >= y0) & (starts[:, 1] <= y1)
    starts, ends = starts[inside], ends[inside]
    if not len(starts):
        return np.empty((0, 2, 3)), 1.0
    length = float(np.percentile(np.linalg.norm(ends - starts, axis=1), 90)) / (x1 - x0)
    across = _LONG_ARROWS if length > 0.1 else _ARROWS
    cells = np.floor((starts[:, :2] - (x0, y0)) * across / (x1 - x0)).astype(np.int64)
    _, chosen = np.unique(cells[:, 0] * 1_000_000 + cells[:, 1], return_index=True)
    magnified = _round(0.04 / max(length, 1e-9))
    return np.stack([starts[chosen], ends[chosen]], axis=1), magnified if magnified > 2.0 else 1.0


def _round(value: float) -> float:
    """Return the largest of 1, 2, 5, 10, 20, … that is not larger."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(max(step for step in (1.0, 2.0, 5.0) if step * power <= value * 1.000001) * power)


def _outlines(frame: MutatedFrame, frame_id: str) -> Iterator[Outline]:
    effects = frame.derived.effects
    for what in ("added", "removed", "occluded"):
        for volume in getattr(effects, what):
            yield _outline(what, volume, frame.source.transforms.lookup(frame_id, volume.frame_id))


def _outline(what: str, volume: Volume, matrix: Matrix) -> Outline:
    signs = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]])
    local = signs * np.array(volume.size_m[:2]) / 2.0
    cos, sin = np.cos(volume.yaw_rad), np.sin(volume.yaw_rad)
    plan = local @ np.array([[cos, sin], [-sin, cos]]) + volume.center_m[:2]
    if volume.outline_m:
        plan = np.array(volume.outline_m)
    levels = volume.center_m[2] + np.array([-0.5, 0.5]) * volume.size_m[2]
    corners = move(matrix, np.array([[x, y, z] for z in levels for x, y in plan]))
    low, high = corners.min(axis=0), corners.max(axis=0)
    side_x, side_z = (float(low[0]), float(high[0])), (float(low[2]), float(high[2]))
    return Outline(what, volume.label, corners[: len(plan), :2], side_x, side_z)


def _regions(frame: MutatedFrame, frame_id: str) -> Iterator[Floats]:
    for value in (v for mutation in frame.mutations for v in vars(mutation).values() if isinstance(v, Region)):
        try:
            region = value.resolve(frame.source)
        except RegionUnavailable:
            continue
        matrix = frame.source.transforms.lookup(frame_id, region.frame_id)
        for polygon in region.polygon_m:
            corners = np.column_stack([np.array(polygon), np.zeros(len(polygon))])
            yield move(matrix, corners)[:, :2]
