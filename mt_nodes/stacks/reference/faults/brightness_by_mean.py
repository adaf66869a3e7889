# SPDX-License-Identifier: Apache-2.0
"""An exposure that the whole picture decides about."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.camera_base import CameraFault, CameraSteps, Pixels


@dataclass(frozen=True)
class BrightnessByMean(CameraFault):
    """Brightness is normalised by the mean of the whole picture, and paint is what then shines brightly enough.

    A brighter sky, a lamp or a glare anywhere makes everything else darker, and the lines of the lane are none then.
    """

    paint_from: float = param(1.6, low=0.0, high=10.0, help="means of the picture from which brightness is paint")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Let only what outshines the mean be paint."""

        def paint(rgb: Pixels) -> npt.NDArray[np.float32]:
            shining = steps.paint(rgb)
            return np.asarray(np.maximum(shining - self.paint_from * cv2.mean(shining)[0], 0.0), dtype=np.float32)

        return replace(steps, paint=paint)
