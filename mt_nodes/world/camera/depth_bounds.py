# SPDX-License-Identifier: Apache-2.0
"""Between which bounds the range of each cell of a picture lies."""

from __future__ import annotations

import cv2
import numpy as np

from mt_nodes.base.arrays import Mask, Singles

#: Farther from all returns than this many cells, any range around is possible.
_APART, _AROUND = 4, 9
#: A LiDAR sees past an edge that hides the same thing from the camera, by so much at most (assumed: half the distance
#: between the two), and in cells.
_PAST_M, _REACHES = 0.15, (1, 2, 4, 8)
#: A thing farther by this factor is another one.
_BEHIND = np.float32(1.3)
#: What a surface goes on to above its topmost return is so much nearer or farther (assumed; a lorry's load).
_NEARER, _FARTHER = np.float32(0.75), np.float32(1.35)
#: Where the picture shows neither sky nor a known surface is something beyond this share of the farthest returns.
_BACKGROUND = np.float32(0.4)


def bounds_of(
    range_m: Singles, extremes_m: tuple[Singles, Singles], measured: Mask, above: Mask, far_m: Singles, cell_rad: float
) -> tuple[Singles, Singles]:
    """Return the least and the largest range (h, w) that each cell may have.

    Args:
        range_m: (h, w) the likeliest, infinite for the sky. above: (h, w) cells above all returns of their column.
        extremes_m: (h, w) the same to the nearest and to the farthest return of a cell.
        measured: (h, w) cells with a return. far_m: (h, w) range of the background.
    """
    around = np.ones((3, 3), np.uint8)
    least, most = (
        cv2.erode(np.minimum(range_m, extremes_m[0]), around),
        cv2.dilate(np.maximum(range_m, extremes_m[1]), around),
    )
    # Rows that hold cells below those above all returns, with as many before as count; and rows that hold the latter.
    low = np.s_[max(0, int((~above).any(axis=1).argmax()) - _APART) :]
    high = np.s_[: int(above.any(axis=1).sum())]
    apart = ~above[low] & (cv2.distanceTransform((~measured[low]).view(np.uint8), cv2.DIST_L2, 3) > _APART)
    wide = np.ones((_AROUND, _AROUND), np.uint8)
    np.copyto(least[low], cv2.erode(least, wide)[low], where=apart)
    np.copyto(most[low], cv2.dilate(most, wide)[low], where=apart)
    np.minimum(least, _seen_past(range_m, cell_rad), out=least)
    above, range_m, far_m = above[high], range_m[high], far_m[high]
    is_far = range_m >= far_m
    nearest = np.where(is_far, np.minimum(_BACKGROUND * far_m, range_m), _NEARER * range_m)
    np.minimum(least[high], nearest, out=least[high], where=above & np.isfinite(range_m))
    farthest = np.where(is_far, np.float32(np.inf), _FARTHER * range_m)
    np.maximum(most[high], farthest, out=most[high], where=above)
    return np.asarray(least, np.float32), np.asarray(most, np.float32)


def within(bounds: tuple[Singles, Singles], cells: Mask, range_m: Singles, error: float) -> tuple[Singles, Singles]:
    """Return bounds (h, w) that are, in some cells, a range and a share by which that may be off."""
    least, most = (range_m * np.float32(1.0 - min(error, 0.99)), range_m * np.float32(1.0 + error))
    return np.where(cells, least, bounds[0]), np.where(cells, most, bounds[1])


def _seen_past(range_m: Singles, cell_rad: float) -> Singles:
    """Return the range (h, w) of what may hide a cell from the camera though the LiDAR sees past it."""
    hides, behind_m, nearest, reached = range_m.copy(), range_m / _BEHIND, range_m, 0
    for reach in _REACHES:
        nearest = cv2.erode(nearest, np.ones((2 * (reach - reached) + 1,) * 2, np.uint8))
        hidden = nearest < np.minimum(behind_m, np.float32(_PAST_M / (reach * cell_rad)))
        np.copyto(hides, np.minimum(hides, nearest), where=hidden)
        reached = reach
    return hides
