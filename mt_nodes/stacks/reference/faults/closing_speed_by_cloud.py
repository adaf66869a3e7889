# SPDX-License-Identifier: Apache-2.0
"""Metres a cloud for metres a second."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.car_following import Lead
from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverScene, DriverSteps


@dataclass(frozen=True)
class ClosingSpeedByCloud(DriverFault):
    """How fast a gap shrinks is told in metres a cloud and taken for metres a second.

    Time to a collision seems ten times as long, so that an emergency is none before it is over. Behind somebody who
    drives on at the same speed nobody notices.
    """

    clouds_a_second: float = param(10.0, low=1.0, high=100.0, unit="Hz", help="rate of the sensor")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Mistake the unit."""

        def lead(scene: DriverScene) -> Lead | None:
            found = steps.lead(scene)
            return found and replace(found, closing_mps=found.closing_mps / self.clouds_a_second)

        return replace(steps, lead=lead)
