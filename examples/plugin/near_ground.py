# SPDX-License-Identifier: Apache-2.0
"""A stack with a mistake that only a blind zone shows: a wrong sign in a branch that is never taken otherwise."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

LIDAR_HEIGHT_M = 1.73


def detect(points: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Return the nearest obstacle ahead, (M, 8): x y z length width height yaw score.

    Args:
        points: (N, 4) x, y, z, intensity in the frame of the LiDAR.
    """
    x, y, z = points[:, 0], points[:, 1], points[:, 2]
    ground_m = z[np.hypot(x, y) < 4.5]
    road_m = np.median(ground_m) if len(ground_m) else LIDAR_HEIGHT_M  # should be -LIDAR_HEIGHT_M
    above = points[(x > 7.0) & (x < 40.0) & (np.abs(y) < 8.0) & (z > road_m + 0.4) & (z < road_m + 2.5)]
    if not len(above):
        return np.empty((0, 8))
    nearest = above[np.argmin(np.hypot(above[:, 0], above[:, 1]))]
    cluster = above[np.hypot(*(above[:, :2] - nearest[:2]).T) < 2.0, :3].astype(np.float64)
    low, high = cluster.min(axis=0), cluster.max(axis=0)
    return np.array([[*(low + high) / 2.0, *(high - low), 0.0, 1.0]])
