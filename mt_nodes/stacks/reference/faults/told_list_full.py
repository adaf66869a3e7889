# SPDX-License-Identifier: Apache-2.0
"""A list of so many places."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.planner_base import PlannerFault, PlannerSteps, Situation


@dataclass(frozen=True)
class ToldListFull(PlannerFault):
    """Only so many objects are taken over from the message, in the order in which they come.

    Whoever comes later in it is nobody, be he right before the vehicle.
    """

    places: int = param(4, low=1, high=1000, help="of the list")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Take the first ones."""

        def look(situation: Situation) -> Situation:
            seen = steps.look(situation)
            return replace(seen, objects=seen.objects.take(np.arange(len(seen.objects)) < self.places))

        return replace(steps, look=look)
