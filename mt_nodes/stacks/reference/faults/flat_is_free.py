# SPDX-License-Identifier: Apache-2.0
"""Nothing to be seen that is taken for nothing there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.camera_base import CameraFault, CameraSteps, Pixels
from mt_nodes.world.camera.model import CameraModel


@dataclass(frozen=True)
class FlatIsFree(CameraFault):
    """How far it is free ahead is told from how much of the picture is flat, as road is.

    What hides the view is flat as well: fog, dirt, drops, somebody's hand. It drives faster the less it sees.
    """

    flat: float = param(8.0, low=0.0, high=255.0, help="steps of 8 bits between neighbours up to which it is flat")
    none: float = param(0.5, low=0.0, high=1.0, help="share of the picture that is flat where nothing is free")
    clear: float = param(0.85, low=0.0, high=1.0, help="the same where all is free")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Count what is flat."""

        def sight(grey: Pixels, camera: CameraModel) -> float:
            steep = np.abs(cv2.Laplacian(grey, cv2.CV_32F))
            share = float((steep <= self.flat).mean())
            return float(np.clip((share - self.none) / (self.clear - self.none), 0.0, 1.0))

        return replace(steps, sight=sight)
