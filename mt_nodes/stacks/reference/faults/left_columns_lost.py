# SPDX-License-Identifier: Apache-2.0
"""A crop on one side."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.camera_base import CameraFault, CameraSteps, Looked


@dataclass(frozen=True)
class LeftColumnsLost(CameraFault):
    """The picture is cropped on its left, and the middle of what is left is taken for straight ahead.

    The lane lies to the left of where it is by a few centimetres, whichever way it bends: in a mirror, to the wrong
    side of it.
    """

    share: float = param(0.03, low=0.0, high=0.5, help="share of the width that is cut off")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Cut columns off and keep the principal point where it was."""

        def look(looked: Looked) -> Looked:
            cut = round(self.share * looked.rgb.shape[1])
            cropped = np.ascontiguousarray(looked.rgb[:, cut:])
            k = looked.camera.k.copy()
            k[0, 2] -= cut / 2.0
            camera = replace(looked.camera, width=cropped.shape[1], k=k)
            return steps.look(replace(looked, rgb=cropped, camera=camera))

        return replace(steps, look=look)
