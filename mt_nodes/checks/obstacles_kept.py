# SPDX-License-Identifier: Apache-2.0
"""Every obstacle that was seen is still seen."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.checks.obstacles import Comparison, Mask, ObstacleCheck, alone, describe, places
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
        lost, gained = self.lost(compared), self.gained(compared)
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

    def lost(self, compared: Comparison) -> Mask:
        """Tell which source obstacles (M,) are demanded and not there."""
        before, after = compared.source, compared.followup
        answers = after.take(after.score >= self.score_low)
        return alone(compared.demanded & ~compared.matched, before, answers, self.coverage, self.per_category)

    def gained(self, compared: Comparison) -> Mask:
        """Tell which sure follow-up obstacles (K,) of the keep zone are none of the source's."""
        before, after = compared.source, compared.followup
        known = before.take(before.score >= self.score_low)
        return alone(compared.new & (after.score >= self.score_high), after, known, self.coverage, self.per_category)
