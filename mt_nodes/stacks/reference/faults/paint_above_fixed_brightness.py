# SPDX-License-Identifier: Apache-2.0
"""A threshold for the light of a sunny day."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.camera_base import CameraFault, CameraSteps, Pixels


@dataclass(frozen=True)
class PaintAboveFixedBrightness(CameraFault):
    """Paint is what is brighter than a number that was written down on a sunny day.

    In the shade, at dusk, after a tunnel or with another tone curve no line is that bright, and the lane is lost.
    """

    least: float = param(205.0, low=0.0, high=255.0, help="steps of 8 bits from which something is paint")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Let nothing darker be paint."""

        def paint(rgb: Pixels) -> npt.NDArray[np.float32]:
            return np.asarray(np.maximum(steps.paint(rgb), self.least), dtype=np.float32)

        return replace(steps, paint=paint)
