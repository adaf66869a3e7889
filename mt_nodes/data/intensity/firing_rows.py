# SPDX-License-Identifier: Apache-2.0
"""Which points of a cloud came back of one firing, from laser, time and ray."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Mask, Rows, Singles

Points = npt.NDArray[Any]

#: Fields with the number of a laser, and with the time of a firing.
_LASERS = ("ring", "channel", "laser_number", "laser_id", "line")
_TIMES = ("time", "t", "timestamp", "time_stamp", "offset_ns", "offset_time")
#: Returns of one pulse are on one ray: by so many rad, rounding, and by so many metres: lasers sit beside the origin of
#: the cloud's frame (VLP-16 user manual, vertical correction: up to 11.2 mm).
_RAY_RAD, _BESIDE_M = 1e-4, 0.012
#: A firing has at most so many returns (Livox: up to 3).
_MOST = 3
#: A sensor is in dual-return mode if this share of its returns, and so many, have another one of the same firing.
_SHARE, _PAIRS = 0.005, 10
#: Points that are looked at together.
_PIECE = 8192


def is_dual(points: Points) -> bool:
    """Return whether a cloud's sensor reports several returns of a firing."""
    rows, same = _runs(points)
    pairs = int(np.count_nonzero(same))
    return pairs >= max(_PAIRS, _SHARE * len(rows))


def heads(points: Points) -> npt.NDArray[np.int32]:
    """Return (N,) the first row of each point's firing."""
    head = np.arange(len(points), dtype=np.int32)
    rows, same = _runs(points)
    if not len(rows):
        return head
    begins = np.flatnonzero(np.append(True, ~same))
    first = np.minimum.reduceat(rows, begins)
    head[rows] = np.repeat(first, np.diff(np.append(begins, len(rows))))
    return head


def ranges_m(points: Points) -> Singles:
    """Return the ranges (N,) of points in metres."""
    squares = np.zeros(len(points))
    for name in "xyz":
        squares += np.square(points[name], dtype=np.float64)
    return np.sqrt(squares, out=squares).astype(np.float32)


def _runs(points: Points) -> tuple[Rows, Mask]:
    """Return the rows (n,) of returns, those of a firing side by side, and whether each next one is of the same."""
    range_m = ranges_m(points)
    rows = np.flatnonzero((range_m > 0.0) & (range_m < np.inf))
    names = points.dtype.names or ()
    laser, time = (next((n for n in known if n in names), None) for known in (_LASERS, _TIMES))
    same = np.ones(max(len(rows) - 1, 0), dtype=bool)
    if laser is not None and time is not None:
        rows = rows[np.lexsort([points[laser][rows], points[time][rows]])]
        for name in (laser, time):
            key = points[name][rows]
            same &= key[1:] == key[:-1]
    same &= _on_one_ray(points, rows, range_m[rows])
    return rows, same & ~_too_long(same)


def _too_long(same: Mask) -> Mask:
    """Return which links belong to runs of more returns than a firing has: its time is that of many firings."""
    edges = np.flatnonzero(np.diff(same.astype(np.int8), prepend=0, append=0))
    length = edges[1::2] - edges[::2]
    long = np.zeros(len(same), dtype=bool)
    long[same] = np.repeat(length >= _MOST, length)
    return long


def _on_one_ray(points: Points, rows: Rows, range_m: Singles) -> Mask:
    """Return whether returns (n,) and the next ones (n - 1,) are on one ray, but for the lasers' own places."""
    same = np.empty(max(len(rows) - 1, 0), dtype=bool)
    for start in range(0, len(same), _PIECE):  # in blocks, to save memory
        piece = slice(start, start + _PIECE + 1)
        away_m = range_m[piece].astype(np.float64)
        aside = np.zeros(len(away_m) - 1)
        for name in "xyz":
            aside += np.square(np.diff(points[name][rows[piece]] / away_m))
        least = np.square(_RAY_RAD + _BESIDE_M * np.abs(np.diff(1.0 / away_m)))
        np.less_equal(aside, least, out=same[start : start + _PIECE])
    return same
