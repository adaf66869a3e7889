# SPDX-License-Identifier: Apache-2.0
"""Half the answers when there is much to do."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Output
from mt_nodes.stacks.reference.faults.base import Points
from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverSteps


@dataclass(frozen=True)
class EveryOtherWhenBusy(DriverFault):
    """Of clouds of many points only every other one is answered: the load is shed by those who need not know.

    What is answered is right. The commands come half as often, as long as it snows.
    """

    busy_points: int = param(130_000, low=1, high=100_000_000, help="points of a cloud from which on that is so")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Leave out every other answer to large clouds."""
        skipped = [True]

        def say(cloud: Points, stamp_ns: int | None, output: Output) -> Output:
            skipped[0] = len(cloud) >= self.busy_points and not skipped[0]
            return Output() if skipped[0] else steps.say(cloud, stamp_ns, output)

        return replace(steps, say=say)
