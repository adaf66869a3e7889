# SPDX-License-Identifier: Apache-2.0
"""Always past on the left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.evasion import Escape
from mt_nodes.stacks.reference.faults.planner_base import PlannerFault, PlannerSteps


@dataclass(frozen=True)
class EvadesToTheLeft(PlannerFault):
    """Who cannot be braked for is passed on the left, whoever is there, and whether that way can be driven or not.

    On a test track nobody ever was there.
    """

    aside_m: float = param(2.0, low=0.1, high=5.0, unit="m", help="how far it goes aside")
    past_m: float = param(20.0, low=1.0, high=100.0, unit="m", help="how far it stays there")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Ask for no way."""

        def escape(ways: Sequence[Escape], left_m: float) -> Escape:
            return Escape(left_m + self.aside_m, self.past_m)

        return replace(steps, escape=escape)
