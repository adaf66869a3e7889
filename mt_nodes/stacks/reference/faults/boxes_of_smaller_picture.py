# SPDX-License-Identifier: Apache-2.0
"""Boxes that are told in pixels of another picture."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Output
from mt_nodes.stacks.reference.faults.camera_base import CameraFault, CameraSteps


@dataclass(frozen=True)
class BoxesOfSmallerPicture(CameraFault):
    """People are sought in a smaller picture, and their boxes are told in its pixels.

    The lane and the speed come from inside, where sizes are right, so that it drives well.
    """

    scale: float = param(0.8, low=0.01, high=1.0, help="size of that picture, of the whole one's")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Leave out the way back to the full size."""

        def report(output: Output) -> Output:
            assert output.boxes is not None
            smaller = replace(output.boxes, box_px=self.scale * output.boxes.box_px)
            return steps.report(replace(output, boxes=smaller))

        return replace(steps, report=report)
