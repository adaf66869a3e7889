# SPDX-License-Identifier: Apache-2.0
"""The object that was put there is seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import shapely

from mt_nodes.association import covered, footprints
from mt_nodes.checks.obstacles import Comparison, Mask, describe, places, touching
from mt_nodes.checks.obstacles_kept import ObstaclesKept
from mt_nodes.outputs import Detections
from mt_nodes.params import param
from mt_nodes.recall import OBJECTS, OBJECTS_BY
from mt_nodes.verdict import Judgement, Outcome

_BY_RANGE = {"name": "range", "unit": "m", "bin": 10.0}


@dataclass(frozen=True)
class ObjectFound(ObstaclesKept):
    """Each volume that the mutation added in the keep zone has an obstacle of the follow-up.

    One of its own within the gate of the object's class, or boxes that together cover enough of its footprint: an
    object that was merged with its neighbour was found. One that the effects call occluded, by at least
    ``occluded_share`` of its footprint, is not demanded. ``detail.objects`` lists [distance from the region frame's
    origin in m, found, class], from which the report tells recall against range.

    Where nothing was added, as by control and sham, it demands that the source's own obstacles are found again: how
    often a stack misses what it has seen is what its misses are measured against.
    """

    occluded_share: float = param(0.5, low=0.01, high=1.0, help="share of a footprint that counts as hidden")

    def demands(self, compared: Comparison) -> bool:
        """What the source saw matters only where nothing was added."""
        return len(compared.added) > 0 or super().demands(compared)

    def decide(self, compared: Comparison) -> Judgement:
        """Demand every added object that can be seen."""
        if not len(compared.added):
            return super().decide(compared)
        demanded = compared.added_kept & ~self._hidden(compared)
        if not demanded.any():
            reason = f"all {len(compared.added)} objects added are occluded or outside the keep zone"
            return Judgement(Outcome.NOT_APPLICABLE, reason=reason, unit="objects")
        objects = compared.added.take(demanded)
        found = self._found(objects, compared)
        missing = int((~found).sum())
        range_m = np.linalg.norm(objects.center_m[:, :2], axis=1)
        rows = [
            [round(r, 3), f, label]
            for r, f, label in zip(range_m.tolist(), found.tolist(), objects.label.tolist(), strict=True)
        ]
        return Judgement(
            Outcome.VIOLATED if missing else Outcome.HOLDS,
            measured=len(objects) - missing,
            bound=len(objects),
            margin=-missing,
            unit="objects",
            reason=f"not found: {describe(objects, ~found)}" if missing else f"found {describe(objects, found)}",
            lost=missing,
            detail={
                "counts": compared.counts,
                OBJECTS: rows,
                OBJECTS_BY: _BY_RANGE,
                "lost_at": places(objects, ~found),
            },
        )

    def _found(self, objects: Detections, compared: Comparison) -> Mask:
        followup = compared.followup
        answers = followup.score >= self.score_low
        found = covered(objects, followup.take(answers), self.per_category) >= self.coverage
        # What was there before, and was not taken away, is not what was added.
        stays = compared.matched & ~touching(compared.source, compared.removed)
        answers[compared.partner[stays]] = False
        found[self.associate.pair(objects, followup.take(answers))[0]] = True
        return found

    def _hidden(self, compared: Comparison) -> Mask:
        own = footprints(compared.added)
        hidden = shapely.area(shapely.intersection(own, shapely.union_all(compared.occluded)))
        area = shapely.area(own)
        share = np.divide(hidden, area, out=np.zeros(len(own)), where=area > 0.0)
        return np.asarray(share >= self.occluded_share)
