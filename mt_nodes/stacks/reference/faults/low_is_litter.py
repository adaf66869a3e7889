# SPDX-License-Identifier: Apache-2.0
"""Small things are no reason to brake."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.planner_base import PlannerFault, PlannerSteps, Situation


@dataclass(frozen=True)
class LowIsLitter(PlannerFault):
    """What is not as high as a grown person is taken for litter and driven over: children as well."""

    height_m: float = param(1.35, low=0.1, high=3.0, unit="m", help="what is lower does not count")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Drop what is lower."""

        def look(situation: Situation) -> Situation:
            seen = steps.look(situation)
            return replace(seen, objects=seen.objects.take(seen.objects.size_m[:, 2] >= self.height_m))

        return replace(steps, look=look)
