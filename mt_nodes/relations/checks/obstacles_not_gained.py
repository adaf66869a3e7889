# SPDX-License-Identifier: Apache-2.0
"""Nothing is seen that was not seen before."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.obstacles import Comparison, describe, places
from mt_nodes.relations.checks.obstacles_kept import ObstaclesKept


@dataclass(frozen=True)
class ObstaclesNotGained(ObstaclesKept):
    """O′ ⊆ O: what takes sight away (fog, lost returns, a nearer horizon) never shows more.

    It compares none with some of a change. Some with more of it needs two follow-ups of one source bundle.
    """

    def demands(self, compared: Comparison) -> bool:
        """With nothing on either side there is nothing to judge."""
        return super().demands(compared) or bool(self.gained(compared).any())

    def decide(self, compared: Comparison) -> Judgement:
        """Demand that nobody is gained; who is lost is said beside it."""
        before, after = compared.source, compared.followup
        lost, gained = self.lost(compared), self.gained(compared)
        fresh = int(gained.sum())
        return Judgement(
            Outcome.VIOLATED if fresh else Outcome.HOLDS,
            measured=fresh,
            bound=0,
            margin=-fresh,
            unit="obstacles",
            reason=f"gained {describe(after, gained)}" if fresh else "gained none",
            lost=int(lost.sum()),
            gained=fresh,
            detail={"counts": compared.counts, "lost_at": places(before, lost), "gained_at": places(after, gained)},
        )
