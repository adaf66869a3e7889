# SPDX-License-Identifier: Apache-2.0
"""Finds the nearest thing that stands on the road in a cloud: columns above the ground, joined where they touch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import shapely
from scipy import ndimage

from mt_nodes.errors import NotApplicable

Floats = npt.NDArray[np.float64]

_CELL_M, _GROUND_CELLS = 0.25, 13
_ABOVE_M, _BELOW_M = 0.3, 4.0
#: The outline lies this far outside of the returns, as a detector's box may.
_AROUND_M = 0.35


def nearest_object(
    xyz: Floats, ahead_m: tuple[float, float], aside_m: float, least_points: int, largest_m: float
) -> Floats:
    """Return the outline (k, 2) of the nearest object ahead: the smallest rectangle around it, and a little more.

    Ground is the lowest return within 1.6 m; what is 0.3 m to 4 m higher stands on it. Columns of 0.25 m that touch,
    or have up to two free columns between them, are one object. Longer ones than ``largest_m`` are walls, not objects.

    Args:
        xyz: (N, 3) points in a frame that stands on the road: x ahead, y left, z up.
        ahead_m: nearest and farthest x. aside_m: farthest from the path.

    Raises:
        NotApplicable: there is none; with the numbers.
    """
    x, y, z = xyz.T
    inside = np.isfinite(z) & (x >= ahead_m[0]) & (x <= ahead_m[1]) & (np.abs(y) <= aside_m)
    x, y, z = x[inside], y[inside], z[inside]
    shape = int(np.ptp(ahead_m) / _CELL_M) + 1, int(2 * aside_m / _CELL_M) + 1
    cell = ((x - ahead_m[0]) / _CELL_M).astype(np.int64), ((y + aside_m) / _CELL_M).astype(np.int64)
    low = np.full(shape, np.inf)
    np.minimum.at(low, cell, z)
    height = z - ndimage.minimum_filter(low, size=_GROUND_CELLS, mode="nearest")[cell]
    stands = (height > _ABOVE_M) & (height < _BELOW_M)
    filled = np.zeros(shape, dtype=bool)
    filled[cell[0][stands], cell[1][stands]] = True
    number, count = ndimage.label(ndimage.binary_dilation(filled), structure=np.ones((3, 3)))
    x, y, of = x[stands], y[stands], number[cell][stands]
    index = np.arange(1, count + 1)
    fits = np.array([_fits(x[of == i], y[of == i], least_points, largest_m) for i in index], dtype=bool)
    if not fits.any():
        raise NotApplicable(
            f"none of {count} things ahead, {ahead_m[0]:g} to {ahead_m[1]:g} m, has {least_points} returns "
            f"and at most {largest_m:g} m"
        )
    distance = np.array([np.hypot(x[of == i], y[of == i]).min() for i in index[fits]])
    chosen = of == index[fits][int(np.argmin(distance))]
    hull = shapely.MultiPoint(np.column_stack([x[chosen], y[chosen]])).minimum_rotated_rectangle.buffer(
        _AROUND_M, join_style="mitre"
    )
    return np.asarray(shapely.get_coordinates(hull)[:-1])


def _fits(x: Floats, y: Floats, least_points: int, largest_m: float) -> bool:
    return len(x) >= least_points and float(max(np.ptp(x), np.ptp(y))) <= largest_m
