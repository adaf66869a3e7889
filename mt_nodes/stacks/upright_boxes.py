# SPDX-License-Identifier: Apache-2.0
"""Upright boxes around groups of points: clusters, footprints, boxes drawn as lines."""

from __future__ import annotations

import numpy as np

from mt_nodes.base.arrays import Floats, Ints
from mt_nodes.stacks.reference.cluster_boxes import rectangles


def boxes_around(points_m: Floats, group: Ints) -> tuple[Floats, Floats, Floats]:
    """Return the smallest upright box around each group: ``rectangles`` on the ground, from its lowest to its highest.

    Args:
        points_m: (N, 3) finite places, each group contiguous.
        group: (N,) 0, 0, …, 1, …: ascending without gaps.

    Returns:
        centre (M, 3), size (M, 3) of length, width and height with length ≥ width, yaw (M,) of the long side in
        (-π/2, π/2]; a group of one point is a box without size.
    """
    if not len(points_m):
        return np.empty((0, 3)), np.empty((0, 3)), np.empty(0)
    lone = np.bincount(group) == 1  # of which a rectangle wants two
    twice = 1 + lone[group]
    ground, sides, yaw = rectangles(np.repeat(points_m[:, :2], twice, axis=0), np.repeat(group, twice))
    first = np.flatnonzero(np.diff(group, prepend=-1))
    low, high = np.minimum.reduceat(points_m[:, 2], first), np.maximum.reduceat(points_m[:, 2], first)
    return np.column_stack([ground, (low + high) / 2]), np.column_stack([sides, high - low]), yaw
