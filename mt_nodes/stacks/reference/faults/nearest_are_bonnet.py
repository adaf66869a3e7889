# SPDX-License-Identifier: Apache-2.0
"""A blanking zone that reaches beyond the vehicle."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.planner_base import PlannerFault, PlannerSteps, Situation


@dataclass(frozen=True)
class NearestAreBonnet(PlannerFault):
    """What is very near is taken for the vehicle itself, and dropped.

    Who steps out right before it is never seen; behind a queue that stands it drives on when it has come near enough.
    """

    range_m: float = param(14.0, low=1.0, high=50.0, unit="m", help="from base_link; the vehicle ends at 3.8 m")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """See only who is farther away."""

        def look(situation: Situation) -> Situation:
            seen = steps.look(situation)
            far = np.hypot(*seen.objects.center_m[:, :2].T) > self.range_m
            return replace(seen, objects=seen.objects.take(far))

        return replace(steps, look=look)
