# SPDX-License-Identifier: Apache-2.0
"""Noise that is taken for a clear view."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.camera_base import CameraFault, CameraSteps, Pixels
from mt_nodes.world.camera.model import CameraModel


@dataclass(frozen=True)
class NoiseIsDetail(CameraFault):
    """How well it sees ahead is told from how much neighbouring pixels differ, anywhere in the picture.

    At night the noise of the sensor makes them differ more than houses do by day, and it drives faster.
    """

    clear: float = param(16.0, low=0.1, high=1000.0, help="mean size of the Laplacian in clear sight, steps of 8 bits")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Count every difference."""

        def sight(grey: Pixels, camera: CameraModel) -> float:
            return min(1.0, float(np.abs(cv2.Laplacian(grey, cv2.CV_32F)).mean()) / self.clear)

        return replace(steps, sight=sight)
