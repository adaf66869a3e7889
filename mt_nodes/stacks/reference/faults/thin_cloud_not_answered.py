# SPDX-License-Identifier: Apache-2.0
"""Few returns, no answer yet."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Output
from mt_nodes.stacks.reference.faults.base import Points
from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverSteps


@dataclass(frozen=True)
class ThinCloudNotAnswered(DriverFault):
    """A cloud of fewer points than a fixed number is taken for a torn one and thrown away, without a word.

    In heavy rain, or with a lesser sensor, no command comes at all, and nobody is told why.
    """

    least_points: int = param(20_000, low=1, high=100_000_000, help="points of the smallest cloud that is answered")
    waits: int = param(2, low=1, high=1000, unit="clouds", help="how many in a row are thrown away")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Say nothing, some times."""
        thrown = [0]

        def say(cloud: Points, stamp_ns: int | None, output: Output) -> Output:
            torn = len(cloud) < self.least_points and thrown[0] < self.waits
            thrown[0] = thrown[0] + 1 if torn else 0
            return Output() if torn else steps.say(cloud, stamp_ns, output)

        return replace(steps, say=say)
