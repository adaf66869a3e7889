# SPDX-License-Identifier: Apache-2.0
"""The camera model that a stack assumes when nothing states which camera took a picture."""

from __future__ import annotations

import numpy as np

from mt_nodes.data.messages import CameraInfo
from mt_nodes.world.camera.model import CameraModel


def assumed_camera(size: tuple[int, int], field_of_view_deg: float) -> CameraModel:
    """Return a distortion-free camera with its principal point in the middle of a picture (height, width)."""
    height, width = size
    focal = width / 2.0 / np.tan(np.radians(field_of_view_deg) / 2.0)
    k = np.array([[focal, 0.0, (width - 1) / 2.0], [0.0, focal, (height - 1) / 2.0], [0.0, 0.0, 1.0]])
    no_turn, p = np.eye(3), np.column_stack([k, np.zeros(3)])
    return CameraModel.of(CameraInfo("", 0, "", width, height, "", np.zeros(0), k, no_turn, p), size)
