# SPDX-License-Identifier: Apache-2.0
"""What checks of boxes in images share: which are demanded, hysteresis, partners."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.image_boxes import areas, pair, shared, warped
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.data.outputs import ImageBoxes, Output
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import Check

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
_NAMED = 3
#: Share of a box that an object put before it may cover: of a person hidden to a quarter enough is left to be seen.
_COVERED = 0.25


@dataclass(frozen=True, eq=False)
class BoxComparison:
    """Two outputs about one image, and what became of which box.

    Attributes:
        source, followup: every box; the source's where it is expected after the mutation.
        demanded: (M,) source boxes that the follow-up must show.
        partner: (M,) the row of the same object in the follow-up, -1 where there is none.
        added: what the mutation put into the image, as boxes. visible: (V,) share of each that is in sight.
    """

    source: ImageBoxes
    followup: ImageBoxes
    demanded: Mask
    partner: Rows
    added: ImageBoxes
    visible: npt.NDArray[np.float64]


@dataclass(frozen=True)
class BoxCheck(Check):
    """Base of checks that compare boxes in an image.

    Demanded is what is high enough to be seen well, lies wholly in the picture (where the mutation moves the picture:
    before and after), and is not covered by something that the mutation put before it.
    """

    needs: ClassVar[tuple[str, ...]] = ("boxes",)

    min_iou: float = param(0.4, low=0.01, high=1.0, help="overlap (intersection over union) of boxes of one object")
    score_high: float = param(0.9, low=0.0, high=1.0, help="a source box with this score is demanded")
    score_low: float = param(0.5, low=0.0, high=1.0, help="a follow-up box with this score answers")
    least_height_px: float = param(48.0, low=0.0, unit="px", help="lower boxes are not demanded")
    label: str = param("", help="only boxes of this class count; empty: all")
    per_category: bool = param(False, help="an object must keep its class")

    def __post_init__(self) -> None:
        if self.score_low > self.score_high:
            raise UsageError(f"score_low {self.score_low:g} is above score_high {self.score_high:g}")

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Judge one pair; nothing demanded is NOT_APPLICABLE."""
        seen = (source.boxes, followup.boxes)
        for name, boxes in zip(("source", "follow-up"), seen, strict=True):
            if boxes is None:
                return Judgement(Outcome.ERROR, reason=f"the {name} output has no boxes")
        image = image_of(bundle, seen[0])  # type: ignore[arg-type]
        if image is None:
            return Judgement(Outcome.ERROR, reason=f"bundle {bundle.index} has no image that boxes could be in")
        return self.decide(self._compare(seen[0], seen[1], effects, image))  # type: ignore[arg-type]

    @abstractmethod
    def decide(self, compared: BoxComparison) -> Judgement:
        """Judge what is compared; with nothing to demand NOT_APPLICABLE."""

    def _compare(self, source: ImageBoxes, followup: ImageBoxes, effects: Effects, image: Image) -> BoxComparison:
        height, width = _size(image)
        before, after = self._of_class(source), self._of_class(followup)
        inside = _within(before, width, height)
        if image.topic in effects.image_transforms:
            before = warped(before, effects.image_transforms[image.topic])
            inside &= _within(before, width, height)
        boxes = [box for box in effects.image_boxes if box.topic == image.topic]
        added = ImageBoxes.make(before.frame_id, None, [b.box_px for b in boxes], [b.label for b in boxes])
        high = np.asarray(before.box_px[:, 3] - before.box_px[:, 1] >= self.least_height_px)
        sure = before.score >= self.score_high
        partner = self._partners(before, after, sure)
        demanded = sure & high & inside & ~hidden(before, added)
        return BoxComparison(before, after, demanded, partner, added, np.array([b.visible for b in boxes]))

    def _partners(self, before: ImageBoxes, after: ImageBoxes, sure: Mask) -> Rows:
        """Return each source box's partner (M,): the sure ones choose first, what is below the low score has none."""
        partner, free = np.full(len(before), -1), after.score >= self.score_low
        for chooses in (sure, ~sure & (before.score >= self.score_low)):
            rows, left = np.flatnonzero(chooses), np.flatnonzero(free)
            paired, taken = pair(before.take(rows), after.take(left), self.min_iou, self.per_category)
            partner[rows[paired]], free[left[taken]] = left[taken], False
        return partner

    def _of_class(self, boxes: ImageBoxes) -> ImageBoxes:
        return boxes.take(boxes.label == self.label) if self.label else boxes


def image_of(bundle: Bundle, boxes: ImageBoxes) -> Image | None:
    """Return the image that boxes are about: of their frame, or else the only one."""
    named = [image for image in bundle.images if image.frame_id == boxes.frame_id]
    if named:
        return named[0]
    return bundle.images[0] if len(bundle.images) == 1 else None


def describe(boxes: ImageBoxes, rows: Mask) -> str:
    """Name boxes by class and place: ``pedestrian at (374, 270) px, 90 px high``, the rest by number."""
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


def hidden(boxes: ImageBoxes, added: ImageBoxes) -> Mask:
    """Tell which boxes (M,) an added one may hide: it covers a good part of them."""
    if not len(added) or not len(boxes):
        return np.zeros(len(boxes), dtype=bool)
    return np.asarray((shared(boxes.box_px, added.box_px) > _COVERED * areas(boxes.box_px)[:, None]).any(axis=1))


def _size(image: Image) -> tuple[int, int]:
    if image.compressed is None:
        return image.pixels.shape[0], image.pixels.shape[1]
    from mt_nodes.data.images.codecs import decode  # only a compressed image needs it

    return decode(image).size
