# SPDX-License-Identifier: Apache-2.0
"""The ego keeps as far from everybody."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.controls import at_most, nothing_to_judge
from mt_nodes.relations.checks.trace_check import TraceCheck
from mt_nodes.relations.world_changes.base import WorldEffects
from mt_nodes.world.drive.clearance import least_m
from mt_nodes.world.drive.driven import ScenarioTrace


@dataclass(frozen=True)
class ClearanceNotLess(TraceCheck):
    """The least distance between the ego's outline and anybody's is no smaller, but for an allowance.

    Who is in one of the two worlds only is left out, and so is whom the source leaves more room than ``matters_m``.
    """

    by_at_most_m: float = param(0.3, low=0.0, high=100.0, unit="m", help="by how much it may be smaller")
    matters_m: float = param(20.0, low=0.1, high=1000.0, unit="m", help="who is farther off does not matter")

    def judge_drives(self, source: ScenarioTrace, followup: ScenarioTrace, effects: WorldEffects) -> Judgement:
        """Compare the smallest distances, one actor after the other; the worst counts."""
        before, after = least_m(source), least_m(followup)
        both = {name: before[name] - after[name] for name in before if name in after and before[name] < self.matters_m}
        if not both:
            return nothing_to_judge(
                f"the source comes within {self.matters_m:g} m of nobody that both worlds have", "m"
            )
        worst = max(sorted(both), key=lambda name: both[name])
        reason = f"{worst}: {before[worst]:.2f} m in the source, {after[worst]:.2f} m in the follow-up"
        return at_most(both[worst], self.by_at_most_m, "m", reason)
