# SPDX-License-Identifier: Apache-2.0
"""Never more than comfortable brakes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverSteps


@dataclass(frozen=True)
class BrakesForComfortOnly(DriverFault):
    """What a passenger finds pleasant limits the brakes, whoever stands before the vehicle.

    Behind others that is enough. It slows down for a person at once, and needs four seconds for what takes one.
    """

    most_mps2: float = param(2.0, low=0.1, high=10.0, unit="m/s²", help="largest deceleration")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Cut what is wanted."""

        def eased(wanted_mps2: float, before_mps2: float, most_change_mps2: float) -> float:
            return max(-self.most_mps2, steps.eased(wanted_mps2, before_mps2, most_change_mps2))

        return replace(steps, eased=eased)
