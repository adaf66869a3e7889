# SPDX-License-Identifier: Apache-2.0
"""A time budget that everybody shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.planner_base import PlannerFault, PlannerSteps, Situation
from mt_nodes.stacks.reference.traffic import Conflict


@dataclass(frozen=True)
class LooksAheadByCount(PlannerFault):
    """The more objects there are, the less far ahead conflicts are looked for, so that the period is kept.

    Each costs the same, wherever it is: a crowd behind a fence makes it brake late.
    """

    seconds: float = param(8.0, low=0.5, high=60.0, unit="s", help="looked ahead when there is one object")
    most: int = param(2, low=1, high=1000, help="objects that still cost nothing")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Let go of whom it would reach later than that."""

        def reckon(situation: Situation, conflicts: Sequence[Conflict]) -> Sequence[Conflict]:
            speed = max(situation.odometry.speed_mps, 1.0)
            ahead_s = self.seconds / max(1, len(situation.objects) - self.most + 1)
            return [c for c in steps.reckon(situation, conflicts) if c.lead.gap_m / speed <= ahead_s]

        return replace(steps, reckon=reckon)
