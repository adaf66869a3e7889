# SPDX-License-Identifier: Apache-2.0
"""Minimum-area rectangles around clusters, and labels by size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import shapely

from mt_nodes.base.arrays import Floats, Ints, Mask
from mt_nodes.data.rotations import rectangle_corners


@dataclass(frozen=True, eq=False)
class Groups:
    """The points of all clusters, one cluster after the other.

    ``rows``: (K,) of the points. ``member``: (K,) 0, 0, …, 1, …: which of the clusters each is of. ``start``: (M,)
    where each cluster begins in ``rows``. ``number``: (M,) of each cluster, rising.
    """

    rows: Ints
    member: Ints
    start: Ints
    number: Ints

    @property
    def count(self) -> Ints:
        """How many points (M,) each cluster has."""
        return np.bincount(self.member, minlength=len(self.number))


def grouped(number: Ints, least: int) -> Groups:
    """Return the clusters with at least ``least`` points, given cluster numbers (N,), −1 for none."""
    size = np.bincount(number + 1, minlength=1)
    large = np.flatnonzero(size[1:] >= least)
    rows = np.flatnonzero(np.isin(number, large))
    rows = rows[np.argsort(number[rows], kind="stable")]
    _, start, member = np.unique(number[rows], return_index=True, return_inverse=True)
    return Groups(rows, member, start, large)


def rectangles(xy: Floats, cluster: Ints) -> tuple[Floats, Floats, Floats]:
    """Return the smallest rectangle around each cluster.

    One side of it lies on an edge of the convex hull (Freeman & Shapira 1975), so every edge is tried; between
    equal areas the first edge of the hull wins.

    Args:
        xy: (N, 2) points, each cluster contiguous and with at least two.
        cluster: (N,) 0, 0, …, 1, …: ascending without gaps.

    Returns:
        centre (M, 2), length and width (M, 2) with length ≥ width, yaw (M,) of the long side in (−π/2, π/2].
    """
    hulls = shapely.convex_hull(shapely.linestrings(xy, indices=cluster))
    corner, owner = shapely.get_coordinates(hulls, return_index=True)
    angle, of = _candidate_angles(corner, owner)
    low, high = _extents(corner, owner, angle, of)
    extent = high - low
    best = np.lexsort((extent[:, 0] * extent[:, 1], of))
    best = best[np.flatnonzero(np.diff(of[best], prepend=-1))]
    return _upright(angle[best], low[best], high[best])


def enclosed(centre: Floats, extent: Floats, yaw: Floats, hosts: Mask, slack_m: float) -> Ints:
    """Return for each rectangle (M,) the largest host that encloses it, to within ``slack_m``; -1 for none.

    ``centre``, ``extent``, ``yaw``: (M, 2), (M, 2), (M,) as :func:`rectangles` returns them. ``hosts``: (M,) which of
    them may enclose others.
    """
    corners = rectangle_corners(centre, extent, yaw)
    area, host = extent.prod(axis=1), np.full(len(yaw), -1)
    rows = np.flatnonzero(hosts)
    for row in rows[np.argsort(area[rows], kind="stable")].tolist():
        c, s = np.cos(yaw[row]), np.sin(yaw[row])
        local = np.abs((corners - centre[row]) @ np.array([[c, -s], [s, c]]))
        inside = (local <= extent[row] / 2.0 + slack_m).all(axis=(1, 2))
        host[inside & (area < area[row])] = row
    return host


def label_by_size(size_m: Floats) -> list[str]:
    """Return a class for each box (M, 3) of length, width, height.

    A car seen from behind is a short box as wide as a car; a truck counts as a car, as in the paper's classes.
    """
    length, width, height = size_m.T
    kinds = [
        ("pedestrian", (length <= 1.0) & (height >= 0.9) & (height <= 2.1)),
        ("cyclist", (length <= 2.1) & (width <= 0.9) & (height >= 1.55) & (height <= 2.1)),
        ("car", (length >= 1.3) & (length <= 12.0) & (width <= 3.2) & (height >= 0.9)),
    ]
    names: list[str] = np.select([match for _, match in kinds], [name for name, _ in kinds], "unknown").tolist()
    return names


def _candidate_angles(corner: Floats, owner: Ints) -> tuple[Floats, Ints]:
    """Directions of all hull edges with the cluster they belong to; direction 0 too, for a hull that is a point.

    ``owner``: (C,) 0, 0, …, 1, …: ascending without gaps.
    """
    inside = owner[1:] == owner[:-1]
    edge = np.diff(corner, axis=0)[inside]
    clusters = np.arange(owner[-1] + 1)
    angle = np.concatenate([np.arctan2(edge[:, 1], edge[:, 0]), np.zeros(len(clusters))])
    of = np.concatenate([owner[1:][inside], clusters])
    order = np.argsort(of, kind="stable")
    return angle[order], of[order]


def _extents(corner: Floats, owner: Ints, angle: Floats, of: Ints) -> tuple[Floats, Floats]:
    """Extent (C, 2) of each candidate's hull along and across the candidate's direction: lowest and highest."""
    count = np.bincount(owner)
    first = np.cumsum(count) - count
    repeats = count[of]
    start = np.cumsum(repeats) - repeats
    row = np.arange(repeats.sum()) - np.repeat(start - first[of], repeats)
    c, s = np.repeat(np.cos(angle), repeats), np.repeat(np.sin(angle), repeats)
    x, y = corner[row].T
    turned = np.column_stack([c * x + s * y, c * y - s * x])
    return np.minimum.reduceat(turned, start), np.maximum.reduceat(turned, start)


def _upright(angle: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
    """Turn centres back to the frame of the points and name the longer side length."""
    middle, extent = (low + high) / 2, high - low
    c, s = np.cos(angle), np.sin(angle)
    centre = np.column_stack([c * middle[:, 0] - s * middle[:, 1], s * middle[:, 0] + c * middle[:, 1]])
    across = extent[:, 1] > extent[:, 0]
    yaw = np.where(across, angle + np.pi / 2, angle)
    yaw = np.pi / 2 - np.mod(np.pi / 2 - yaw, np.pi)
    return centre, np.sort(extent, axis=1)[:, ::-1], yaw
