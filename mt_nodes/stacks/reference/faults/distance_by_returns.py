# SPDX-License-Identifier: Apache-2.0
"""A distance that is a number of points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.car_following import Lead
from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverScene, DriverSteps, returns


@dataclass(frozen=True)
class DistanceByReturns(DriverFault):
    """How near somebody is, is told by how many points they give: the onset of braking, too.

    Points of a surface fall with the square of its distance, so a cyclist is followed as one should. Whatever takes
    points away, rain, fog or a lesser sensor, moves everybody farther off.
    """

    at_10m: float = param(170.0, low=1.0, high=1e6, help="points of one who is 10 m from the LiDAR")
    front_m: float = param(2.5, low=0.0, high=10.0, unit="m", help="the vehicle's front ahead of it")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Put the lead at the distance that its points tell."""

        def lead(scene: DriverScene) -> Lead | None:
            found = steps.lead(scene)
            if found is None:
                return None
            distance_m = 10.0 * sqrt(self.at_10m / max(1.0, float(returns(scene.obstacles)[found.row])))
            return replace(found, gap_m=max(0.0, distance_m - self.front_m))

        return replace(steps, lead=lead)
