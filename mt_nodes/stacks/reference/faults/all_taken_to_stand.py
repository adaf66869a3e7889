# SPDX-License-Identifier: Apache-2.0
"""Nobody is expected to move."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.stacks.reference.faults.planner_base import PlannerFault, PlannerSteps, Situation


@dataclass(frozen=True)
class AllTakenToStand(PlannerFault):
    """Velocities are lost on the way: whoever crosses counts only when he is in the lane already.

    Behind a car that drives it brakes as behind one that stands.
    """

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Take the velocities away."""

        def look(situation: Situation) -> Situation:
            seen = steps.look(situation)
            still = replace(seen.objects, velocity_mps=np.zeros_like(seen.objects.velocity_mps))
            return replace(seen, objects=still)

        return replace(steps, look=look)
