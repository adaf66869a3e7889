# SPDX-License-Identifier: Apache-2.0
"""What was put before camera and LiDAR is the same thing to both."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mt_nodes.association import Association, moved
from mt_nodes.checks.base import Check
from mt_nodes.checks.boxes import image_of
from mt_nodes.effects import Effects, ImageBox, Volume
from mt_nodes.errors import NotApplicable
from mt_nodes.frames import Bundle, Image
from mt_nodes.image_boxes import iou
from mt_nodes.outputs import Detections, ImageBoxes, Output
from mt_nodes.params import param
from mt_nodes.transforms import UnknownTransform, move
from mt_nodes.verdict import Judgement, Outcome

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class CameraAndLidarAgree(Check):
    """An added object that is found in space is found in the image where it projects to, and the other way around.

    The detection at the added volume, projected through CameraInfo and the transforms, and the box at the added
    object in the image overlap by ``min_iou`` at least. Found by one of the two alone, they disagree; found by neither,
    there is nothing to compare: whether it should have been found is for ``object_found`` and ``box_found``. Objects of
    which less than ``least_visible`` is in sight of the camera are not asked for.

    Where nothing was added, as by control and sham, what agreed in the source's answers must agree in the follow-up's:
    each detection that had a box has one again, as long as it is found.
    """

    needs: ClassVar[tuple[str, ...]] = ("detections", "boxes")

    min_iou: float = param(0.3, low=0.01, high=1.0, help="overlap of box and projected detection")
    score_low: float = param(0.3, low=0.0, high=1.0, help="detections and boxes with this score count")
    least_visible: float = param(0.5, low=0.0, high=1.0, help="share of the object that the camera must have in sight")

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
        """Compare what both say of every added object; a volume and an image box of one class are one in turn."""
        shown = [box for box in effects.image_boxes if box.topic == image.topic]
        agreed, disagreements = 0, []
        for volume, box in zip(effects.added, shown, strict=False):
            if box.visible < self.least_visible:
                continue
            said = self._disagreement(volume, box, detections, boxes, bundle, image)
            agreed += said == ""
            disagreements += [said] if said else []
        return self._judged(agreed, disagreements, "no added object was found by either")

    def _disagreement(
        self, volume: Volume, box: ImageBox, detections: Detections, boxes: ImageBoxes, bundle: Bundle, image: Image
    ) -> str | None:
        """Say what camera and LiDAR disagree about, "" where they agree, None where neither found the object."""
        there = Detections.make(
            volume.frame_id, None, [volume.center_m], [volume.size_m], [volume.yaw_rad], [volume.label]
        )
        seen = self._in_frame(detections.take(detections.score >= self.score_low), volume.frame_id, bundle)
        answers = boxes.take(boxes.score >= self.score_low)
        _, rows = Association().pair(there, seen)
        columns = np.flatnonzero(iou(np.array([box.box_px]), answers.box_px)[0] >= self.min_iou)
        if not len(rows) and not len(columns):
            return None
        if not len(rows) or not len(columns):
            one, other = ("camera", "LiDAR") if len(columns) else ("LiDAR", "camera")
            return f"{volume.label} found by the {one} alone, not by the {other}"
        overlap = iou(self._projected(seen.take(rows), bundle, image), answers.take(columns).box_px)
        return "" if overlap.max() >= self.min_iou else f"{volume.label} overlaps by {overlap.max():.2f} only"

    def _kept(self, source: Output, followup: Output, bundle: Bundle, image: Image) -> Judgement:
        """Compare what agreed with what agrees."""
        assert source.detections is not None and followup.detections is not None
        (before, both), (after, still) = (self._agreeing(output, bundle, image) for output in (source, followup))
        after = self._in_frame(after, before.frame_id, bundle)
        before = before.take(both)
        rows, partners = Association().pair(before, after)
        lost = before.label[rows[~still[partners]]].tolist()
        disagreements = [f"{label} had a box and has none" for label in lost]
        return self._judged(len(rows) - len(lost), disagreements, "no detection had a box where it projects to")

    def _agreeing(self, output: Output, bundle: Bundle, image: Image) -> tuple[Detections, Mask]:
        """Return what is detected, and of which (M,) there is a box where it projects to."""
        assert output.detections is not None and output.boxes is not None
        seen = output.detections.take(output.detections.score >= self.score_low)
        answers = output.boxes.take(output.boxes.score >= self.score_low)
        overlap = iou(self._projected(seen, bundle, image), answers.box_px)
        return seen, np.asarray((overlap >= self.min_iou).any(axis=1))

    def _projected(self, seen: Detections, bundle: Bundle, image: Image) -> Floats:
        """Return the boxes (M, 4) around detections in the picture; without an area where nothing is in sight."""
        from mt_nodes.mutations.camera.each_image import View  # OpenCV is for those who ask

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
            return Judgement(Outcome.NOT_APPLICABLE, reason=nothing, unit="objects")
        wrong = len(disagreements)
        return Judgement(
            Outcome.VIOLATED if wrong else Outcome.HOLDS,
            measured=wrong,
            bound=0,
            margin=-wrong,
            unit="objects",
            reason="; ".join(disagreements[:3]) if wrong else f"camera and LiDAR agree on all {agreed}",
            lost=wrong,
        )

    def _in_frame(self, seen: Detections, frame_id: str, bundle: Bundle) -> Detections:
        if seen.frame_id == frame_id:
            return seen
        return moved(seen, bundle.transforms.lookup(frame_id, seen.frame_id), frame_id)
