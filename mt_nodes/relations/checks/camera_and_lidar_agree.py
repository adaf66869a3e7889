# SPDX-License-Identifier: Apache-2.0
"""Check that camera and LiDAR agree about an added object."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.association import Association, moved
from mt_nodes.data.effects import Effects
from mt_nodes.data.image_boxes import iou, pair
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.data.output_traits import OutputTraits
from mt_nodes.data.outputs import Detections, ImageBoxes, Output
from mt_nodes.data.transforms import UnknownTransform, move
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import Check, at_most, nothing_to_judge
from mt_nodes.relations.checks.boxes import image_of
from mt_nodes.relations.checks.obstacles import in_boxes

Rows = npt.NDArray[np.intp]
#: The score from which detections and boxes count, where neither relation nor stack file has one.
SCORE_LOW = 0.3


@dataclass(frozen=True)
class CameraAndLidarAgree(Check):
    """An added object that is detected in 3D is detected in the image where it projects to, and the reverse.

    The detection at the added volume, projected with CameraInfo and the transforms, and the box at the added object in
    the image overlap by at least ``min_iou``. If only one of them finds it, they disagree; if neither does, there is
    nothing to compare: ``object_found`` and ``box_found`` demand that it is found. Objects with a visible share in the
    image below ``least_visible`` are not compared.

    If nothing was added, as by control and sham, detections that agree in the source's outputs must agree in the
    follow-up's: each detection of the class that the mutation adds that had a box has one again, as long as it is
    detected. A source without such detections leaves nothing to compare.
    """

    demands_of_itself: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("detections", "boxes")

    min_iou: float = param(0.3, low=0.01, high=1.0, help="overlap of box and projected detection")
    score_low: float | None = param(
        None,
        low=0.0,
        high=1.0,
        help=f"detections and boxes with this score count; not given: low of the stack's `scores`, else {SCORE_LOW}",
    )
    box_score_low: float | None = param(
        None, low=0.0, high=1.0, help="boxes with this score count, where it is another than for detections"
    )
    least_visible: float = param(0.5, low=0.0, high=1.0, help="share of the object that the camera must have in sight")
    background_label: str = param("", help="class of what is added, which control and sham are about; empty: all")

    @property
    def detections_from(self) -> float:
        """The score from which detections count."""
        return SCORE_LOW if self.score_low is None else self.score_low

    @property
    def boxes_from(self) -> float:
        """The score from which boxes count."""
        return self.detections_from if self.box_score_low is None else self.box_score_low

    def of_stack(self, traits: OutputTraits) -> CameraAndLidarAgree:
        """Return the check with missing thresholds taken from the stack file, as far as that has them."""
        if self.score_low is not None:
            return self
        low = {role: traits.scores[role].low if role in traits.scores else SCORE_LOW for role in self.needs}
        box_score_low = low["boxes"] if self.box_score_low is None else self.box_score_low
        return replace(self, score_low=low["detections"], box_score_low=box_score_low)

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Judge one pair."""
        assert source.boxes is not None and followup.boxes is not None
        assert source.detections is not None and followup.detections is not None
        image = image_of(bundle, followup.boxes)
        if image is None:
            return Judgement(Outcome.ERROR, reason=f"bundle {bundle.index} has no image that boxes could be in")
        try:
            if effects.added and effects.image_boxes:
                return self._added(followup.detections, followup.boxes, effects, bundle, image)
            return self._compare_agreement(source, followup, bundle, image)
        except (UnknownTransform, NotApplicable) as error:
            return Judgement(Outcome.NOT_APPLICABLE, reason=str(error))

    def _added(
        self, detections: Detections, boxes: ImageBoxes, effects: Effects, bundle: Bundle, image: Image
    ) -> Judgement:
        """Compare detection and box of every added object; each gets at most one of both, used only once."""
        sure, answers = self._sure(detections), boxes.take(boxes.score >= self.boxes_from)
        volumes = in_boxes(effects.added, sure.frame_id, bundle)
        expected_boxes = [box for box in effects.image_boxes if box.topic == image.topic]
        outlines = ImageBoxes.make(boxes.frame_id, None, [box.box_px for box in expected_boxes])
        objects = ImageBoxes.make(boxes.frame_id, None, self._projected(volumes, bundle, image))
        detected, projected = _partners(Association().pair(volumes, sure)), self._projected(sure, bundle, image)
        found = _partners(pair(outlines, answers, self.min_iou))
        agreed, disagreements = 0, []
        for volume, outline in zip(*pair(objects, outlines, min_iou=0.0), strict=True):
            one, other = detected.get(volume), found.get(outline)
            if expected_boxes[outline].visible < self.least_visible or (one is None and other is None):
                continue
            overlap = (
                0.0 if one is None or other is None else float(iou(projected[[one]], answers.box_px[[other]])[0, 0])
            )
            agreed += overlap >= self.min_iou
            if overlap < self.min_iou:
                disagreements.append(f"{volumes.label[volume]} {_disagreement(one, other, overlap)}")
        return self._judge_counts(agreed, disagreements, "no added object was found by either")

    def _sure(self, detections: Detections) -> Detections:
        return detections.take(detections.score >= self.detections_from)

    def _of_class(self, detections: Detections) -> Mask:
        own = self.background_label.lower()
        return np.asarray((np.char.lower(detections.label) == own) | (own == ""))

    def _compare_agreement(self, source: Output, followup: Output, bundle: Bundle, image: Image) -> Judgement:
        """Compare the agreement in the follow-up with that in the source."""
        assert source.detections is not None and followup.detections is not None
        (before, both), (after, still) = (self._agreeing(output, bundle, image) for output in (source, followup))
        after = self._in_frame(after, before.frame_id, bundle)
        before = before.take(both & self._of_class(before))
        rows, partners = Association().pair(before, after)
        lost = before.label[rows[~still[partners]]].tolist()
        disagreements = [f"{label} had a box and has none" for label in lost]
        return self._judge_counts(len(rows) - len(lost), disagreements, "no detection had a box where it projects to")

    def _agreeing(self, output: Output, bundle: Bundle, image: Image) -> tuple[Detections, Mask]:
        """Return the detections, and which of them (M,) have a box where they project to."""
        assert output.detections is not None and output.boxes is not None
        sure = self._sure(output.detections)
        answers = output.boxes.take(output.boxes.score >= self.boxes_from)
        overlap = iou(self._projected(sure, bundle, image), answers.box_px)
        return sure, np.asarray((overlap >= self.min_iou).any(axis=1))

    def _projected(self, detections: Detections, bundle: Bundle, image: Image) -> Floats:
        """Return the 2D boxes (M, 4) around detections in the picture, of zero area for those out of sight."""
        from mt_nodes.relations.mutations.camera.each_image import View  # OpenCV is for those who ask

        camera = View.of(bundle, image).camera()
        corners = np.array(list(product((-0.5, 0.5), repeat=3)))
        boxes = np.zeros((len(detections), 4))
        to_camera = bundle.transforms.lookup(image.frame_id, detections.frame_id)
        for i in range(len(detections)):
            c, s = np.cos(detections.yaw_rad[i]), np.sin(detections.yaw_rad[i])
            turned = (corners * detections.size_m[i]) @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
            pixels = camera.project(move(to_camera, turned + detections.center_m[i]))
            if np.isfinite(pixels).all():
                edges = np.concatenate([pixels.min(axis=0), pixels.max(axis=0)])
                boxes[i] = np.clip(edges, -0.5, np.tile([camera.width - 0.5, camera.height - 0.5], 2))
        return boxes

    def _judge_counts(self, agreed: int, disagreements: list[str], nothing: str) -> Judgement:
        if not agreed and not disagreements:
            return nothing_to_judge(nothing, "objects")
        wrong = len(disagreements)
        return at_most(
            wrong,
            0,
            "objects",
            "; ".join(disagreements[:3]) if wrong else f"camera and LiDAR agree on all {agreed}",
            lost=wrong,
        )

    def _in_frame(self, detections: Detections, frame_id: str, bundle: Bundle) -> Detections:
        if detections.frame_id == frame_id:
            return detections
        return moved(detections, bundle.transforms.lookup(frame_id, detections.frame_id), frame_id)


def _partners(rows: tuple[Rows, Rows]) -> dict[int, int]:
    """Return for each row of the first the row of the second."""
    return dict(zip(*(column.tolist() for column in rows), strict=True))


def _disagreement(detection: int | None, box: int | None, overlap: float) -> str:
    """Describe how camera and LiDAR disagree about an object that at least one of them found."""
    if detection is not None and box is not None:
        return f"overlaps by {overlap:.2f} only"
    one, other = ("LiDAR", "camera") if box is None else ("camera", "LiDAR")
    return f"found by the {one} alone, not by the {other}"
