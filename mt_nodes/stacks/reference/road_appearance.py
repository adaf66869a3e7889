# SPDX-License-Identifier: Apache-2.0
"""Obstacles on the road in a picture: what does not look like the road before the vehicle.

After I. Ulrich and I. Nourbakhsh, Appearance-based obstacle detection with monocular color vision (AAAI 2000): the road
is flat, a part of it before the vehicle is free, and the lowest pixel of a column that looks otherwise is where
something stands on it. In place of their histograms of hue and brightness a pixel looks like the road if its colour,
brightness apart, is that of the part before the vehicle, and it is not much darker: so paint and shadows are road.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask, Pixels
from mt_nodes.data.outputs import ImageBoxes
from mt_nodes.world.camera.model import CameraModel

#: The part of the road that is free: metres before the camera, and to either side.
_FREE_M = ((4.0, 9.0), 1.0)
#: Difference of a channel, in shares of the brightness, from which a colour is another one.
_CHROMA = 0.16
#: What is darker than this share of the road's darkest part is no shadow. That part is the darkest twentieth of the
#: road between two distances, so far to either side, in metres, but no darker than this share of the free part.
_DARK, _ROAD_M, _DARKEST, _SHADOW = 0.75, ((4.0, 30.0), 3.0), 5.0, 0.55
#: Nearest and farthest that is looked for, in metres.
NEAR_M, FAR_M = 3.0, 50.0
#: Columns whose feet are so near in depth, in shares of the distance, are of one body; and so are those beside whose
#: lowest pixel hangs at most so high above the body's feet, in metres: bellies.
_SAME_DEPTH, _BELLY_M = 0.06, 0.75
#: Least width and height of a body, in metres.
_LEAST_M = (0.07, 0.3)


@dataclass(frozen=True)
class _GroundColumns:
    """Ground under each column: the row of the lowest pixel that is no road, and the first row above it that is."""

    foot: npt.NDArray[np.intp]
    top: npt.NDArray[np.intp]
    found: Mask


def standing_on_road(rgb: Pixels, camera: CameraModel, height_m: float) -> ImageBoxes:
    """Return boxes of what stands on the road, the nearest first; a box ends at the horizon where the body does not.

    ``rgb``: (H, W, 3). ``camera``: level, without distortion. ``height_m``: of the camera above the road.
    """
    horizon, scale = float(camera.k[1, 2]), float(camera.k[1, 1]) * height_m
    rows = (int(np.ceil(horizon)), min(rgb.shape[0], int(horizon + scale / NEAR_M)))
    column = _columns(_unlike_road(rgb, rows, camera, height_m), int(scale / FAR_M))
    depth_m = scale / np.maximum(column.foot + rows[0] - horizon, 1e-6)
    bodies = _bodies(column, depth_m, height_m)
    edges = [(a, column.top[a:b].min(), b, column.foot[a:b].max() + 1) for a, b in bodies]
    box = np.array(edges, dtype=np.float64).reshape(-1, 4) + np.array([0.0, rows[0], 0.0, rows[0]]) - 0.5
    per_m = (box[:, 3] - horizon) / height_m
    box = box[((box[:, 2:] - box[:, :2]) >= per_m[:, None] * _LEAST_M).all(axis=1)]
    box = box[np.argsort(-box[:, 3], kind="stable")]
    return ImageBoxes.make("", None, box, ["unknown"] * len(box), np.ones(len(box)))


def _unlike_road(rgb: Pixels, rows: tuple[int, int], camera: CameraModel, height_m: float) -> Mask:
    """Return (rows, W) which pixels do not look like the road before the vehicle."""
    part = rgb[rows[0] : rows[1]].astype(np.float32)
    road = np.median(rgb[_part(camera, height_m, rgb.shape[:2], *_FREE_M)].reshape(-1, 3), axis=0)
    usual = max(float(road.mean()), 1.0)
    seen = rgb[_part(camera, height_m, rgb.shape[:2], *_ROAD_M)].mean(axis=2)
    bright = part.mean(axis=2)
    unlike = bright < _DARK * max(float(np.percentile(seen, _DARKEST)), _SHADOW * usual)
    part /= np.maximum(bright, 1.0)[..., None]
    unlike |= (np.abs(part - (road / usual).astype(np.float32)) > _CHROMA).any(axis=2)
    opened = cv2.morphologyEx(unlike.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 1), np.uint8))
    return np.asarray(opened, dtype=bool)


@lru_cache(maxsize=8)
def _part(
    camera: CameraModel, height_m: float, size: tuple[int, int], ahead_m: tuple[float, float], aside_m: float
) -> tuple[slice, slice]:
    """Return the rows and columns of a part of the road: between two distances, as wide as it is at the farther one."""
    (fx, fy), (cx, cy) = camera.k[[0, 1], [0, 1]], camera.k[:2, 2]
    first, last = (int(cy + fy * height_m / distance) for distance in ahead_m[::-1])
    first = min(max(first, 0), size[0] - 2)
    return slice(first, max(last, first + 2)), slice(
        max(0, int(cx - fx * aside_m / ahead_m[1])), int(cx + fx * aside_m / ahead_m[1]) + 1
    )


def _columns(unlike: Mask, least_row: int) -> _GroundColumns:
    """Return where in each column the lowest run of such pixels begins and ends; columns without one below a row."""
    upward = unlike[::-1]
    found = upward.any(axis=0)
    begin = upward.argmax(axis=0)
    after = np.arange(len(upward))[:, None] > begin
    road_again = after & ~upward
    end = np.where(road_again.any(axis=0), road_again.argmax(axis=0), len(upward))
    foot = len(upward) - 1 - begin
    return _GroundColumns(foot, len(upward) - end, found & (foot >= least_row))


def _bodies(column: _GroundColumns, depth_m: Floats, height_m: float) -> list[tuple[int, int]]:
    """Return the first and last but one column of each body, nearest first."""
    free, bodies = column.found.copy(), list[tuple[int, int]]()
    order = np.argsort(depth_m, kind="stable")
    for seed in order[column.found[order]].tolist():
        if not free[seed]:
            continue
        depth = depth_m[seed]
        # How high above the body's ground the lowest pixel of a column would hang.
        hangs_m = height_m * (1.0 - depth / depth_m)
        mine = free & ((np.abs(depth_m - depth) <= _SAME_DEPTH * depth) | ((hangs_m <= _BELLY_M) & (depth_m > depth)))
        first, end = seed, seed + 1
        while first > 0 and mine[first - 1]:
            first -= 1
        while end < len(mine) and mine[end]:
            end += 1
        free[first:end] = False
        bodies.append((first, end))
    return bodies
