# SPDX-License-Identifier: Apache-2.0
"""Matches the boxes of two outputs in images."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.base.assignment import linear_sum_assignment
from mt_nodes.data.outputs import ImageBoxes

Rows = npt.NDArray[np.intp]


def areas(box_px: Floats) -> Floats:
    """Return the area (M,) of boxes (M, 4) in square pixels."""
    return np.asarray(np.maximum(box_px[:, 2] - box_px[:, 0], 0.0) * np.maximum(box_px[:, 3] - box_px[:, 1], 0.0))


def shared(a_px: Floats, b_px: Floats) -> Floats:
    """Return the area (M, K) that boxes (M, 4) and (K, 4) have in common, in square pixels."""
    low = np.maximum(a_px[:, None, :2], b_px[None, :, :2])
    high = np.minimum(a_px[:, None, 2:], b_px[None, :, 2:])
    return np.asarray(np.maximum(high - low, 0.0).prod(axis=2))


def iou(a_px: Floats, b_px: Floats) -> Floats:
    """Return intersection over union (M, K) of boxes (M, 4) and (K, 4); 0 where neither has an area."""
    both = shared(a_px, b_px)
    union = areas(a_px)[:, None] + areas(b_px)[None, :] - both
    return np.asarray(np.divide(both, union, out=np.zeros(both.shape), where=union > 0.0))


def pair(source: ImageBoxes, followup: ImageBoxes, min_iou: float, same_class: bool = False) -> tuple[Rows, Rows]:
    """Return the rows of the two that are one object each: (K,) and (K,), at most once each.

    The assignment maximises the sum of overlaps (the Hungarian method); boxes that overlap by less than ``min_iou``
    are never a pair.
    """
    gain = iou(source.box_px, followup.box_px)
    gain[gain < min_iou] = 0.0
    if same_class:
        gain[source.label[:, None] != followup.label[None, :]] = 0.0
    rows, columns = linear_sum_assignment(gain, maximize=True)
    good = gain[rows, columns] > 0.0
    return rows[good], columns[good]


def warped(boxes: ImageBoxes, matrix: Floats) -> ImageBoxes:
    """Return the boxes around the corners (x, y, 1) of the boxes after a 3×3 transform."""
    if not len(boxes):
        return boxes
    x0, y0, x1, y1 = boxes.box_px.T
    corners = np.stack([np.stack([x, y, np.ones_like(x)]) for x, y in ((x0, y0), (x1, y0), (x1, y1), (x0, y1))])
    places = np.einsum("ij,cjm->cim", matrix, corners)
    x, y = places[:, 0] / places[:, 2], places[:, 1] / places[:, 2]
    return replace(boxes, box_px=np.column_stack([x.min(axis=0), y.min(axis=0), x.max(axis=0), y.max(axis=0)]))
