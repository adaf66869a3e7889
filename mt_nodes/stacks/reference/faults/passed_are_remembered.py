# SPDX-License-Identifier: Apache-2.0
"""Memory that outlives a restart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mt_nodes.stacks.reference.faults.planner_base import PlannerFault, PlannerSteps, Situation
from mt_nodes.stacks.reference.traffic import Conflict

_PASSED: set[str] = set()


@dataclass(frozen=True)
class PassedAreRemembered(PlannerFault):
    """Who was passed once is never reckoned with again, by the id of his track; a restart does not forget it.

    Ids are given anew in every drive: in the second one somebody else bears the number.
    """

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Keep the ids where all planners of the process share them."""

        def look(situation: Situation) -> Situation:
            seen = steps.look(situation)
            behind = seen.objects.center_m[:, 0] < -2.0
            _PASSED.update(name for name in seen.objects.track_id[behind].tolist() if name)
            return seen

        def reckon(situation: Situation, conflicts: Sequence[Conflict]) -> Sequence[Conflict]:
            names = situation.objects.track_id
            return [c for c in steps.reckon(situation, conflicts) if str(names[c.lead.row]) not in _PASSED]

        return replace(steps, look=look, reckon=reckon)
