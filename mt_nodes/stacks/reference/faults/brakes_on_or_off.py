# SPDX-License-Identifier: Apache-2.0
"""Brakes like a switch."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverSteps


@dataclass(frozen=True)
class BrakesOnOrOff(DriverFault):
    """Brakes are on, fully, or off: nothing eases what lies between.

    Behind somebody who drives steadily they are hardly needed. Whoever is suddenly nearer makes the vehicle jerk, when
    they come on and when they are let go.
    """

    on_mps2: float = param(2.0, low=0.1, high=10.0, unit="m/s²", help="wanted deceleration from which they are on")
    full_mps2: float = param(8.0, low=1.0, high=12.0, unit="m/s²", help="deceleration when they are")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Ease nothing, and brake fully or by what little is wanted."""

        def eased(wanted_mps2: float, before_mps2: float, most_change_mps2: float) -> float:
            return -self.full_mps2 if wanted_mps2 < -self.on_mps2 else wanted_mps2

        return replace(steps, eased=eased)
