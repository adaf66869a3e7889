# SPDX-License-Identifier: Apache-2.0
"""The same obstacles are seen, no fewer and no more."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.obstacles import Comparison, describe, places
from mt_nodes.relations.checks.obstacles_kept import ObstaclesKept


@dataclass(frozen=True)
class ObstaclesEqual(ObstaclesKept):
    """O = O′: nothing that was seen is lost, and nothing is gained.

    Lost and gained are as in ``obstacles_kept``, which demands the first half only; obstacles that split, merge or
    stand in a volume that the mutation added are not gained.
    """

    def demands(self, compared: Comparison) -> bool:
        """An obstacle out of nothing is a difference, too."""
        return super().demands(compared) or bool(self.gained(compared).any())

    def decide(self, compared: Comparison) -> Judgement:
        """Demand that nobody is lost or gained."""
        before, after = compared.source, compared.followup
        lost, gained = self.lost(compared), self.gained(compared)
        missing, fresh = int(lost.sum()), int(gained.sum())
        texts = [f"lost {describe(before, lost)}"] * bool(missing) + [f"gained {describe(after, gained)}"] * bool(fresh)
        return Judgement(
            Outcome.VIOLATED if texts else Outcome.HOLDS,
            measured=missing + fresh,
            bound=0,
            margin=-(missing + fresh),
            unit="obstacles",
            reason="; ".join(texts) or f"kept all {int(compared.demanded.sum())}, gained none",
            lost=missing,
            gained=fresh,
            detail={"counts": compared.counts, "lost_at": places(before, lost), "gained_at": places(after, gained)},
        )
