# SPDX-License-Identifier: Apache-2.0
"""Keeps away from one side only."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.planner_base import PlannerFault, PlannerSteps, Situation


@dataclass(frozen=True)
class ShiesFromTheRight(PlannerFault):
    """While somebody is beside the road ahead on the right, it drives more to the left; for the left it does nothing.

    Parked cars and the kerb are on the right where it was made. Where traffic keeps to the left they are not.
    """

    aside_m: float = param(0.7, low=0.1, high=3.0, unit="m", help="how far to the left")
    range_m: float = param(40.0, low=5.0, high=100.0, unit="m", help="how far ahead it looks")
    beside_m: float = param(8.0, low=2.0, high=20.0, unit="m", help="and how far to the right")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Look to the right."""

        def aside_m(situation: Situation) -> float:
            x, y = situation.objects.center_m[:, :2].T
            beside = (x > 0.0) & (x < self.range_m) & (y < -1.5) & (y > -self.beside_m)
            return steps.aside_m(situation) + (self.aside_m if np.any(beside) else 0.0)

        return replace(steps, aside_m=aside_m)
