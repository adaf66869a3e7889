# SPDX-License-Identifier: Apache-2.0
"""Everyone who was seen in the picture is still seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.boxes import BoxCheck, BoxComparison, describe, edges


@dataclass(frozen=True)
class BoxesKept(BoxCheck):
    """Each demanded box of the source has a box of its own in the follow-up, where the mutation leaves or takes it.

    Partners overlap by ``min_iou`` at least and are found by the Hungarian method. What is gained is told beside it.
    """

    def decide(self, compared: BoxComparison) -> Judgement:
        """Demand every box by itself."""
        before, after = compared.source, compared.followup
        bound = int(compared.demanded.sum())
        if not bound:
            reason = f"no box of {self.least_height_px:g} px or more with a score of {self.score_high:g} or more"
            return Judgement(Outcome.NOT_APPLICABLE, reason=reason, unit="boxes")
        lost = compared.demanded & (compared.partner < 0)
        new = after.score >= self.score_high
        new[compared.partner[compared.partner >= 0]] = False
        missing = int(np.count_nonzero(lost))
        return Judgement(
            Outcome.VIOLATED if missing else Outcome.HOLDS,
            measured=bound - missing,
            bound=bound,
            margin=-missing,
            unit="boxes",
            reason=f"lost {describe(before, lost)}" if missing else f"kept all {bound}",
            lost=missing,
            gained=int(np.count_nonzero(new)),
            detail={"lost_px": edges(before, lost), "gained_px": edges(after, new)},
        )
