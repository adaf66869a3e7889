# SPDX-License-Identifier: Apache-2.0
"""A test of plausibility."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Output, Path
from mt_nodes.stacks.reference.faults.camera_base import CameraFault, CameraSteps


@dataclass(frozen=True)
class LanePlausibleOnOneSide(CameraFault):
    """A lane whose middle lies elsewhere than in the recordings is taken for a mistake, and is left out.

    They were of one bend. In a mirror, or to a camera that was knocked, the middle lies elsewhere.
    """

    usual_m: tuple[float, float] = param((0.1, 0.8), low=-5.0, high=5.0, unit="m", help="to the left, 8 m ahead")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Leave out what is not plausible."""

        def report(output: Output) -> Output:
            assert output.path is not None
            x, y, _ = output.path.pose.T
            usual = len(x) > 0 and self.usual_m[0] <= float(np.interp(8.0, x, y)) <= self.usual_m[1]
            nothing = Path.make(output.path.frame_id, None, [])
            return steps.report(output if usual else replace(output, path=nothing))

        return replace(steps, report=report)
