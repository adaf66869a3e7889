# SPDX-License-Identifier: Apache-2.0
"""Checks of the set of detected obstacles: none lost, none gained, as many, or removed ones gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import shapely

from mt_nodes.base.arrays import Mask
from mt_nodes.base.params import param
from mt_nodes.data.association import Polygons, accounted_for, covered, footprints, grown, newly_covered
from mt_nodes.data.outputs import Detections
from mt_nodes.data.verdict import SCORE_FALLS, Judgement
from mt_nodes.relations.checks.base import at_least, at_most, nothing_to_judge
from mt_nodes.relations.checks.obstacles import Comparison, ObstacleCheck, Rows, describe, places, touching
from mt_nodes.relations.checks.scored_check import described_falls, score_falls

#: One box stands for at most so many merged neighbours, and at least this share of it must lie in their surroundings.
_MOST_MERGED, _LEAST_ACCOUNTED = 3, 0.5
#: Of a box that the follow-up splits into parts, at least this share must lie in the surroundings of the parts.
_LEAST_PARTS = 0.1


@dataclass(frozen=True)
class ObstaclesKept(ObstacleCheck):
    """O ⊆ O′: each demanded obstacle of the source output is in the follow-up output.

    An obstacle is found if it has a partner of its own, or if the follow-up's boxes together cover enough of its
    footprint: a split or merged obstacle is not lost. A box of the follow-up counts only if half of it lies in the
    surroundings, as wide as the gates of their classes, of at most three neighbours that the source detects or the
    mutation added: a box around half the street stands for nobody. A neighbour's box that covers no more than it did in
    the source does not count either.
    """

    coverage: float = param(0.5, low=0.01, high=1.0, help="share of a footprint that counts as covered")

    def decide(self, compared: Comparison) -> Judgement:
        """Judge every demanded obstacle."""
        before, after = compared.source, compared.followup
        lost, gained = self.lost(compared), self.gained(compared)
        bound, missing = int(compared.demanded.sum()), int(lost.sum())
        falls = self._falls(compared, lost)
        text = f"kept all {bound}"
        if missing:
            text = f"lost {describe(before, lost)}{described_falls(falls)}{self._too_large(compared, lost)}"
        return at_least(
            bound - missing,
            bound,
            "obstacles",
            text,
            lost=missing,
            gained=int(gained.sum()),
            detail={
                "counts": compared.counts,
                "lost_at": places(before, lost),
                "gained_at": places(after, gained),
                **({SCORE_FALLS: falls} if falls else {}),
            },
        )

    def _falls(self, compared: Comparison, lost: Mask) -> list[list[float]]:
        """Return the scores of lost obstacles, before and after; 0 if the follow-up has none there at any score."""
        before, after = compared.source.take(lost), compared.followup
        if not len(before) or (compared.source.score == 1.0).all():  # the stack gives none
            return []
        unsure = after.take(after.score < self.thresholds.low)
        rows, partners = self.associate.pair(before, unsure)
        left = np.zeros(len(before))
        left[rows] = unsure.score[partners]
        return score_falls(before.score, left)

    def lost(self, compared: Comparison) -> Mask:
        """Return which source obstacles (M,) are demanded and missing."""
        before, after = compared.source, compared.followup
        found = compared.demanded & compared.matched
        found[found] = self._answers(compared, compared.partner[found])
        lost = compared.demanded & ~found
        if lost.any():
            answers = self.answers(compared)
            known = np.full(len(after), shapely.Polygon())
            known[compared.partner[compared.matched]] = footprints(before.take(compared.matched))
            lost[lost] = self._uncovered(before.take(lost), after.take(answers), known[answers])
        return lost

    def gained(self, compared: Comparison) -> Mask:
        """Return which follow-up obstacles (K,) of the keep zone with high scores are none of the source's."""
        before, after = compared.source, compared.followup
        new = compared.new & (after.score >= self.thresholds.high)
        if new.any():
            parts = covered(before, grown(after.take(after.score >= self.thresholds.low)), False)
            rows = (before.score >= self.thresholds.low) & (parts >= _LEAST_PARTS)
            known = np.full(len(before), shapely.Polygon())
            known[compared.matched] = footprints(after.take(compared.partner[compared.matched]))
            new[new] = self._uncovered(after.take(new), before.take(rows), known[rows])
        return new

    def _uncovered(self, obstacles: Detections, covering: Detections, known: Polygons) -> Mask:
        """Return which obstacles (M,) were neither split nor merged."""
        return newly_covered(obstacles, covering, known, self.per_category) < self.coverage

    def answers(self, compared: Comparison) -> Mask:
        """Return which follow-up obstacles (K,) have high enough scores, and are small enough, to count."""
        return self._answers(compared, np.arange(len(compared.followup)))

    def _answers(self, compared: Comparison, rows: Rows) -> Mask:
        """Return which of these follow-up obstacles (R,) have high enough scores, and are small enough, to count."""
        boxes, known = compared.followup.take(rows), compared.source.score >= self.thresholds.low
        around = np.concatenate([footprints(grown(o)) for o in (compared.source.take(known), compared.added)])
        shares = accounted_for(boxes, around, _MOST_MERGED, _LEAST_ACCOUNTED)
        return np.asarray((boxes.score >= self.thresholds.low) & (shares >= _LEAST_ACCOUNTED))

    def _too_large(self, compared: Comparison, lost: Mask) -> str:
        """Explain an obstacle that counts as lost because the box there is too large."""
        large = (compared.followup.score >= self.thresholds.low) & ~self.answers(compared)
        where = touching(compared.source.take(lost), footprints(compared.followup.take(large)))
        return "; a box that reaches far beyond what it covers stands for nobody" if where.any() else ""


@dataclass(frozen=True)
class ObstaclesEqual(ObstaclesKept):
    """O = O′: no detected obstacle is lost, and none is gained.

    Lost and gained are as in ``obstacles_kept``, which demands the first half only; obstacles that split, merge or
    stand in a volume that the mutation added do not count as gained.
    """

    def demands(self, compared: Comparison) -> bool:
        """A new obstacle is a difference, too."""
        return super().demands(compared) or bool(self.gained(compared).any())

    def decide(self, compared: Comparison) -> Judgement:
        """Demand that no obstacle is lost or gained."""
        before, after = compared.source, compared.followup
        lost, gained = self.lost(compared), self.gained(compared)
        missing, fresh = int(lost.sum()), int(gained.sum())
        falls = self._falls(compared, lost)
        texts = [f"lost {describe(before, lost)}{described_falls(falls)}"] * bool(missing)
        texts += [f"gained {describe(after, gained)}"] * bool(fresh)
        return at_most(
            missing + fresh,
            0,
            "obstacles",
            "; ".join(texts) or f"kept all {int(compared.demanded.sum())}, gained none",
            lost=missing,
            gained=fresh,
            detail={
                "counts": compared.counts,
                "lost_at": places(before, lost),
                "gained_at": places(after, gained),
                **({SCORE_FALLS: falls} if falls else {}),
            },
        )


@dataclass(frozen=True)
class ObstaclesNotGained(ObstaclesKept):
    """O′ ⊆ O: a change that reduces visibility (fog, lost returns, a shorter range) never adds obstacles.

    It compares no change with some of it. Comparing some with more of it needs two follow-ups of one source bundle.
    """

    def demands(self, compared: Comparison) -> bool:
        """Without obstacles on either side there is nothing to judge."""
        return super().demands(compared) or bool(self.gained(compared).any())

    def decide(self, compared: Comparison) -> Judgement:
        """Demand that no obstacle is gained; lost ones are reported beside it."""
        before, after = compared.source, compared.followup
        lost, gained = self.lost(compared), self.gained(compared)
        fresh = int(gained.sum())
        return at_most(
            fresh,
            0,
            "obstacles",
            f"gained {describe(after, gained)}" if fresh else "gained none",
            lost=int(lost.sum()),
            gained=fresh,
            detail={"counts": compared.counts, "lost_at": places(before, lost), "gained_at": places(after, gained)},
        )


@dataclass(frozen=True)
class Monotone(ObstaclesKept):
    """O(more) ⊆ O(less): what is detected with more of a change (fog, rain, lost returns) is detected with less, too.

    It compares two follow-ups of one bundle with the same draw: the relation's ``baseline`` makes the milder one, which
    the source arm gets, and ``mutate`` the stronger one. An obstacle in the stronger one with a score of at least
    ``score_high`` must have its partner in the milder one, with at least ``score_low``, or lie within the milder one's
    boxes. Lost obstacles are expected and reported beside it.

    Control and sham have no baseline: they compare the source with the source again and demand that no obstacle is
    gained. This rate of spurious detections is what violations are compared with.
    """

    gained_at_most: int = param(0, low=0, high=1000, unit="obstacles", help="obstacles that more of it may show anew")

    def demands(self, compared: Comparison) -> bool:
        """Without obstacles on either side there is nothing to judge."""
        return super().demands(compared) or bool(self.gained(compared).any())

    def decide(self, compared: Comparison) -> Judgement:
        """Demand that more of the change adds no obstacle."""
        less, more = compared.source, compared.followup
        lost, gained = self.lost(compared), self.gained(compared)
        fresh = int(gained.sum())
        return at_most(
            fresh,
            self.gained_at_most,
            "obstacles",
            f"seen only through more of it: {describe(more, gained)}" if fresh else "more of it shows none anew",
            lost=int(lost.sum()),
            gained=fresh,
            detail={"counts": compared.counts, "lost_at": places(less, lost), "gained_at": places(more, gained)},
        )


@dataclass(frozen=True)
class RemovedGone(ObstaclesNotGained):
    """No obstacle that stood wholly in a volume that the mutation removed has a partner in the follow-up.

    It finds results that a stack keeps from a former frame or makes up. An empty result must be published: a silent
    follow-up arm is a violation if the stack file promises that it publishes when empty.

    If nothing was removed, as by control and sham, it demands that no obstacle is gained: this rate of spurious
    detections is the baseline for its ghosts.
    """

    silence_means_no_obstacles: ClassVar[bool] = False

    def demands(self, compared: Comparison) -> bool:
        """Lost obstacles matter only if nothing was removed."""
        return len(compared.removed) > 0 or super().demands(compared)

    def decide(self, compared: Comparison) -> Judgement:
        """Demand that all removed obstacles are gone."""
        if not len(compared.removed):
            return super().decide(compared)
        before = compared.source
        removed = self._removed(compared)
        if not removed.any():
            reason = "no obstacle of the source stood wholly in a removed volume"
            return nothing_to_judge(reason, "obstacles")
        still = removed & compared.matched
        ghosts, bound = int(still.sum()), int(removed.sum())
        return at_most(
            ghosts,
            0,
            "obstacles",
            f"removed and still seen: {describe(before, still)}" if ghosts else f"all {bound} removed are gone",
            gained=ghosts,
            detail={"counts": compared.counts, "gained_at": places(before, still)},
        )

    def _removed(self, compared: Comparison) -> Mask:
        away = shapely.union_all(compared.removed)
        inside = shapely.covers(away, footprints(compared.source))
        return np.asarray(inside & (compared.source.score >= self.thresholds.high))


@dataclass(frozen=True)
class ObstacleCountNotLess(ObstacleCheck):
    """|O| ≤ |O′|, as in Zhou and Sun's table: a new obstacle anywhere offsets a lost one.

    The demanded obstacles are compared with their partners (wherever those are, so that crossing an outline loses none)
    plus the new obstacles of the keep zone. ``per_category`` counts each class separately.
    """

    def decide(self, compared: Comparison) -> Judgement:
        """Demand at least as many obstacles as before."""
        before, after = compared.source, compared.followup
        lost = compared.demanded & ~compared.matched
        margin, bound, category = self._worst(compared, lost)
        counts = f"{category}: {bound} before, {bound + margin} after"
        return at_least(
            bound + margin,
            bound,
            "obstacles",
            f"{counts}; lost {describe(before, lost)}" if margin < 0 else counts,
            lost=int(lost.sum()),
            gained=int(compared.new.sum()),
            detail={
                "counts": compared.counts,
                "lost_at": places(before, lost),
                "gained_at": places(after, compared.new),
            },
        )

    def _worst(self, compared: Comparison, lost: Mask) -> tuple[int, int, str]:
        """Return margin, bound and name of the worst category; there is one unless classes count separately."""
        demanded = _labels(compared.source, compared.demanded, self.per_category)
        missing = _labels(compared.source, lost, self.per_category)
        new = _labels(compared.followup, compared.new, self.per_category)
        return min((new.count(c) - missing.count(c), demanded.count(c), c) for c in sorted(set(demanded)))


def _labels(obstacles: Detections, rows: Mask, apart: bool) -> list[str]:
    labels: list[str] = obstacles.label[rows].tolist()
    return labels if apart else ["obstacles"] * int(np.count_nonzero(rows))
