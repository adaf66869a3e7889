# SPDX-License-Identifier: Apache-2.0
"""Orientation in messages: the yaw that planar boxes need."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def yaws(quaternion_xyzw: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the yaw (M,) in radians of quaternions (M, 4); an all-zero one, as many tools leave it, is no turn."""
    x, y, z, w = np.asarray(quaternion_xyzw, dtype=np.float64).reshape(-1, 4).T
    unset = (x == 0) & (y == 0) & (z == 0) & (w == 0)
    return np.where(unset, 0.0, np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))
