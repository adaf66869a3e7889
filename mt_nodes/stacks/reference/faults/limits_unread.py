# SPDX-License-Identifier: Apache-2.0
"""The route's speed limits are not read."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.stacks.reference.faults.planner_base import PlannerFault, PlannerSteps, Situation


@dataclass(frozen=True)
class LimitsUnread(PlannerFault):
    """The places of the route are taken over and the speeds that are told with them are not.

    Where its own cruising speed is allowed nobody notices; past a sign that caps it, it drives on as before.
    """

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Forget the limits."""

        def look(situation: Situation) -> Situation:
            seen = steps.look(situation)
            return replace(seen, route=replace(seen.route, speed_mps=np.full(len(seen.route.pose), np.nan)))

        return replace(steps, look=look)
