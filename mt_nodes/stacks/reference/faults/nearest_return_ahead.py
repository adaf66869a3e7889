# SPDX-License-Identifier: Apache-2.0
"""A distance to whatever returns first."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.car_following import Lead
from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverScene, DriverSteps


@dataclass(frozen=True)
class NearestReturnAhead(DriverFault):
    """The distance to whom it follows is that of the nearest point in the lane, be it of an insect or a drop.

    Without anybody to follow nothing happens. Behind somebody one stray return is a reason to brake.
    """

    half_width_m: float = param(
        1.0, low=0.1, high=5.0, unit="m", help="so near to straight ahead a point is in the lane"
    )
    height_m: tuple[float, float] = param((0.4, 2.0), low=-5.0, high=10.0, unit="m", help="heights that count")
    front_m: float = param(2.5, low=0.0, high=10.0, unit="m", help="the vehicle's front ahead of base_link")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Take the lead for as near as the nearest point."""

        def lead(scene: DriverScene) -> Lead | None:
            found = steps.lead(scene)
            if found is None:
                return None
            x, y, z = scene.cloud[:, 0], scene.cloud[:, 1], scene.cloud[:, 2]
            low, high = self.height_m
            ahead = x[(x > self.front_m) & (np.abs(y) < self.half_width_m) & (z > low) & (z < high)]
            return replace(found, gap_m=min(found.gap_m, float(ahead.min(initial=np.inf)) - self.front_m))

        return replace(steps, lead=lead)
