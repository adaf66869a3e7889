# SPDX-License-Identifier: Apache-2.0
"""The object that was put into the picture is seen there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.image_boxes import iou
from mt_nodes.data.outputs import ImageBoxes
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.boxes import BoxComparison, Mask, describe, edges, hidden
from mt_nodes.relations.checks.boxes_kept import BoxesKept

#: A box that overlaps one of the source so much has not moved.
_UNMOVED_IOU = 0.7


@dataclass(frozen=True)
class BoxFound(BoxesKept):
    """Each object that the mutation put into the image has a box of the follow-up around it.

    It overlaps by ``found_iou`` at least, more than it overlaps any box that the source showed, and is none of those:
    who is still in sight answers for himself alone. An object of which less than ``least_visible`` is in sight, or
    that is lower than ``least_height_px``, is not demanded. ``detail.objects`` lists [height in px, found, class], so
    that recall can be told against size.

    Where nothing was added, as by control and sham, it demands that the source's own boxes are found again; ``label``
    names the class that the mutation adds. A source that shows none leaves nothing to demand.
    """

    demands_of_itself: ClassVar[bool] = True

    found_iou: float = param(0.3, low=0.01, high=1.0, help="overlap with the object's own outline's box")
    least_visible: float = param(0.6, low=0.0, high=1.0, help="share of the object that must be in sight")

    def decide(self, compared: BoxComparison) -> Judgement:
        """Demand every added object that can be seen."""
        if not len(compared.added):
            return super().decide(compared)
        objects = compared.added
        height_px = objects.box_px[:, 3] - objects.box_px[:, 1]
        demanded = (compared.visible >= self.least_visible) & (height_px >= self.least_height_px)
        if self.label:
            demanded &= objects.label == self.label
        if not demanded.any():
            reason = f"all {len(objects)} objects added are hidden, too small, or of another class"
            return Judgement(Outcome.NOT_APPLICABLE, reason=reason, unit="objects")
        objects = objects.take(demanded)
        found = self._found(objects, compared)
        missing = int((~found).sum())
        rows = zip(height_px[demanded].round(1).tolist(), found.tolist(), objects.label.tolist(), strict=True)
        return Judgement(
            Outcome.VIOLATED if missing else Outcome.HOLDS,
            measured=len(objects) - missing,
            bound=len(objects),
            margin=-missing,
            unit="objects",
            reason=f"not found: {describe(objects, ~found)}" if missing else f"found {describe(objects, found)}",
            lost=missing,
            detail={"objects": [list(row) for row in rows], "lost_px": edges(objects, ~found)},
        )

    def _found(self, objects: ImageBoxes, compared: BoxComparison) -> Mask:
        """Tell which objects (V,) a box finds that shows nobody who was there before."""
        source, followup = compared.source, compared.followup
        answers = followup.score >= self.score_low
        # Whom an added object hides may have lost his partner to it.
        answers[compared.partner[(compared.partner >= 0) & ~hidden(source, compared.added)]] = False
        known = source.take(source.score >= self.score_low)
        before = iou(followup.box_px, known.box_px).max(axis=1, initial=0.0)
        answers &= before < _UNMOVED_IOU
        overlap = iou(objects.box_px, followup.box_px)
        return np.asarray(((overlap >= self.found_iou) & (overlap > before) & answers).any(axis=1))
