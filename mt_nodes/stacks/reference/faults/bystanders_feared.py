# SPDX-License-Identifier: Apache-2.0
"""Everybody within sight is in the way."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.planner_base import PlannerFault, PlannerSteps, Situation


@dataclass(frozen=True)
class BystandersFeared(PlannerFault):
    """Whoever is ahead makes it slow down, however far beside the road.

    The cone in which people are counted is that of the camera, not the lane.
    """

    range_m: float = param(60.0, low=5.0, high=200.0, unit="m", help="up to which people are counted")
    ahead_deg: float = param(45.0, low=1.0, high=90.0, unit="deg", help="half of the cone")
    slow_mps: float = param(6.0, low=0.5, high=20.0, unit="m/s", help="speed while anybody is in it")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Slow down for anybody in the cone."""

        def cruise_mps(situation: Situation, cruise_mps: float) -> float:
            x, y = situation.objects.center_m[:, :2].T
            feared = (np.hypot(x, y) < self.range_m) & (np.abs(np.arctan2(y, x)) < np.radians(self.ahead_deg))
            wanted = steps.cruise_mps(situation, cruise_mps)
            return min(wanted, self.slow_mps) if feared.any() else wanted

        return replace(steps, cruise_mps=cruise_mps)
