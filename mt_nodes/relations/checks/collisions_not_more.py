# SPDX-License-Identifier: Apache-2.0
"""The ego hits no more."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.controls import at_most
from mt_nodes.relations.checks.trace_check import TraceCheck
from mt_nodes.relations.world_changes.base import WorldEffects
from mt_nodes.world.drive.driven import ScenarioTrace


@dataclass(frozen=True)
class CollisionsNotMore(TraceCheck):
    """The follow-up's ego hits no more of those that both worlds have, and nobody new; or harder, if that is asked."""

    faster_by_at_most_mps: float = param(
        1000.0, low=0.0, high=1000.0, unit="m/s", help="by how much faster it may hit whom the source hits, too"
    )

    def judge_drives(self, source: ScenarioTrace, followup: ScenarioTrace, effects: WorldEffects) -> Judgement:
        """Count whom the follow-up hits beyond the source."""
        before = {c.name: c.closing_mps for c in source.trace.collisions}
        worse = [
            c.name
            for c in followup.trace.collisions
            if c.name not in before or c.closing_mps > before[c.name] + self.faster_by_at_most_mps
        ]
        hit = ", ".join(sorted(before)) or "nobody"
        reason = f"the source hits {hit}, the follow-up {', '.join(followup.hit) or 'nobody'}"
        gone = len(set(before) - set(followup.hit))
        return at_most(float(len(worse)), 0.0, "collisions", reason, lost=len(worse), gained=gone)
