# SPDX-License-Identifier: Apache-2.0
"""An obstacle keeps its track."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.obstacles import Comparison, ObstacleCheck, describe, places


@dataclass(frozen=True)
class TrackIdentityStable(ObstacleCheck):
    """Each demanded obstacle that the follow-up shows bears the track id that it bears in the source.

    Both arms have seen the whole episode up to here, so an id that switched, was handed to another obstacle or began
    anew in one arm alone differs from the other's. It holds a stack to numbering tracks by what it sees and nothing
    else. A switch that both arms make alike is not seen: a check is given one instant, not the frames before.
    """

    def decide(self, compared: Comparison) -> Judgement:
        """Compare the ids of partners."""
        before, after = compared.pairs
        if not len(before) or not (before.track_id != "").any():
            reason = "no demanded obstacle has a partner" if not len(before) else "the stack gives no track ids"
            return Judgement(Outcome.NOT_APPLICABLE, reason=reason, unit="tracks")
        changed = (before.track_id != "") & (before.track_id != after.track_id)
        wrong, bound = int(np.count_nonzero(changed)), int(np.count_nonzero(before.track_id != ""))
        ids = [
            f"{a or '(none)'} for {b}" for a, b in zip(after.track_id[changed], before.track_id[changed], strict=True)
        ]
        return Judgement(
            Outcome.VIOLATED if wrong else Outcome.HOLDS,
            measured=bound - wrong,
            bound=bound,
            margin=-wrong,
            unit="tracks",
            reason=f"{describe(before, changed)}: id {', '.join(ids[:3])}" if wrong else f"all {bound} keep their id",
            detail={"counts": compared.counts, "changed_at": places(after, changed)},
        )
