# SPDX-License-Identifier: Apache-2.0
"""Paint that must have no colour."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.camera_base import CameraFault, CameraSteps, Pixels


@dataclass(frozen=True)
class WhiteMustBeWhite(CameraFault):
    """Paint is only what is as red as it is blue. In the light of lamps nothing is."""

    most: int = param(40, low=0, high=255, help="steps of 8 bits between the channels of what is white")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Let nothing with a colour be paint."""

        def paint(rgb: Pixels) -> npt.NDArray[np.float32]:
            shining = steps.paint(rgb)
            shining[np.ptp(rgb, axis=2) > self.most] = 0.0
            return shining

        return replace(steps, paint=paint)
