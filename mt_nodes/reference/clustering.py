# SPDX-License-Identifier: Apache-2.0
"""Euclidean clustering of occupied columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import open3d as o3d

Ints = npt.NDArray[np.int64]


def cluster(xy_mm: Ints, column_mm: int, tolerance_mm: int, column_points: int) -> Ints:
    """Return (N,) the cluster number of each point, −1 for points that stand alone.

    Points are gathered into square columns; one with fewer than ``column_points`` is noise and joins nothing, so
    that a stray point is no bridge. Columns whose centres are at most ``tolerance_mm`` apart belong together
    (DBSCAN with one point a core is exactly that). Columns are numbered by place, so the order of points is nothing.
    """
    column, inverse, counts = _columns(xy_mm // column_mm)
    solid = counts >= column_points
    number = np.full(len(column), -1, dtype=np.int64)
    if solid.any():
        centres = np.column_stack([column[solid], np.zeros(int(solid.sum()))]).astype(np.float64)
        cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(centres))
        reach = tolerance_mm / column_mm + 1e-6
        number[solid] = np.asarray(cloud.cluster_dbscan(eps=reach, min_points=1, print_progress=False))
    return np.asarray(number[inverse])


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
