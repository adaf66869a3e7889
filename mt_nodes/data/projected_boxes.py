# SPDX-License-Identifier: Apache-2.0
"""What a camera sees of boxes in space: the 2D boxes around them."""

from __future__ import annotations

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.data.outputs import Detections
from mt_nodes.data.transforms import Matrix, move

#: What is nearer to the plane of the lens has no place in a picture.
_NEAR_M = 0.1
_CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
_EDGES = np.array([[i, i | bit] for i in range(8) for bit in (1, 2, 4) if not i & bit])


def projected_boxes(objects: Detections, to_camera: Matrix, k: Floats, size_px: tuple[int, int]) -> Floats:
    """Return the box (M, 4) around what a pinhole camera sees of each object, NaN where that is nothing.

    Edges x0, y0, x1, y1 in pixels, pixel centres at whole numbers, cut at the edges of the picture; what lies behind
    the camera is cut off.

    Args:
        objects: M boxes. to_camera: 4×4 from their frame to the camera's: x right, y down, z ahead.
        k: (3, 3) intrinsics. size_px: width and height.
    """
    c, s = np.cos(objects.yaw_rad)[:, None], np.sin(objects.yaw_rad)[:, None]
    local = objects.size_m[:, None, :] * _CORNERS
    turned = np.stack([c * local[..., 0] - s * local[..., 1], s * local[..., 0] + c * local[..., 1], local[..., 2]], -1)
    corners = move(to_camera, (turned + objects.center_m[:, None, :]).reshape(-1, 3)).reshape(-1, 8, 3)
    begin, end = corners[:, _EDGES[:, 0]], corners[:, _EDGES[:, 1]]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip((_NEAR_M - begin[..., 2:]) / (end[..., 2:] - begin[..., 2:]), 0.0, 1.0)
    places = np.concatenate([corners, begin + np.nan_to_num(share) * (end - begin)], axis=1)
    before = places[..., 2] >= _NEAR_M - 1e-9
    pixels = np.einsum("ij,mnj->mni", k, places)[..., :2] / np.maximum(places[..., 2:], 1e-9)
    low = np.where(before[..., None], pixels, np.inf).min(axis=1, initial=np.inf)
    high = np.where(before[..., None], pixels, -np.inf).max(axis=1, initial=-np.inf)
    last = np.array(size_px) - 0.5
    boxes = np.column_stack([np.clip(low, -0.5, last), np.clip(high, -0.5, last)]).reshape(-1, 4)
    shown = np.asarray(((high > -0.5) & (low < last)).all(axis=1) & before.any(axis=1))
    boxes[~shown] = np.nan
    return boxes
