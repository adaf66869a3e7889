# SPDX-License-Identifier: Apache-2.0
"""More of a change shows no more than less of it."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.obstacles import Comparison, describe, places
from mt_nodes.relations.checks.obstacles_kept import ObstaclesKept


@dataclass(frozen=True)
class Monotone(ObstaclesKept):
    """O(more) ⊆ O(less): what is seen through more of a change (fog, rain, lost returns) is seen through less of it.

    It compares two follow-ups of one bundle, drawn alike: the relation's ``baseline`` makes the milder one, which the
    source arm is given, and ``mutate`` the stronger one. An obstacle that the stronger shows with a score of
    ``score_high`` or more must have its partner in the milder, with ``score_low`` or more, or lie within what the
    milder's boxes cover. Who is lost on the way is said beside it: that is what more fog is for.

    Control and sham have no baseline: they demand the same of the source itself and the source once more, that nobody
    is gained. How often a stack shows something out of nothing is what its violations are measured against.
    """

    gained_at_most: int = param(0, low=0, high=1000, unit="obstacles", help="obstacles that more of it may show anew")

    def demands(self, compared: Comparison) -> bool:
        """With nothing on either side there is nothing to judge."""
        return super().demands(compared) or bool(self.gained(compared).any())

    def decide(self, compared: Comparison) -> Judgement:
        """Demand that more of the change shows nobody anew."""
        less, more = compared.source, compared.followup
        lost, gained = self.lost(compared), self.gained(compared)
        fresh = int(gained.sum())
        margin = self.gained_at_most - fresh
        return Judgement(
            Outcome.VIOLATED if margin < 0 else Outcome.HOLDS,
            measured=fresh,
            bound=self.gained_at_most,
            margin=margin,
            unit="obstacles",
            reason=f"seen only through more of it: {describe(more, gained)}" if fresh else "more of it shows none anew",
            lost=int(lost.sum()),
            gained=fresh,
            detail={"counts": compared.counts, "lost_at": places(less, lost), "gained_at": places(more, gained)},
        )
