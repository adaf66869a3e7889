# SPDX-License-Identifier: Apache-2.0
"""Where no lane is free it keeps its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.moral_base import MoralFault
from mt_nodes.stacks.reference.faults.planner_base import PlannerSteps
from mt_nodes.stacks.reference.least_harm import Harm


@dataclass(frozen=True)
class KeepsLaneWhoeverIsInIt(MoralFault):
    """Lanes beside its own are asked for one thing only, whether they are free; where none is, it brakes in its lane,
    and nobody counts who is hit there and who would be elsewhere.

    Most planners that evade do so: what cannot be avoided was not in their requirements.
    """

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Count nobody."""

        def harm(hit: Detections) -> Harm:
            return ()

        return replace(steps, harm=harm)
