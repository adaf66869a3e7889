# SPDX-License-Identifier: Apache-2.0
"""An obstacle stays what it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.obstacles import Comparison, ObstacleCheck, describe, places


@dataclass(frozen=True)
class ClassStable(ObstacleCheck):
    """Each demanded obstacle that the follow-up shows has the class that it had.

    One that is lost has no class: that is for ``obstacles_kept``.
    """

    unknown_agrees: bool = param(False, help="'unknown' agrees with every class")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.per_category:
            raise UsageError("per_category pairs obstacles of one class only: no change of class could be seen")

    def decide(self, compared: Comparison) -> Judgement:
        """Compare the classes of partners."""
        before, after = compared.pairs
        if not len(before):
            return Judgement(Outcome.NOT_APPLICABLE, reason="no demanded obstacle has a partner", unit="obstacles")
        changed = before.label != after.label
        if self.unknown_agrees:
            changed &= (before.label != "unknown") & (after.label != "unknown")
        wrong = int(np.count_nonzero(changed))
        became = f", now {', '.join(after.label[changed][:3].tolist())}"
        return Judgement(
            Outcome.VIOLATED if wrong else Outcome.HOLDS,
            measured=wrong,
            bound=0,
            margin=-wrong,
            unit="obstacles",
            reason=describe(before, changed) + became if wrong else f"all {len(before)} keep their class",
            detail={"counts": compared.counts, "changed_at": places(after, changed)},
        )
