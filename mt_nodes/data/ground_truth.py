# SPDX-License-Identifier: Apache-2.0
"""Labels of a data set: the objects that really are there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mt_nodes.base.arrays import Floats, Ints
from mt_nodes.data.outputs import Detections

#: An object with fewer LiDAR points in its box is not demanded of a detector: KITTI, nuScenes and Waymo leave objects
#: with next to no points out of their scores as well.
LEAST_POINTS = 5


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """Labelled objects of one instant.

    Attributes:
        objects: (M,) boxes, score 1, in a frame of the recording.
        classes: every class of detections that the data set labels wherever it occurs: a detection of another class
            without a label is neither right nor wrong.
        points: (M,) LiDAR points in each box, -1 where the data set does not tell.
        areas_m: outlines, corners (x, y) in the frame of the objects, of the areas within which everything is labelled,
            such as the view of a camera; None: all around.
    """

    objects: Detections
    classes: frozenset[str]
    points: Ints
    areas_m: tuple[tuple[tuple[float, float], ...], ...] | None = None


#: Returns the labels of the instant with a stamp in nanoseconds, None where it has none.
LabelsAt = Callable[[int], GroundTruth | None]


def no_labels(stamp_ns: int) -> GroundTruth | None:
    """Return nothing: the recording has no labels."""
    return None


def points_in(objects: Detections, xyz: Floats) -> Ints:
    """Return how many points (N, 3), in the frame of the objects, lie in each box (M,)."""
    counts = np.zeros(len(objects), dtype=np.int64)
    for row, (center, size, yaw) in enumerate(zip(objects.center_m, objects.size_m, objects.yaw_rad, strict=True)):
        reach = float(np.hypot(*size[:2])) / 2.0
        near = xyz[(np.abs(xyz[:, 0] - center[0]) <= reach) & (np.abs(xyz[:, 1] - center[1]) <= reach)] - center
        ahead = np.cos(yaw) * near[:, 0] + np.sin(yaw) * near[:, 1]
        left = np.cos(yaw) * near[:, 1] - np.sin(yaw) * near[:, 0]
        own = np.abs(np.column_stack([ahead, left, near[:, 2]])) <= size / 2.0
        counts[row] = np.count_nonzero(own.all(axis=1))
    return counts
