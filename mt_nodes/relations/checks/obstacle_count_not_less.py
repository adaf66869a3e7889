# SPDX-License-Identifier: Apache-2.0
"""No fewer obstacles are seen than before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.data.outputs import Detections
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.obstacles import Comparison, Mask, ObstacleCheck, describe, places


@dataclass(frozen=True)
class ObstacleCountNotLess(ObstacleCheck):
    """|O| ≤ |O′|, as in Zhou and Sun's table: a new obstacle makes up for a lost one, wherever it is.

    The demanded obstacles are counted against their partners (wherever those are, so that nobody is lost by crossing an
    outline) and the new obstacles of the keep zone. ``per_category`` counts each class by itself.
    """

    def decide(self, compared: Comparison) -> Judgement:
        """Demand as many obstacles as there were."""
        before, after = compared.source, compared.followup
        lost = compared.demanded & ~compared.matched
        margin, bound, category = self._worst(compared, lost)
        counts = f"{category}: {bound} before, {bound + margin} after"
        return Judgement(
            Outcome.VIOLATED if margin < 0 else Outcome.HOLDS,
            measured=bound + margin,
            bound=bound,
            margin=margin,
            unit="obstacles",
            reason=f"{counts}; lost {describe(before, lost)}" if margin < 0 else counts,
            lost=int(lost.sum()),
            gained=int(compared.new.sum()),
            detail={
                "counts": compared.counts,
                "lost_at": places(before, lost),
                "gained_at": places(after, compared.new),
            },
        )

    def _worst(self, compared: Comparison, lost: Mask) -> tuple[int, int, str]:
        """Return margin, bound and name of the worst category; one holds all unless they are apart."""
        demanded = _labels(compared.source, compared.demanded, self.per_category)
        missing = _labels(compared.source, lost, self.per_category)
        new = _labels(compared.followup, compared.new, self.per_category)
        return min((new.count(c) - missing.count(c), demanded.count(c), c) for c in sorted(set(demanded)))


def _labels(obstacles: Detections, rows: Mask, apart: bool) -> list[str]:
    labels: list[str] = obstacles.label[rows].tolist()
    return labels if apart else ["obstacles"] * int(np.count_nonzero(rows))
