# SPDX-License-Identifier: Apache-2.0
"""What was put before camera and LiDAR is the same thing to both."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.association import Association, moved
from mt_nodes.data.effects import Effects
from mt_nodes.data.image_boxes import iou, pair
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.data.outputs import Detections, ImageBoxes, Output
from mt_nodes.data.transforms import UnknownTransform, move
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import Check, at_most, nothing_to_judge
from mt_nodes.relations.checks.boxes import image_of
from mt_nodes.relations.checks.obstacles import in_boxes

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]


@dataclass(frozen=True)
class CameraAndLidarAgree(Check):
    """An added object that is found in space is found in the image where it projects to, and the other way around.

    The detection at the added volume, projected through CameraInfo and the transforms, and the box at the added
    object in the image overlap by ``min_iou`` at least. Found by one of the two alone, they disagree; found by neither,
    there is nothing to compare: whether it should have been found is for ``object_found`` and ``box_found``. Objects of
    which less than ``least_visible`` is in sight of the camera are not asked for.

    Where nothing was added, as by control and sham, what agreed in the source's answers must agree in the follow-up's:
    each detection of the class that the mutation adds that had a box has one again, as long as it is found. A source
    that shows none leaves nothing to compare.
    """

    demands_of_itself: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("detections", "boxes")

    min_iou: float = param(0.3, low=0.01, high=1.0, help="overlap of box and projected detection")
    score_low: float = param(0.3, low=0.0, high=1.0, help="detections and boxes with this score count")
    least_visible: float = param(0.5, low=0.0, high=1.0, help="share of the object that the camera must have in sight")
    background_label: str = param("", help="class of what is added, which control and sham are about; empty: all")

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
            return self._kept(source, followup, bundle, image)
        except (UnknownTransform, NotApplicable) as error:
            return Judgement(Outcome.NOT_APPLICABLE, reason=str(error))

    def _added(
        self, detections: Detections, boxes: ImageBoxes, effects: Effects, bundle: Bundle, image: Image
    ) -> Judgement:
        """Compare what both say of every added object: each has one detection and one box at the most, and its own."""
        seen, answers = self._sure(detections), boxes.take(boxes.score >= self.score_low)
        volumes = in_boxes(effects.added, seen.frame_id, bundle)
        shown = [box for box in effects.image_boxes if box.topic == image.topic]
        outlines = ImageBoxes.make(boxes.frame_id, None, [box.box_px for box in shown])
        objects = ImageBoxes.make(boxes.frame_id, None, self._projected(volumes, bundle, image))
        detected, said = _partners(Association().pair(volumes, seen)), self._projected(seen, bundle, image)
        found = _partners(pair(outlines, answers, self.min_iou))
        agreed, disagreements = 0, []
        for volume, outline in zip(*pair(objects, outlines, min_iou=0.0), strict=True):
            one, other = detected.get(volume), found.get(outline)
            if shown[outline].visible < self.least_visible or (one is None and other is None):
                continue
            overlap = 0.0 if one is None or other is None else float(iou(said[[one]], answers.box_px[[other]])[0, 0])
            agreed += overlap >= self.min_iou
            if overlap < self.min_iou:
                disagreements.append(f"{volumes.label[volume]} {_disagreement(one, other, overlap)}")
        return self._judged(agreed, disagreements, "no added object was found by either")

    def _sure(self, detections: Detections) -> Detections:
        return detections.take(detections.score >= self.score_low)

    def _of_class(self, seen: Detections) -> Mask:
        own = self.background_label.lower()
        return np.asarray((np.char.lower(seen.label) == own) | (own == ""))

    def _kept(self, source: Output, followup: Output, bundle: Bundle, image: Image) -> Judgement:
        """Compare what agreed with what agrees."""
        assert source.detections is not None and followup.detections is not None
        (before, both), (after, still) = (self._agreeing(output, bundle, image) for output in (source, followup))
        after = self._in_frame(after, before.frame_id, bundle)
        before = before.take(both & self._of_class(before))
        rows, partners = Association().pair(before, after)
        lost = before.label[rows[~still[partners]]].tolist()
        disagreements = [f"{label} had a box and has none" for label in lost]
        return self._judged(len(rows) - len(lost), disagreements, "no detection had a box where it projects to")

    def _agreeing(self, output: Output, bundle: Bundle, image: Image) -> tuple[Detections, Mask]:
        """Return what is detected, and of which (M,) there is a box where it projects to."""
        assert output.detections is not None and output.boxes is not None
        seen = self._sure(output.detections)
        answers = output.boxes.take(output.boxes.score >= self.score_low)
        overlap = iou(self._projected(seen, bundle, image), answers.box_px)
        return seen, np.asarray((overlap >= self.min_iou).any(axis=1))

    def _projected(self, seen: Detections, bundle: Bundle, image: Image) -> Floats:
        """Return the boxes (M, 4) around detections in the picture; without an area where nothing is in sight."""
        from mt_nodes.relations.mutations.camera.each_image import View  # OpenCV is for those who ask

        camera = View.of(bundle, image).camera()
        corners = np.array(list(product((-0.5, 0.5), repeat=3)))
        boxes = np.zeros((len(seen), 4))
        to_camera = bundle.transforms.lookup(image.frame_id, seen.frame_id)
        for i in range(len(seen)):
            c, s = np.cos(seen.yaw_rad[i]), np.sin(seen.yaw_rad[i])
            turned = (corners * seen.size_m[i]) @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
            pixels = camera.project(move(to_camera, turned + seen.center_m[i]))
            if np.isfinite(pixels).all():
                edges = np.concatenate([pixels.min(axis=0), pixels.max(axis=0)])
                boxes[i] = np.clip(edges, -0.5, np.tile([camera.width - 0.5, camera.height - 0.5], 2))
        return boxes

    def _judged(self, agreed: int, disagreements: list[str], nothing: str) -> Judgement:
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

    def _in_frame(self, seen: Detections, frame_id: str, bundle: Bundle) -> Detections:
        if seen.frame_id == frame_id:
            return seen
        return moved(seen, bundle.transforms.lookup(frame_id, seen.frame_id), frame_id)


def _partners(rows: tuple[Rows, Rows]) -> dict[int, int]:
    """Return which row of the second is that of the first."""
    return dict(zip(*(column.tolist() for column in rows), strict=True))


def _disagreement(detection: int | None, box: int | None, overlap: float) -> str:
    """Say how camera and LiDAR disagree about an object that one of them found at least."""
    if detection is not None and box is not None:
        return f"overlaps by {overlap:.2f} only"
    one, other = ("LiDAR", "camera") if box is None else ("camera", "LiDAR")
    return f"found by the {one} alone, not by the {other}"
