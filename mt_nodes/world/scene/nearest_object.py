# SPDX-License-Identifier: Apache-2.0
"""Finds objects that stand on the road in a cloud: columns above the ground, joined where they touch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import shapely
from scipy import ndimage

from mt_nodes.base.arrays import Floats, Ints
from mt_nodes.base.errors import NotApplicable

#: Distance of the outline from the returns, similar to a detector's box.
AROUND_M = 0.35
_CELL_M, _GROUND_CELLS = 0.25, 13
#: Four columns: farther than points of one object are apart.
_MARGIN_M = 1.0
_ABOVE_M, _BELOW_M = 0.3, 4.0


@dataclass(frozen=True)
class Search:
    """Search parameters.

    Attributes:
        ahead_m: nearest and farthest x. aside_m: farthest from the path. What reaches beyond them is not found.
        length_m: least and greatest extent along x or y, whichever is longer; longer ones are walls.
        height_m: lowest and highest top above the ground.
    """

    ahead_m: tuple[float, float]
    aside_m: float
    least_points: int
    length_m: tuple[float, float]
    height_m: tuple[float, float] = (0.0, _BELOW_M)

    @property
    def around(self) -> Search:
        """The search with a margin in which objects show that they reach beyond the limits: they are not cut off."""
        near, far = self.ahead_m
        return replace(self, ahead_m=(near - _MARGIN_M, far + _MARGIN_M), aside_m=self.aside_m + _MARGIN_M)


def nearest_objects(xyz: Floats, search: Search) -> Iterator[Floats]:
    """Yield outlines (k, 2) of objects ahead, nearest first: the smallest rectangle around each, plus a margin.

    Ground is the lowest return within 1.6 m; points 0.3 m to 4 m above it stand on it. Columns of 0.25 m that touch, or
    have up to two free columns between them, are one object.
    ``xyz``: (N, 3) points in a frame that stands on the road: x ahead, y left, z up; all within ``search.around``.
    Raises NotApplicable: there is none; with the numbers.
    """
    x, y, of, height, count = _standing(xyz, search.around)
    order = np.argsort(of, kind="stable")
    x, y, height, starts = x[order], y[order], height[order], np.searchsorted(of[order], np.arange(1, count + 1))
    if count:
        points = np.diff(starts, append=len(x))
        low, high = (np.array([end.reduceat(v, starts) for v in (x, y)]) for end in (np.minimum, np.maximum))
        longest, top = (high - low).max(axis=0), np.maximum.reduceat(height, starts)
        fits = (low[0] >= search.ahead_m[0]) & (high[0] <= search.ahead_m[1])
        fits &= np.maximum(-low[1], high[1]) <= search.aside_m
        fits &= (points >= search.least_points) & (longest >= search.length_m[0]) & (longest <= search.length_m[1])
        fits &= (top >= search.height_m[0]) & (top <= search.height_m[1])
        away = np.where(fits, np.minimum.reduceat(np.hypot(x, y), starts), np.inf)
    if not count or not fits.any():
        raise NotApplicable(
            f"none of {count} things ahead, {search.ahead_m[0]:g} to {search.ahead_m[1]:g} m, has "
            f"{search.least_points} returns, {search.length_m[0]:g} to {search.length_m[1]:g} m of length and "
            f"{search.height_m[0]:g} to {search.height_m[1]:g} m of height"
        )
    nearest = np.argsort(away, kind="stable")[: int(fits.sum())].tolist()
    pieces = (slice(starts[i], starts[i] + points[i]) for i in nearest)
    return (_outline(x[piece], y[piece]) for piece in pieces)


def standing_points(xyz: Floats, search: Search) -> Floats:
    """Return the places x, y and heights above the ground (n, 3) of the points of all objects within a search.

    ``xyz``: as for :func:`nearest_objects`.
    """
    x, y, of, height, count = _standing(xyz, search)
    if not count:
        return np.zeros((0, 3))
    order = np.argsort(of, kind="stable")
    starts = np.searchsorted(of[order], np.arange(1, count + 1))
    longest = np.maximum(
        *(np.maximum.reduceat(v[order], starts) - np.minimum.reduceat(v[order], starts) for v in (x, y))
    )
    points = np.diff(starts, append=len(x))
    fits = (points >= search.least_points) & (longest >= search.length_m[0]) & (longest <= search.length_m[1])
    return np.asarray(np.column_stack([x, y, height])[fits[of - 1]])


def _standing(xyz: Floats, search: Search) -> tuple[Floats, Floats, Ints, Floats, int]:
    """Return x, y, object number, and height above ground (n,) of standing points; and the number of objects."""
    (near, far), aside = search.ahead_m, search.aside_m
    x, y, z = xyz.T
    inside = np.flatnonzero((x >= near) & (x <= far) & (np.abs(y) <= aside) & np.isfinite(z))
    x, y, z = x[inside], y[inside], z[inside]
    rows, columns = int((far - near) / _CELL_M) + 1, int(2 * aside / _CELL_M) + 1
    cell = ((x - near) / _CELL_M).astype(np.int64) * columns + ((y + aside) / _CELL_M).astype(np.int64)
    low = np.full(rows * columns, np.inf)
    np.minimum.at(low, cell, z)
    ground = ndimage.minimum_filter(low.reshape(rows, columns), size=_GROUND_CELLS, mode="nearest").ravel()
    height = z - ground[cell]
    stands = np.flatnonzero((height > _ABOVE_M) & (height < _BELOW_M))
    filled = np.zeros(rows * columns, dtype=bool)
    filled[cell[stands]] = True
    wider = ndimage.binary_dilation(filled.reshape(rows, columns))
    number, count = ndimage.label(wider, structure=np.ones((3, 3)))
    return x[stands], y[stands], number.ravel()[cell[stands]].astype(np.int64), height[stands], int(count)


def _outline(x: Floats, y: Floats) -> Floats:
    rectangle = shapely.linestrings(x, y).minimum_rotated_rectangle
    return np.asarray(shapely.get_coordinates(rectangle.buffer(AROUND_M, join_style="mitre"))[:-1])
