# SPDX-License-Identifier: Apache-2.0
"""Euclidean clustering of occupied columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

Ints = npt.NDArray[np.int64]


def cluster(xy_mm: Ints, column_mm: int, tolerance_mm: int, column_points: int) -> Ints:
    """Return (N,) the cluster number of each point, −1 for points that stand alone.

    Points are gathered into square columns; one with fewer than ``column_points`` is noise and joins nothing, so
    that a stray point is no bridge. Columns whose centres are at most ``tolerance_mm`` apart belong together, and
    whatever hangs together by such is a cluster. Columns are numbered by place, so the order of points is nothing.
    """
    column, inverse, counts = _columns(xy_mm // column_mm)
    solid = counts >= column_points
    number = np.full(len(column), -1, dtype=np.int64)
    if solid.any():
        number[solid] = _hanging_together(column[solid], tolerance_mm / column_mm + 1e-6)
    return np.asarray(number[inverse])


def _hanging_together(places: Ints, reach: float) -> npt.NDArray[np.int32]:
    """Return the number (M,) of what each place (M, 2) hangs together with, in the order of their first places."""
    near = KDTree(places).query_pairs(reach, output_type="ndarray")
    edges = coo_array((np.ones(len(near), dtype=np.int8), tuple(near.T)), shape=(len(places), len(places)))
    return np.asarray(connected_components(edges, directed=False)[1])


def _columns(index: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the distinct (x, y) indices in order, each point's place among them, and how many points each has."""
    if not len(index):
        return index, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    low = index.min(axis=0)
    width = int(index[:, 1].max() - low[1] + 1)
    address, inverse, counts = np.unique(
        (index[:, 0] - low[0]) * width + index[:, 1] - low[1], return_inverse=True, return_counts=True
    )
    return np.column_stack([address // width, address % width]) + low, inverse, counts
