# SPDX-License-Identifier: Apache-2.0
"""People in a picture, by OpenCV's own detector: histograms of oriented gradients (Dalal and Triggs, CVPR 2005)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.data.image_boxes import iou
from mt_nodes.data.outputs import ImageBoxes

#: The detector's window is 64 x 128 pixels, 16 of them a margin around a person who fills the rest of its height.
_WINDOW_PX, _PERSON_PX, _MARGIN, _MARGIN_X = 128, 96, 0.125, 0.18
#: Steps of the score: parts of 1 that every message type carries exactly.
_SCORE_STEPS = 256.0
_SCALE_STEP, _SAME_IOU = 1.12, 0.5


def find_people(
    grey: npt.NDArray[np.uint8], rows: tuple[int, int], least_px: float, threshold: float, frame_id: str = ""
) -> ImageBoxes:
    """Return a box around each person, highest score first.

    The picture and its mirror image are searched, so that no side of the street is preferred by where windows lie.

    Args:
        grey: (H, W). rows: first and last but one row that is searched.
        least_px: height of the smallest person that is looked for.
        threshold: distance from the classifier's plane from which a window counts; its score is the logistic
            function of that distance, so a half at the plane and 0.82 at the distance 0.5.
    """
    first, end = max(rows[0], 0), min(rows[1], grey.shape[0])
    scale = _PERSON_PX / least_px
    if min(scale * (end - first) - _WINDOW_PX, scale * grey.shape[1] - _WINDOW_PX // 2) < 0:
        return ImageBoxes.none(frame_id, None)
    searched = cv2.resize(grey[first:end], None, fx=scale, fy=scale, interpolation=cv2.INTER_LINEAR)
    windows = _windows(searched), _windows(np.ascontiguousarray(searched[:, ::-1]))
    windows[1][:, 0] = searched.shape[1] - windows[1][:, 0] - windows[1][:, 2]
    found = np.concatenate(windows)
    found = found[found[:, 4] >= threshold]
    x, y, wide, high = found[:, :4].T / scale
    inside = np.column_stack(
        [x + _MARGIN_X * wide, y + _MARGIN * high, x + (1.0 - _MARGIN_X) * wide, y + (1.0 - _MARGIN) * high]
    )
    inside += np.array([0.0, first, 0.0, first]) - 0.5  # windows are told by edges, boxes by pixel centres
    score = np.rint(_SCORE_STEPS / (1.0 + np.exp(-3.0 * found[:, 4]))) / _SCORE_STEPS
    boxes = ImageBoxes.make(frame_id, None, inside, ["pedestrian"] * len(inside), score)
    return _surest(boxes.take(np.lexsort((*inside.T[::-1], -score))))


def _windows(grey: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Return the windows (M, 5) with people: left, top, width, height, distance from the classifier's plane."""
    found, distance = _detector().detectMultiScale(
        grey, hitThreshold=0.0, winStride=(8, 8), padding=(16, 16), scale=_SCALE_STEP
    )
    rows = np.asarray(found, dtype=np.float64).reshape(-1, 4)
    return np.column_stack([rows, np.ravel(distance).astype(np.float64)])


def _surest(boxes: ImageBoxes) -> ImageBoxes:
    """Of boxes that overlap by half or more, keep the one with the highest score."""
    rows: list[int] = []
    overlap = iou(boxes.box_px, boxes.box_px)
    for row in range(len(boxes)):
        if (overlap[row, rows] < _SAME_IOU).all():
            rows.append(row)
    return boxes.take(np.array(rows, dtype=np.intp))


@lru_cache
def _detector() -> Any:
    detector = cv2.HOGDescriptor()
    detector.setSVMDetector(cv2.HOGDescriptor.getDefaultPeopleDetector())
    return detector
