# SPDX-License-Identifier: Apache-2.0
"""A worse view makes nobody surer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.obstacles import Comparison, ObstacleCheck, describe


@dataclass(frozen=True)
class ConfidenceNotRaised(ObstacleCheck):
    """The scores of the demanded obstacles that the follow-up shows do not rise, on average or each.

    Only obstacles that both arms saw are compared, so that losing the unsure ones does not raise the average.
    """

    by_at_most: float = param(0.05, low=0.0, high=1.0, help="rise of the score that is still none")
    of: str = param("mean", choices=("mean", "each"), help="the average of all rises, or the largest")

    def decide(self, compared: Comparison) -> Judgement:
        """Compare the scores of partners."""
        before, after = compared.pairs
        if not len(before):
            return Judgement(Outcome.NOT_APPLICABLE, reason="no demanded obstacle has a partner", unit="score")
        if (before.score == 1.0).all() and (after.score == 1.0).all():
            return Judgement(Outcome.NOT_APPLICABLE, reason="every score is 1: the stack gives none", unit="score")
        rise = after.score - before.score
        measured = float(rise.mean() if self.of == "mean" else rise.max())
        who = "" if self.of == "mean" else f" of {describe(before, np.arange(len(rise)) == rise.argmax())}"
        margin = self.by_at_most - measured
        return Judgement(
            Outcome.VIOLATED if margin < 0.0 else Outcome.HOLDS,
            measured=measured,
            bound=self.by_at_most,
            margin=margin,
            unit="score",
            reason=f"the {self.of if not who else 'score'}{who} of {len(rise)} obstacles rose by {measured:+.3f}",
            detail={"counts": compared.counts, "mean": [round(float(d.score.mean()), 4) for d in (before, after)]},
        )
