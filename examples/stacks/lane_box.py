# SPDX-License-Identifier: Apache-2.0
"""A stack in one function: one box around everything that stands on the road ahead."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def detect(points: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Return (M, 8): x y z length width height yaw score, in metres and radians, of at most one obstacle.

    Args:
        points: (N, 4) x, y, z in metres and intensity, in ``base_link``: x ahead, y to the left, z from the ground.
    """
    x, y, z = points[:, 0], points[:, 1], points[:, 2]
    on_road = (x > 3.0) & (x < 40.0) & (np.abs(y) < 5.0) & (z > 0.4) & (z < 3.0)
    if on_road.sum() < 10:
        return np.empty((0, 8))
    low, high = points[on_road, :3].min(axis=0), points[on_road, :3].max(axis=0)
    return np.array([[*(low + high) / 2.0, *(high - low), 0.0, 1.0]])
