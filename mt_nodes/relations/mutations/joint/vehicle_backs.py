# SPDX-License-Identifier: Apache-2.0
"""Finds the nearest object ahead of the size of a vehicle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from mt_nodes.base.arrays import Floats, Ints
from mt_nodes.base.errors import NotApplicable

_CELL_M, _GROUND_CELLS = 0.25, 13
_ABOVE_M, _BELOW_M = 0.3, 4.0
#: Returns of things that begin up to so much nearer count, too: whose back is there drives beside the ego.
NEARER_M = 3.0
#: Returns so far below the road at their distance are mirror images in cars or puddles.
_MIRROR_M = 0.5
#: Least and largest width and largest length of the visible part of a vehicle, and least height of its top above
#: ground.
_WIDTH_M, _LENGTH_M, _TOP_M = (1.2, 3.0), 15.0, 0.9


@dataclass(frozen=True)
class VehicleBack:
    """The back of a vehicle, in a frame on the road: x ahead, y left, z up; metres."""

    rear_x_m: float
    middle_y_m: float
    half_width_m: float
    ground_z_m: float


def nearest_vehicle(xyz: Floats, ahead_m: tuple[float, float], aside_m: float, least_points: int) -> VehicleBack:
    """Return the nearest object ahead that is 1.2 to 3 m wide, at most 15 m long and at least 0.9 m high.

    Ground is the lowest return within 1.6 m, except mirror images below the road; columns of 0.25 m with returns 0.3 m
    to 4 m above it form one object if they touch, or have one free column between them.
    Raises NotApplicable: there is none; with the numbers.
    ``xyz``: (N, 3) points in a frame that stands on the road. ``ahead_m``: nearest and farthest x of its back.
    ``aside_m``: largest distance of its centre from the ego's path. ``least_points``: returns that it must have.
    """
    reach = aside_m + _WIDTH_M[1]
    x, y, z = xyz.T
    first_m = ahead_m[0] - NEARER_M
    inside = np.isfinite(z) & (x >= first_m) & (x <= ahead_m[1] + _LENGTH_M) & (np.abs(y) <= reach)
    x, y, z = x[inside], y[inside], z[inside]
    shape = int((ahead_m[1] + _LENGTH_M - first_m) / _CELL_M) + 1, int(2 * reach / _CELL_M) + 1
    cell = ((x - first_m) / _CELL_M).astype(np.int64), ((y + reach) / _CELL_M).astype(np.int64)
    low = np.full(shape, np.inf)
    np.minimum.at(low, cell, z)
    low[low < _levels(low) - _MIRROR_M] = np.inf
    ground = ndimage.minimum_filter(low, size=_GROUND_CELLS, mode="nearest")[cell]
    stands = (z - ground > _ABOVE_M) & (z - ground < _BELOW_M)
    x, y, z, ground, cell = x[stands], y[stands], z[stands], ground[stands], (cell[0][stands], cell[1][stands])
    filled = np.zeros(shape, dtype=bool)
    filled[cell] = True
    number, count = ndimage.label(ndimage.binary_closing(filled, np.ones((3, 3))), structure=np.ones((3, 3)))
    things = _things(number[cell], count, x, y, z, ground)
    fits = (things[:, 0] >= least_points) & (things[:, 2] <= _LENGTH_M)
    fits &= (things[:, 1] >= ahead_m[0]) & (things[:, 1] <= ahead_m[1])
    fits &= (np.abs(things[:, 3]) <= aside_m) & (things[:, 4] >= _WIDTH_M[0]) & (things[:, 4] <= _WIDTH_M[1])
    fits &= things[:, 5] >= _TOP_M
    if not fits.any():
        raise NotApplicable(
            f"none of {count} things {ahead_m[0]:g} to {ahead_m[1]:g} m ahead and within {aside_m:g} m of the path has "
            f"{least_points} returns and a vehicle's size, {_WIDTH_M[0]:g} to {_WIDTH_M[1]:g} m wide"
        )
    chosen = things[fits][np.argmin(things[fits, 1])]
    return VehicleBack(float(chosen[1]), float(chosen[3]), float(chosen[4] / 2), float(chosen[6]))


def _levels(low: Floats) -> Floats:
    """Return the level (r, 1) of each row of cells (r, c): the median around of what a fifth of its cells lie below."""
    count = np.isfinite(low).sum(axis=1, keepdims=True)
    level = np.take_along_axis(np.sort(low, axis=1), np.maximum(count - 1, 0) // 5, axis=1)[:, 0]
    known = np.flatnonzero(np.isfinite(level))
    if not len(known):
        return level[:, None]
    level = np.interp(np.arange(len(level)), known, level[known])
    return np.asarray(ndimage.median_filter(level, size=2 * _GROUND_CELLS + 1, mode="nearest"))[:, None]


def _things(of: Ints, count: int, x: Floats, y: Floats, z: Floats, ground: Floats) -> Floats:
    """Return one row (count, 7) for each object: returns, back, length, centre, width, height of its top, ground."""
    if not count:
        return np.empty((0, 7))
    index = np.arange(1, count + 1)

    def lowest(values: Floats) -> Floats:
        return np.asarray(ndimage.minimum(values, of, index), dtype=np.float64)

    back, right, base = lowest(x), lowest(y), lowest(ground)
    front, left, top = -lowest(-x), -lowest(-y), -lowest(-z)
    columns = (
        np.bincount(of, minlength=count + 1)[1:],
        back,
        front - back,
        (left + right) / 2,
        left - right,
        top - base,
        base,
    )
    return np.column_stack(columns)
