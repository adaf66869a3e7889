# SPDX-License-Identifier: Apache-2.0
"""Every obstacle that was seen is still seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import shapely

from mt_nodes.base.params import param
from mt_nodes.data.association import Polygons, accounted_for, covered, footprints, grown, newly_covered
from mt_nodes.data.outputs import Detections
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.obstacles import Comparison, Mask, ObstacleCheck, describe, places, touching

#: A box stands for so many neighbours that were merged at the most, and so much of it must lie in their surroundings.
_MOST_MERGED, _LEAST_ACCOUNTED = 3, 0.5
#: Of a box of which the follow-up shows parts, so much must lie in the surroundings of these.
_LEAST_PARTS = 0.1


@dataclass(frozen=True)
class ObstaclesKept(ObstacleCheck):
    """O ⊆ O′: each demanded obstacle of the source output is in the follow-up output.

    It is there when it has a partner of its own, or when the follow-up's boxes together cover enough of its
    footprint: an obstacle that was split, or merged with another, was not lost. A box of the follow-up stands for
    somebody only if half of it lies in the surroundings, as wide as the gates of their classes, of at most three
    neighbours that the source shows or the mutation added: a box around half the street has kept nobody. Nor has a
    neighbour's box that covers no more than it did in the source.
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
            reason=f"lost {describe(before, lost)}{self._too_large(compared, lost)}"
            if missing
            else f"kept all {bound}",
            lost=missing,
            gained=int(gained.sum()),
            detail={"counts": compared.counts, "lost_at": places(before, lost), "gained_at": places(after, gained)},
        )

    def lost(self, compared: Comparison) -> Mask:
        """Tell which source obstacles (M,) are demanded and not there."""
        before, after = compared.source, compared.followup
        answers, there = self.answers(compared), compared.matched.copy()
        there[there] = answers[compared.partner[there]]
        lost = compared.demanded & ~there
        if lost.any():
            known = np.full(len(after), shapely.Polygon())
            known[compared.partner[compared.matched]] = footprints(before.take(compared.matched))
            lost[lost] = self._uncovered(before.take(lost), after.take(answers), known[answers])
        return lost

    def gained(self, compared: Comparison) -> Mask:
        """Tell which sure follow-up obstacles (K,) of the keep zone are none of the source's."""
        before, after = compared.source, compared.followup
        new = compared.new & (after.score >= self.score_high)
        if new.any():
            parts = covered(before, grown(after.take(after.score >= self.score_low)), False)
            rows = (before.score >= self.score_low) & (parts >= _LEAST_PARTS)
            known = np.full(len(before), shapely.Polygon())
            known[compared.matched] = footprints(after.take(compared.partner[compared.matched]))
            new[new] = self._uncovered(after.take(new), before.take(rows), known[rows])
        return new

    def _uncovered(self, obstacles: Detections, by: Detections, known: Polygons) -> Mask:
        """Tell which obstacles (M,) were neither split nor merged."""
        return newly_covered(obstacles, by, known, self.per_category) < self.coverage

    def answers(self, compared: Comparison) -> Mask:
        """Tell which follow-up obstacles (K,) are sure enough, and not too large, to stand for somebody."""
        sure, known = compared.followup.score >= self.score_low, compared.source.score >= self.score_low
        around = np.concatenate([footprints(grown(o)) for o in (compared.source.take(known), compared.added)])
        return np.asarray(sure & (accounted_for(compared.followup, around, _MOST_MERGED) >= _LEAST_ACCOUNTED))

    def _too_large(self, compared: Comparison, lost: Mask) -> str:
        """Say that somebody is lost where a box is that was too large to stand for him."""
        large = (compared.followup.score >= self.score_low) & ~self.answers(compared)
        where = touching(compared.source.take(lost), footprints(compared.followup.take(large)))
        return "; a box that reaches far beyond what it covers stands for nobody" if where.any() else ""
