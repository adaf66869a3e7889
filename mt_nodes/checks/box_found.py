# SPDX-License-Identifier: Apache-2.0
"""The object that was put into the picture is seen there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.checks.boxes import BoxComparison, Mask, describe, edges
from mt_nodes.checks.boxes_kept import BoxesKept
from mt_nodes.image_boxes import iou
from mt_nodes.outputs import ImageBoxes
from mt_nodes.params import param
from mt_nodes.verdict import Judgement, Outcome


@dataclass(frozen=True)
class BoxFound(BoxesKept):
    """Each object that the mutation put into the image has a box of the follow-up around it.

    It overlaps by ``found_iou`` at least, and is none that the source showed at this place already. An object of
    which less than ``least_visible`` is in sight, or that is lower than ``least_height_px``, is not demanded.
    ``detail.objects`` lists [height in px, found, class], so that recall can be told against size.

    Where nothing was added, as by control and sham, it demands that the source's own boxes are found again.
    """

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
        followup = compared.followup
        answers = followup.score >= self.score_low
        # What showed there before is not what was added: a box that hardly moved.
        stays = np.flatnonzero(compared.partner >= 0)
        alike = iou(compared.source.box_px[stays], followup.box_px[compared.partner[stays]]).diagonal()
        answers[compared.partner[stays[alike >= _UNMOVED_IOU]]] = False
        overlap = iou(objects.box_px, followup.take(answers).box_px)
        return np.asarray((overlap >= self.found_iou).any(axis=1))


_UNMOVED_IOU = 0.7
