# SPDX-License-Identifier: Apache-2.0
"""Only what has a known class is there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.planner_base import PlannerFault, PlannerSteps, Situation


@dataclass(frozen=True)
class StrangersIgnored(PlannerFault):
    """Objects of classes that nobody thought of are dropped: a table says how each class moves, and these lack there.

    Animals, and whoever moves on something unusual, are run over.
    """

    classes: tuple[str, ...] = param(("car", "truck", "bus", "pedestrian", "cyclist"), help="that are in the table")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Drop the others."""

        def look(situation: Situation) -> Situation:
            seen = steps.look(situation)
            return replace(seen, objects=seen.objects.take(np.isin(seen.objects.label, self.classes)))

        return replace(steps, look=look)
