# SPDX-License-Identifier: Apache-2.0
"""A speed limit by how much there is to see."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.planner_base import PlannerFault, PlannerSteps, Situation


@dataclass(frozen=True)
class CruiseByCount(PlannerFault):
    """The fewer objects there are, the faster it drives: an empty list is an empty street.

    Things that nobody can collide with, far beside the road or behind, count like people on it.
    """

    each_mps: float = param(1.0, low=0.0, high=5.0, unit="m/s", help="by which each object makes it slower")
    empty_mps: float = param(4.0, low=0.0, high=20.0, unit="m/s", help="by which it is faster without any")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Count the list."""

        def cruise_mps(situation: Situation, cruise_mps: float) -> float:
            wanted = steps.cruise_mps(situation, cruise_mps)
            return max(2.0, wanted + self.empty_mps - self.each_mps * len(situation.objects))

        return replace(steps, cruise_mps=cruise_mps)
