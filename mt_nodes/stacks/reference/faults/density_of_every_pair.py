# SPDX-License-Identifier: Apache-2.0
"""Every point is compared with every other."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Output
from mt_nodes.stacks.reference.faults.base import Points
from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverSteps


@dataclass(frozen=True)
class DensityOfEveryPair(DriverFault):
    """A number for a display, how near points lie to each other, is made of every pair of them before each answer.

    Commands are as they should be. Time goes with the square of the points, of which the developers' sensor had few.
    """

    one_of: int = param(20, low=1, high=1000, help="of so many points one is looked at")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Compare, and let the display be."""

        def say(cloud: Points, stamp_ns: int | None, output: Output) -> Output:
            x, y = cloud[:: self.one_of, 0], cloud[:: self.one_of, 1]
            for x_m, y_m in zip(x.tolist(), y.tolist(), strict=True):
                np.count_nonzero(np.hypot(x - x_m, y - y_m) < 1.0)
            return steps.say(cloud, stamp_ns, output)

        return replace(steps, say=say)
