# SPDX-License-Identifier: Apache-2.0
"""Checks of 2D boxes in an image, and their shared code."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.image_boxes import areas, iou, pair, shared, warped
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.data.output_traits import OutputTraits
from mt_nodes.data.outputs import ImageBoxes, Output
from mt_nodes.data.verdict import SCORE_FALLS, Judgement, Outcome
from mt_nodes.relations.checks.base import at_least, nothing_to_judge
from mt_nodes.relations.checks.scored_check import (
    ScoredCheck,
    described_falls,
    described_unreported,
    of_classes,
    score_falls,
)

Rows = npt.NDArray[np.intp]
_NAMED = 3
#: Largest share of a box that an added object may cover: a person occluded by a quarter is still visible enough.
_COVERED = 0.25
#: Largest share of a box whose depth may be in doubt, where the change depends on depth (assumed, as for covers).
IN_DOUBT = 0.25


@dataclass(frozen=True, eq=False)
class BoxComparison:
    """Two outputs for one image, and which boxes belong together.

    Attributes:
        source, followup: every box; the source's where it is expected after the mutation.
        demanded: (M,) source boxes that the follow-up must contain.
        partner: (M,) the row of the same object in the follow-up, -1 if there is none.
        added: boxes of the objects that the mutation added to the image. visible: (V,) visible share of each.
        doubtful: (M,) source boxes that were demanded if the depth within them were known well enough for the change.
    """

    source: ImageBoxes
    followup: ImageBoxes
    demanded: Mask
    partner: Rows
    added: ImageBoxes
    visible: Floats
    doubtful: Mask


@dataclass(frozen=True)
class BoxCheck(ScoredCheck):
    """Base of checks that compare 2D boxes in an image.

    A box is demanded if it is high enough, lies wholly in the picture (before and after a mutation that moves the
    picture), is not occluded by an object that the mutation added, and the change of no more than a quarter of it
    depends on a depth that is not known (``Effects.doubtful_depth``).
    """

    needs: ClassVar[tuple[str, ...]] = ("boxes",)
    scored: ClassVar[str] = "boxes"

    min_iou: float = param(0.4, low=0.01, high=1.0, help="overlap (intersection over union) of boxes of one object")
    least_height_px: float = param(48.0, low=0.0, unit="px", help="lower boxes are not demanded")
    label: str = param("", help="only boxes of this class count; empty: all")
    per_category: bool = param(False, help="an object must keep its class")

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Judge one pair; NOT_APPLICABLE if nothing is demanded."""
        detections = (source.boxes, followup.boxes)
        for name, boxes in zip(("source", "follow-up"), detections, strict=True):
            if boxes is None:
                return Judgement(Outcome.ERROR, reason=f"the {name} output has no boxes")
        image = image_of(bundle, detections[0])  # type: ignore[arg-type]
        if image is None:
            return Judgement(Outcome.ERROR, reason=f"bundle {bundle.index} has no image that boxes could be in")
        return self.decide(self.compare(detections[0], detections[1], effects, image))  # type: ignore[arg-type]

    @abstractmethod
    def decide(self, compared: BoxComparison) -> Judgement:
        """Judge the comparison; NOT_APPLICABLE if nothing is demanded."""

    def compare(self, source: ImageBoxes, followup: ImageBoxes, effects: Effects, image: Image) -> BoxComparison:
        """Return two outputs for one image side by side."""
        height, width = _size(image)
        before, after = self._of_class(source), self._of_class(followup)
        inside, doubtful = _within(before, width, height), _in_doubt(before, effects, image.topic)
        if image.topic in effects.image_transforms:
            before = warped(before, effects.image_transforms[image.topic])
            inside &= _within(before, width, height)
            doubtful |= _in_doubt(before, effects, image.topic)
        boxes = [box for box in effects.image_boxes if box.topic == image.topic]
        added = ImageBoxes.make(before.frame_id, None, [b.box_px for b in boxes], [b.label for b in boxes])
        high = np.asarray(before.box_px[:, 3] - before.box_px[:, 1] >= self.least_height_px)
        sure = before.score >= self.thresholds.high
        partner = self._partners(before, after, sure)
        demanded = sure & high & inside & ~hidden(before, added)
        visible = np.array([b.visible for b in boxes])
        return BoxComparison(before, after, demanded & ~doubtful, partner, added, visible, demanded & doubtful)

    def _partners(self, before: ImageBoxes, after: ImageBoxes, sure: Mask) -> Rows:
        """Return each source box's partner (M,): high scores choose first, boxes below the low score get none."""
        partner, free = np.full(len(before), -1), after.score >= self.thresholds.low
        for chooses in (sure, ~sure & (before.score >= self.thresholds.low)):
            rows, left = np.flatnonzero(chooses), np.flatnonzero(free)
            paired, taken = pair(before.take(rows), after.take(left), self.min_iou, self.per_category)
            partner[rows[paired]], free[left[taken]] = left[taken], False
        return partner

    def _of_class(self, boxes: ImageBoxes) -> ImageBoxes:
        return boxes.take(boxes.label == self.label) if self.label else boxes


def image_of(bundle: Bundle, boxes: ImageBoxes) -> Image | None:
    """Return the image that boxes belong to: that of their frame, or else the only one."""
    named = [image for image in bundle.images if image.frame_id == boxes.frame_id]
    if named:
        return named[0]
    return bundle.images[0] if len(bundle.images) == 1 else None


def describe(boxes: ImageBoxes, rows: Mask) -> str:
    """Describe boxes by class and position: ``pedestrian at (374, 270) px, 90 px high``; beyond a few, by number."""
    chosen = boxes.take(rows)
    texts = [
        f"{label} at ({(x0 + x1) / 2:.0f}, {(y0 + y1) / 2:.0f}) px, {y1 - y0:.0f} px high"
        for label, (x0, y0, x1, y1) in zip(chosen.label[:_NAMED].tolist(), chosen.box_px[:_NAMED].tolist(), strict=True)
    ]
    more = len(chosen) - len(texts)
    return ", ".join(texts) + (f" and {more} more" if more else "")


def edges(boxes: ImageBoxes, rows: Mask) -> list[list[Any]]:
    """Return [x0, y0, x1, y1, class] of boxes, rounded to tenths of a pixel."""
    chosen = boxes.take(rows)
    return [[*box, label] for box, label in zip(chosen.box_px.round(1).tolist(), chosen.label.tolist(), strict=True)]


def _within(boxes: ImageBoxes, width: int, height: int) -> Mask:
    low, high = boxes.box_px[:, :2], boxes.box_px[:, 2:]
    return np.asarray((low >= -0.5).all(axis=1) & (high <= (width - 0.5, height - 0.5)).all(axis=1))


def _in_doubt(boxes: ImageBoxes, effects: Effects, topic: str) -> Mask:
    """Return the boxes (M,) with too much in them whose depth, which the change depends on, is not known."""
    if topic not in effects.doubtful_depth:
        return np.zeros(len(boxes), dtype=bool)
    return np.asarray(effects.doubtful_depth[topic].shares(boxes.box_px) > IN_DOUBT)


def hidden(boxes: ImageBoxes, added: ImageBoxes) -> Mask:
    """Return which boxes (M,) an added one may occlude: it covers a large part of them."""
    if not len(added) or not len(boxes):
        return np.zeros(len(boxes), dtype=bool)
    return np.asarray((shared(boxes.box_px, added.box_px) > _COVERED * areas(boxes.box_px)[:, None]).any(axis=1))


def whole(box_px: Sequence[float], image: Image) -> bool:
    """Return whether a box (x0, y0, x1, y1) does not reach an edge of an image, which would cut it off."""
    (height, width), (x0, y0, x1, y1) = _size(image), box_px
    return x0 > 0.0 and y0 > 0.0 and x1 < width - 1.0 and y1 < height - 1.0


def _size(image: Image) -> tuple[int, int]:
    if image.compressed is None:
        return image.pixels.shape[0], image.pixels.shape[1]
    from mt_nodes.data.images.codecs import decode  # only a compressed image needs it

    return decode(image).size


@dataclass(frozen=True)
class BoxesKept(BoxCheck):
    """Each demanded box of the source has its own box in the follow-up, where the mutation leaves it.

    Partners overlap by at least ``min_iou`` and are assigned by the Hungarian method. New boxes are reported beside it.
    """

    def decide(self, compared: BoxComparison) -> Judgement:
        """Judge every demanded box."""
        before, after = compared.source, compared.followup
        bound, doubtful = int(compared.demanded.sum()), int(compared.doubtful.sum())
        if not bound and doubtful:
            reason = f"the depth in each of {doubtful} boxes is not known well enough for this change"
            return nothing_to_judge(f"{reason}: {describe(before, compared.doubtful)}", "boxes")
        if not bound:
            reason = f"no box of {self.least_height_px:g} px or more with a score of {self.thresholds.high:g} or more"
            return nothing_to_judge(reason, "boxes")
        lost = compared.demanded & (compared.partner < 0)
        new = after.score >= self.thresholds.high
        new[compared.partner[compared.partner >= 0]] = False
        missing = int(np.count_nonzero(lost))
        falls = self._falls(before, after, lost)
        return at_least(
            bound - missing,
            bound,
            "boxes",
            (f"lost {describe(before, lost)}{described_falls(falls)}" if missing else f"kept all {bound}")
            + (f"; {doubtful} more not judged: their depth is not known well enough" if doubtful else ""),
            lost=missing,
            gained=int(np.count_nonzero(new)),
            detail={
                "lost_px": edges(before, lost),
                "gained_px": edges(after, new),
                **({SCORE_FALLS: falls} if falls else {}),
                **({"doubtful_px": edges(before, compared.doubtful)} if doubtful else {}),
            },
        )

    def _falls(self, before: ImageBoxes, after: ImageBoxes, lost: Mask) -> list[list[float]]:
        """Return the scores of lost boxes, before and after; 0 if the follow-up has no box there at any score."""
        if not lost.any() or (before.score == 1.0).all():  # the stack gives none
            return []
        unsure = after.take(after.score < self.thresholds.low)
        rows, partners = pair(before.take(lost), unsure, self.min_iou, self.per_category)
        left = np.zeros(int(lost.sum()))
        left[rows] = unsure.score[partners]
        return score_falls(before.score[lost], left)


#: A box that overlaps one of the source this much has not moved.
_UNMOVED_IOU = 0.7


F = TypeVar("F", bound="BoxFound")


@dataclass(frozen=True)
class BoxFound(BoxesKept):
    """Each object that the mutation adds to the image is detected in the follow-up.

    The box overlaps the object by at least ``found_iou``, more than it overlaps any box of the source, and is none of
    the source's boxes, which stand for their own objects only. Objects with a visible share below ``least_visible``, or
    lower than ``least_height_px``, are not demanded. ``detail.objects`` lists [height in px, found, class], for recall
    by size.

    If nothing was added, as by control and sham, the source's own boxes must be found again; ``label`` names the class
    that the mutation adds. A source without such boxes leaves nothing to demand.
    """

    demands_of_itself: ClassVar[bool] = True

    classes: tuple[str, ...] = param(
        (), help="classes that the stack reports, others are not demanded; not given: as the stack file's classes say"
    )
    found_iou: float = param(0.3, low=0.01, high=1.0, help="overlap with the object's own outline's box")
    least_visible: float = param(0.6, low=0.0, high=1.0, help="share of the object that must be in sight")

    def decide(self, compared: BoxComparison) -> Judgement:
        """Demand every visible added object."""
        if not len(compared.added):
            return super().decide(compared)
        objects = compared.added
        height_px = objects.box_px[:, 3] - objects.box_px[:, 1]
        demanded = (compared.visible >= self.least_visible) & (height_px >= self.least_height_px)
        demanded &= (reported := of_classes(objects.label, self.classes))
        if self.label:
            demanded &= objects.label == self.label
        if not demanded.any():
            reason = f"all {len(objects)} objects added are hidden, too small, or of another class"
            if not reported.any():
                reason = described_unreported(objects.label, self.classes)
            return nothing_to_judge(reason, "objects")
        objects = objects.take(demanded)
        found = self._found(objects, compared)
        missing = int((~found).sum())
        rows = zip(height_px[demanded].round(1).tolist(), found.tolist(), objects.label.tolist(), strict=True)
        return at_least(
            len(objects) - missing,
            len(objects),
            "objects",
            f"not found: {describe(objects, ~found)}" if missing else f"found {describe(objects, found)}",
            lost=missing,
            detail={"objects": [list(row) for row in rows], "lost_px": edges(objects, ~found)},
        )

    def of_stack(self: F, traits: OutputTraits) -> F:
        """Return the check with missing thresholds and classes taken from the stack file."""
        return replace(super().of_stack(traits), classes=self.classes or traits.classes)

    def _found(self, objects: ImageBoxes, compared: BoxComparison) -> Mask:
        """Return which objects (V,) are found by a box that belongs to no earlier object."""
        source, followup = compared.source, compared.followup
        answers = followup.score >= self.thresholds.low
        # A source box that an added object occludes may have lost its partner to that object.
        answers[compared.partner[(compared.partner >= 0) & ~hidden(source, compared.added)]] = False
        known = source.take(source.score >= self.thresholds.low)
        before = iou(followup.box_px, known.box_px).max(axis=1, initial=0.0)
        answers &= before < _UNMOVED_IOU
        overlap = iou(objects.box_px, followup.box_px)
        return np.asarray(((overlap >= self.found_iou) & (overlap > before) & answers).any(axis=1))
