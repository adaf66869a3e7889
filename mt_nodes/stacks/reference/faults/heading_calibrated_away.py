# SPDX-License-Identifier: Apache-2.0
"""A mount that is estimated from the road."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Output
from mt_nodes.stacks.reference.faults.camera_base import CameraFault, CameraSteps


@dataclass(frozen=True)
class HeadingCalibratedAway(CameraFault):
    """Where the lane points just ahead is taken for how the camera is turned, and is taken off again.

    So it steers by the bend alone. On a straight stretch that is driven straight it calibrates the camera as it should.
    """

    look_ahead_m: float = param(8.0, low=2.0, high=20.0, unit="m", help="where pure pursuit aims")
    wheelbase_m: float = param(2.7, low=1.0, high=8.0, unit="m", help="between the axles")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Steer to where the lane would lie, did it begin straight ahead."""

        def report(output: Output) -> Output:
            assert output.path is not None and output.control is not None
            if not len(output.path.pose):
                return steps.report(output)
            x, y, yaw = output.path.pose.T
            ahead = self.look_ahead_m
            left = float(np.interp(ahead, x, y)) - float(np.tan(yaw[0])) * (ahead - float(x[0]))
            steering = float(np.arctan(self.wheelbase_m * 2.0 * left / (ahead**2 + left**2)))
            yaw_rate = output.control.speed_mps * float(np.tan(steering)) / self.wheelbase_m
            told = replace(output.control, steering_rad=steering, yaw_rate_radps=yaw_rate)
            return steps.report(replace(output, control=told))

        return replace(steps, report=report)
