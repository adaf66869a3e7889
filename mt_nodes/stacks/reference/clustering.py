# SPDX-License-Identifier: Apache-2.0
"""Euclidean clustering of occupied columns.

In NumPy alone: what SciPy has for it takes longer to import than all else that a stack's process does at its start.
"""

from __future__ import annotations

import numpy as np

from mt_nodes.base.arrays import Ints


def cluster(xy_mm: Ints, column_mm: int, tolerance_mm: int, column_points: int) -> Ints:
    """Return the cluster number (N,) of each point, −1 for isolated points.

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


def _hanging_together(places: Ints, reach: float) -> Ints:
    """Return the component number (M,) of each place (M, 2), in the order of first places.

    ``places``: distinct, in order.
    """
    one, other = _neighbours(places, reach)
    root = np.arange(len(places))
    while True:
        low = np.minimum(root[one], root[other])
        joined = root.copy()
        # The root of each gets the lowest root of its neighbours, then every place the root of its root.
        for end in (one, other):
            np.minimum.at(joined, root[end], low)
        while not np.array_equal(joined, above := joined[joined]):
            joined = above
        if np.array_equal(joined, root):
            return np.unique(root, return_inverse=True)[1]
        root = joined


def _neighbours(places: Ints, reach: float) -> tuple[Ints, Ints]:
    """Return all pairs of places (M, 2) at most ``reach`` apart, each pair once, as two index arrays."""
    cells = int(reach)
    low = places.min(axis=0)
    width = int(places[:, 1].max() - low[1]) + 1 + cells  # a step beyond the last one of a row meets nobody
    address = (places[:, 0] - low[0]) * width + places[:, 1] - low[1]
    steps = [
        (dx, dy)
        for dx in range(cells + 1)
        for dy in range(-cells if dx else 1, cells + 1)
        if dx * dx + dy * dy <= reach * reach
    ]
    far = address[:, None] + np.array([dx * width + dy for dx, dy in steps], dtype=np.int64)
    found = np.searchsorted(address, far)
    one, step = np.nonzero(address[np.minimum(found, len(address) - 1)] == far)
    return one, found[one, step]


def _columns(index: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the distinct (x, y) indices in order, each point's row among them, and the points per column."""
    if not len(index):
        return index, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    low = index.min(axis=0)
    width = int(index[:, 1].max() - low[1] + 1)
    address, inverse, counts = np.unique(
        (index[:, 0] - low[0]) * width + index[:, 1] - low[1], return_inverse=True, return_counts=True
    )
    return np.column_stack([address // width, address % width]) + low, inverse, counts
