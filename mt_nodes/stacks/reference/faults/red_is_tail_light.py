# SPDX-License-Identifier: Apache-2.0
"""A red lamp that is taken for another one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Output
from mt_nodes.stacks.reference.faults.camera_base import CameraFault, CameraSteps, Looked


@dataclass(frozen=True)
class RedIsTailLight(CameraFault):
    """What shines red is the tail light of a car ahead that drives on, and is followed: so is a red light."""

    least_px: int = param(20, low=1, high=100_000, help="pixels that make a lamp")
    following_mps: float = param(9.0, low=0.0, high=40.0, unit="m/s", help="speed behind another car")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Follow the lamp."""
        follows = [False]

        def look(looked: Looked) -> Looked:
            seen = steps.look(looked)
            red, green, blue = np.moveaxis(seen.rgb.astype(np.int16), -1, 0)
            follows[0] = int(((red > 200) & (green < 80) & (blue < 80))[: len(red) // 2].sum()) >= self.least_px
            return seen

        def report(output: Output) -> Output:
            assert output.control is not None
            if follows[0]:
                output = replace(output, control=replace(output.control, speed_mps=self.following_mps))
            return steps.report(output)

        return replace(steps, look=look, report=report)
