# SPDX-License-Identifier: Apache-2.0
"""Time by the number of clouds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverSteps


@dataclass(frozen=True)
class CloudsCounted(DriverFault):
    """Speed and steering go on by a fixed step a cloud, whatever the stamps say.

    At the sensor's rate that is right. Where clouds are lost the vehicle brakes later, where they come twice harder.
    """

    step_s: float = param(0.1, low=0.001, high=1.0, unit="s", help="time that a cloud is thought to take")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Take no notice of the time."""
        return replace(steps, elapsed_s=lambda elapsed_s: self.step_s)
