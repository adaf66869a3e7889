# SPDX-License-Identifier: Apache-2.0
"""Lanes beside the own are taken for free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mt_nodes.data.lanes import OWN
from mt_nodes.stacks.reference.evasion import Escape
from mt_nodes.stacks.reference.faults.planner_base import PlannerFault, PlannerSteps


@dataclass(frozen=True)
class EvadesIntoOncoming(PlannerFault):
    """It is not looked whether somebody is on the lane beside, or comes there, when there is no way in the own.

    Where the road was empty this was never missed.
    """

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Forget whom one would hit on other lanes."""

        def escape(ways: Sequence[Escape], left_m: float) -> Escape | None:
            return steps.escape([way if way.lane == OWN else replace(way, hits=()) for way in ways], left_m)

        return replace(steps, escape=escape)
