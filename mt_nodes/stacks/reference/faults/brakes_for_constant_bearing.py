# SPDX-License-Identifier: Apache-2.0
"""The seafarers' rule on a road."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.car_following import Lead
from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverScene, DriverSteps


@dataclass(frozen=True)
class BrakesForConstantBearing(DriverFault):
    """Whoever stays at the same bearing is taken for one on a collision course, however far outside the lane.

    It holds for who comes nearer as well. Parked cars and oncoming traffic pass, and nothing happens. Whoever rides
    alongside, a lane and more away, makes the vehicle brake.
    """

    slowest_radps: float = param(0.05, low=0.0, high=1.0, unit="rad/s", help="a bearing that changes less is constant")
    clouds: int = param(4, low=1, high=100, help="in so many clouds one must have been seen")
    farthest_m: float = param(15.0, low=1.0, high=100.0, unit="m", help="who is farther away does not count")
    front_m: float = param(2.5, low=0.0, high=10.0, unit="m", help="the vehicle's front ahead of base_link")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Follow the nearest of those in the lane and those at a constant bearing."""
        seen: dict[str, int] = {}

        def lead(scene: DriverScene) -> Lead | None:
            names = scene.obstacles.track_id.tolist()
            counted = {name: seen.get(name, 0) + 1 for name in names}
            seen.clear()
            seen.update(counted)
            known = np.array([seen[name] >= self.clouds for name in names], dtype=bool)
            return self._nearer(steps.lead(scene), scene, known)

        return replace(steps, lead=lead)

    def _nearer(self, found: Lead | None, scene: DriverScene, known: npt.NDArray[np.bool_]) -> Lead | None:
        (x, y), (vx, vy) = scene.obstacles.center_m[:, :2].T, scene.obstacles.velocity_mps[:, :2].T
        distance = np.hypot(x, y)
        constant = np.abs(x * vy - y * vx) < self.slowest_radps * distance**2
        rows = np.flatnonzero(known & constant & (x > self.front_m) & (distance < self.farthest_m))
        if not len(rows):
            return found
        row = int(rows[np.argmin(distance[rows])])
        gap_m = max(0.0, float(distance[row]) - self.front_m)
        return found if found is not None and found.gap_m <= gap_m else Lead(gap_m, 0.0, row)
