# SPDX-License-Identifier: Apache-2.0
"""An integral over a time in which nothing was seen."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverSteps


@dataclass(frozen=True)
class IntegratorNotReset(DriverFault):
    """After a pause the steering's integral goes on: the last error is taken to have lasted all the time.

    A clock that is set, or a sensor that was away for some seconds, and the vehicle swerves when it is back.
    """

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Integrate over the pause; a jump back counts as one ahead."""

        def after_pause(integral: float, off_m: float, pause_s: float) -> float:
            return integral + off_m * abs(pause_s)

        return replace(steps, after_pause=after_pause)
