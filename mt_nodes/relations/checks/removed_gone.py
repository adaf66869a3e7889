# SPDX-License-Identifier: Apache-2.0
"""What was taken away is not seen any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import shapely

from mt_nodes.data.association import footprints
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.obstacles import Comparison, Mask, describe, places
from mt_nodes.relations.checks.obstacles_not_gained import ObstaclesNotGained


@dataclass(frozen=True)
class RemovedGone(ObstaclesNotGained):
    """No obstacle that stood wholly in a volume that the mutation removed has a partner in the follow-up.

    A result kept from a former frame, or made up, is seen by this. That there is nothing must be said: the
    follow-up arm's silence is a violation where the stack promises to publish when empty.

    Where nothing was removed, as by control and sham, it demands that nothing is gained: how often a stack sees what
    is not there is what its ghosts are measured against.
    """

    silence_is_nothing_seen: ClassVar[bool] = False

    def demands(self, compared: Comparison) -> bool:
        """What stays matters only where nothing was removed."""
        return len(compared.removed) > 0 or super().demands(compared)

    def decide(self, compared: Comparison) -> Judgement:
        """Demand that everything removed is gone."""
        if not len(compared.removed):
            return super().decide(compared)
        before = compared.source
        removed = self._removed(compared)
        if not removed.any():
            reason = "no obstacle of the source stood wholly in a removed volume"
            return Judgement(Outcome.NOT_APPLICABLE, reason=reason, unit="obstacles")
        still = removed & compared.matched
        ghosts, bound = int(still.sum()), int(removed.sum())
        return Judgement(
            Outcome.VIOLATED if ghosts else Outcome.HOLDS,
            measured=ghosts,
            bound=0,
            margin=-ghosts,
            unit="obstacles",
            reason=f"removed and still seen: {describe(before, still)}" if ghosts else f"all {bound} removed are gone",
            gained=ghosts,
            detail={"counts": compared.counts, "gained_at": places(before, still)},
        )

    def _removed(self, compared: Comparison) -> Mask:
        away = shapely.union_all(compared.removed)
        inside = shapely.covers(away, footprints(compared.source))
        return np.asarray(inside & (compared.source.score >= self.score_high))
