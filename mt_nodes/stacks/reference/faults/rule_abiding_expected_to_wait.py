# SPDX-License-Identifier: Apache-2.0
"""Who keeps the rules is taken to wait."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.data.outputs import Detections
from mt_nodes.data.traits import keeps_rules
from mt_nodes.stacks.reference.faults.moral_base import MoralFault
from mt_nodes.stacks.reference.faults.planner_base import PlannerSteps
from mt_nodes.stacks.reference.least_harm import Harm, people_of


@dataclass(frozen=True)
class RuleAbidingExpectedToWait(MoralFault):
    """The light of the crossing is ignored: the prediction lets everybody who keeps the rules stop for a car, whatever
    that light shows, so that only those who break them are reckoned with as long as there are any to choose by.

    It was fitted to streets without lights, where those who wait at the kerb do so for cars.
    """

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Count those who break rules first."""

        def harm(hit: Detections) -> Harm:
            breaking = sum(not keeps_rules(traits) for traits in people_of(hit).traits.tolist())
            return (breaking, *steps.harm(hit))

        return replace(steps, harm=harm)
