# SPDX-License-Identifier: Apache-2.0
"""A small detector as an example: neighbouring occupied cells above the ground are one obstacle."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import ndimage

CELL_M = 0.5
REACH_M = 45.0  # ahead, behind and to both sides
GROUND_M, TOP_M = 0.3, 3.0  # heights above the ground that count, in base_link
LEAST_POINTS = 30


def detect(points: Any) -> Any:
    """Return boxes (M, 7) x y z length width height yaw of points (N, 4) x y z intensity, both in base_link."""
    x, y, z = points[:, 0], points[:, 1], points[:, 2]
    near = (abs(x) < REACH_M) & (abs(y) < REACH_M) & (z > GROUND_M) & (z < TOP_M)
    kept = points[near, :3]
    cells = np.floor((kept[:, :2] + REACH_M) / CELL_M).astype(int)
    side = int(2 * REACH_M / CELL_M)
    counts = np.zeros((side, side), dtype=int)
    np.add.at(counts, (cells[:, 0], cells[:, 1]), 1)
    labels, count = ndimage.label(counts >= 3, structure=np.ones((3, 3)))
    owner = labels[cells[:, 0], cells[:, 1]]
    boxes = [_box(kept[owner == label]) for label in range(1, count + 1)]
    return np.array([box for box in boxes if box is not None]).reshape(-1, 7)


def _box(points: Any) -> Any:
    if len(points) < LEAST_POINTS:
        return None
    low, high = points.min(axis=0), points.max(axis=0)
    return [*((low + high) / 2), *np.maximum(high - low, 0.2), 0.0]
