# SPDX-License-Identifier: Apache-2.0
"""Pixels of a camera that may show convex hulls of points."""

from __future__ import annotations

import numpy as np

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.data.transforms import Matrix
from mt_nodes.world.scene.camera_rendering import CameraSensor

#: Near clipping plane: hulls may extend behind the camera.
_NEAR_M = 0.05


def windows(hulls_m: Floats, to_camera: Matrix, sensor: CameraSensor) -> Mask:
    """Return the pixels (H, W) of the rectangles around hulls of points (B, K, 3), one pixel more to each side.

    ``to_camera``: (4, 4) points to the camera's optical frame: x right, y down, z ahead.
    """
    visible = np.zeros((sensor.height, sensor.width), bool)
    middle = np.array([(sensor.width - 1) / 2.0, (sensor.height - 1) / 2.0])
    for points in hulls_m @ to_camera[:3, :3].T + to_camera[:3, 3]:
        before = _before(points)
        if not len(before):
            continue
        places = before[:, :2] / before[:, 2:] * sensor.focal_px + middle
        low, high = np.floor(places.min(axis=0)) - 1.0, np.ceil(places.max(axis=0)) + 2.0
        (left, top), (right, bottom) = np.clip([low, high], 0, (sensor.width, sensor.height)).astype(int).tolist()
        visible[top:bottom, left:right] = True
    return visible


def _before(points: Floats) -> Floats:
    """Return corners (n, 3) of the part of a hull in front of the camera."""
    ahead = points[:, 2] > _NEAR_M
    front, behind = points[ahead], points[~ahead]
    if not len(front) or not len(behind):
        return front
    share = (front[:, None, 2] - _NEAR_M) / (front[:, None, 2] - behind[None, :, 2])
    cut = front[:, None] + share[..., None] * (behind - front[:, None])
    return np.concatenate([front, cut.reshape(-1, 3)])
