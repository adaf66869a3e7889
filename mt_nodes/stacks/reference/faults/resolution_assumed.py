# SPDX-License-Identifier: Apache-2.0
"""A size of pictures that is written into the program."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.assumed_camera import assumed_camera
from mt_nodes.stacks.reference.faults.camera_base import CameraFault, CameraSteps, Looked


@dataclass(frozen=True)
class ResolutionAssumed(CameraFault):
    """Buffers have room for so many rows and columns; of a larger picture the rest is left out without a word.

    What is left is taken for the whole picture of the camera that the stack was made for.
    """

    rows: int = param(480, low=16, high=10_000, help="rows that fit")
    columns: int = param(640, low=16, high=10_000, help="columns that fit")
    field_of_view_deg: float = param(60.0, low=10.0, high=150.0, unit="deg", help="of the camera it was made for")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Cut off what does not fit."""

        def look(looked: Looked) -> Looked:
            kept = looked.rgb[: self.rows, : self.columns]
            if kept.shape != looked.rgb.shape:
                camera = assumed_camera(kept.shape[:2], self.field_of_view_deg)
                looked = replace(looked, rgb=np.ascontiguousarray(kept), camera=camera)
            return steps.look(looked)

        return replace(steps, look=look)
