# SPDX-License-Identifier: Apache-2.0
"""Every obstacle that was seen is still seen."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.checks.obstacles import Comparison, ObstacleCheck, alone, describe, places
from mt_nodes.params import param
from mt_nodes.verdict import Judgement, Outcome


@dataclass(frozen=True)
class ObstaclesKept(ObstacleCheck):
    """O ⊆ O′: each demanded obstacle of the source output is in the follow-up output.

    It is there when it has a partner of its own, or when the follow-up's boxes together cover enough of its
    footprint: an obstacle that was split, or merged with another, was not lost.
    """

    coverage: float = param(0.5, low=0.01, high=1.0, help="share of a footprint that counts as covered")

    def decide(self, compared: Comparison) -> Judgement:
        """Demand every obstacle by itself."""
        before, after = compared.source, compared.followup
        answers, known = after.take(after.score >= self.score_low), before.take(before.score >= self.score_low)
        lost = alone(compared.demanded & ~compared.matched, before, answers, self.coverage, self.per_category)
        fresh = compared.new & (after.score >= self.score_high)
        gained = alone(fresh, after, known, self.coverage, self.per_category)
        bound, missing = int(compared.demanded.sum()), int(lost.sum())
        return Judgement(
            Outcome.VIOLATED if missing else Outcome.HOLDS,
            measured=bound - missing,
            bound=bound,
            margin=-missing,
            unit="obstacles",
            reason=f"lost {describe(before, lost)}" if missing else f"kept all {bound}",
            lost=missing,
            gained=int(gained.sum()),
            detail={"counts": compared.counts, "lost_at": places(before, lost), "gained_at": places(after, gained)},
        )
