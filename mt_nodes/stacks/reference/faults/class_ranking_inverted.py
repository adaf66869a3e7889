# SPDX-License-Identifier: Apache-2.0
"""A table of priorities, read from the wrong end."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.moral_base import MoralFault
from mt_nodes.stacks.reference.faults.planner_base import PlannerSteps
from mt_nodes.stacks.reference.least_harm import Harm, animals_of


@dataclass(frozen=True)
class ClassRankingInverted(MoralFault):
    """Animals are spared before people: classes are ranked by a number, and who wrote the table let 1 be the first to
    be spared, while who reads it takes the largest.

    Among people it decides as it should.
    """

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Count animals first."""

        def harm(hit: Detections) -> Harm:
            return (len(animals_of(hit)), *steps.harm(hit))

        return replace(steps, harm=harm)
