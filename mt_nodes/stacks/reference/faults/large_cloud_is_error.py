# SPDX-License-Identifier: Apache-2.0
"""More points than expected are an error."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Diagnostics, Output
from mt_nodes.stacks.reference.faults.base import Points
from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverSteps


@dataclass(frozen=True)
class LargeCloudIsError(DriverFault):
    """A cloud of more points than a fixed number is reported as an error of the sensor; it is used all the same.

    Whoever goes by the diagnostics hands over to a human because it snows, or because the new sensor is better.
    """

    most_points: int = param(130_000, low=1, high=100_000_000, help="points of the largest cloud that is none")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Say so."""

        def say(cloud: Points, stamp_ns: int | None, output: Output) -> Output:
            said = steps.say(cloud, stamp_ns, output)
            if said.diagnostics is None or len(cloud) <= self.most_points:
                return said
            size = f"{len(cloud)} points, expected at most {self.most_points}"
            return replace(said, diagnostics=Diagnostics({**said.diagnostics.errors, "lidar size": size}))

        return replace(steps, say=say)
