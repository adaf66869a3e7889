# SPDX-License-Identifier: Apache-2.0
"""Matches the obstacles of two outputs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.base.arrays import Floats
from mt_nodes.base.assignment import linear_sum_assignment
from mt_nodes.data.outputs import Detections
from mt_nodes.data.rotations import rectangle_corners
from mt_nodes.data.transforms import Matrix, move

Rows = npt.NDArray[np.intp]
#: Shapely polygons in the ground plan.
Polygons = npt.NDArray[Any]

#: How far a centre may move and still be the same obstacle, in metres, by the class of the source obstacle.
GATES_M = {"car": 2.0, "truck": 3.0, "bus": 3.0, "motorcycle": 1.2, "cyclist": 1.2, "bicycle": 1.2, "pedestrian": 0.8}
UNKNOWN_GATE_M = 1.5


@dataclass(frozen=True)
class Association:
    """Rule by which two obstacles are the same one.

    Attributes:
        metric: ``centre`` (ground-plan distance of centres over the gate of the *source* obstacle's class, since it is
            the source obstacle that is demanded) or ``bev_iou`` (overlap of the oriented ground-plan boxes).
        same_class: whether the class must be the same, too.
        min_iou: least overlap of two boxes of one obstacle.
    """

    metric: str = "centre"
    same_class: bool = False
    min_iou: float = 0.1
    gates_m: dict[str, float] = field(default_factory=lambda: dict(GATES_M))

    def pair(self, source: Detections, followup: Detections) -> tuple[Rows, Rows]:
        """Return the rows of the two, in one frame, that are one obstacle each: (K,) and (K,), at most once each.

        The assignment minimises the sum of costs in 0..1, an obstacle without partner costing 1 (the Hungarian
        method; a special case of the GOSPA metric): a chain of poor pairs therefore never hides a loss and a ghost.
        """
        if not len(source) or not len(followup):
            return np.empty(0, np.intp), np.empty(0, np.intp)
        cost = self._cost(source, followup)
        if self.same_class:
            cost[source.label[:, None] != followup.label[None, :]] = 1.0
        rows, columns = linear_sum_assignment(cost)
        good = cost[rows, columns] < 1.0
        return rows[good], columns[good]

    def gates(self, detections: Detections) -> Floats:
        """Return how far each centre (M,) may move, in metres."""
        return np.array([self.gates_m.get(label.lower(), UNKNOWN_GATE_M) for label in detections.label.tolist()])

    def _cost(self, source: Detections, followup: Detections) -> Floats:
        if self.metric == "bev_iou":
            iou = bev_iou(source, followup)
            return np.where(iou >= self.min_iou, 1.0 - iou, 1.0)
        apart = np.linalg.norm(source.center_m[:, None, :2] - followup.center_m[None, :, :2], axis=2)
        return np.asarray(np.minimum(apart / self.gates(source)[:, None], 1.0), dtype=np.float64)


def footprints(detections: Detections) -> Polygons:
    """Return the oriented boxes on the ground as shapely polygons (M,); a box without size has no area."""
    corners = rectangle_corners(detections.center_m[:, :2], detections.size_m[:, :2], detections.yaw_rad)
    polygons: Polygons = shapely.polygons(corners[:, [0, 3, 2, 1]])
    return polygons


def bev_iou(source: Detections, followup: Detections) -> Floats:
    """Return the ground-plan intersection over union (M, K) of oriented boxes; 0 where neither has a size."""
    a, b = footprints(source)[:, None], footprints(followup)[None, :]
    shared = shapely.area(shapely.intersection(a, b))
    union = shapely.area(a) + shapely.area(b) - shared
    return np.asarray(np.divide(shared, union, out=np.zeros(shared.shape), where=union > 0.0), dtype=np.float64)


def covered(obstacles: Detections, covering: Detections, same_class: bool) -> Floats:
    """Return the share of each footprint (M,) that the union of the others covers, 0..1: for splits and merges.

    With ``same_class`` only those of its own class count.
    """
    if not len(obstacles):
        return np.empty(0)  # the common case: nothing was lost, and a union costs more than all else here
    own, others = footprints(obstacles), footprints(covering)
    area, share = shapely.area(own), np.zeros(len(obstacles))
    for label in set(obstacles.label.tolist()) if same_class else {""}:
        rows = obstacles.label == label if same_class else np.ones(len(obstacles), dtype=bool)
        union = shapely.union_all(others[covering.label == label] if same_class else others)
        share[rows] = shapely.area(shapely.intersection(own[rows], union))
    return np.asarray(np.divide(share, area, out=np.zeros(len(area)), where=area > 0.0), dtype=np.float64)


def grown(detections: Detections) -> Detections:
    """Return the boxes (M,), enlarged on the ground on every side by the gate of their class."""
    by_m = 2.0 * Association().gates(detections).reshape(-1, 1) * (1.0, 1.0, 0.0)
    return replace(detections, size_m=detections.size_m + by_m)


def accounted_for(boxes: Detections, around: Polygons, most: int, enough: float = 1.0) -> Floats:
    """Return the share of each footprint (K,) that neighbours account for, 0..1; 1 for a box without size.

    Neighbours are at most ``most`` obstacles whose surroundings (M,) are connected, beginning with those that contain
    most of the box. Of a share that is ``enough``, what one neighbour accounts for may be all that is counted.
    """
    own, tree = footprints(boxes), shapely.STRtree(around)
    area = shapely.area(own)
    shares = np.where(area > 0.0, 0.0, 1.0)
    # The common case, found quickly: a box lies within the surroundings of its obstacle.
    shares[tree.query(own, predicate="covered_by")[0]] = 1.0
    left = np.flatnonzero(shares < 1.0)
    rows, near = tree.query(own[left], predicate="intersects")
    alone = shapely.area(shapely.intersection(own[left[rows]], around[near])) / area[left[rows]]
    np.maximum.at(shares, left[rows], alone)
    for row in np.flatnonzero(shares < enough):
        near = around[tree.query(own[row], predicate="intersects")]
        shares[row] = shapely.area(shapely.intersection(own[row], _together(own[row], near, most))) / area[row]
    return shares


def _together(box: Any, around: Polygons, most: int) -> Any:
    """Return the union of at most ``most`` connected polygons, those first that contain most of a box."""
    left = around[np.argsort(shapely.area(shapely.intersection(box, around)))[::-1]]
    union = shapely.union_all(left[:1])
    left = left[1:]
    for _ in range(most - 1):
        adjacent = np.flatnonzero(shapely.intersects(left, union))
        if not len(adjacent):
            break
        union, left = shapely.union(union, left[adjacent[0]]), np.delete(left, adjacent[0])
    return union


def newly_covered(obstacles: Detections, covering: Detections, known: Polygons, same_class: bool) -> Floats:
    """Return the share of each footprint (M,) that boxes (K,) cover which do not belong to other obstacles alone.

    The part ``known`` (K,) that a box covers as another obstacle, empty for none, does not count, unless half of the
    box lies in the surroundings of the obstacle: then they may be the same.
    """
    boxes, around, shares = footprints(covering), footprints(grown(obstacles)), np.zeros(len(obstacles))
    tree = shapely.STRtree(boxes)
    for row, own in enumerate(footprints(obstacles)):
        near = tree.query(own, predicate="intersects")
        near = near[(covering.label[near] == obstacles.label[row]) | (not same_class)]
        alike = accounted_for(covering.take(near), around[[row]], 1, 0.5) >= 0.5
        cover = np.where(alike, boxes[near], shapely.difference(boxes[near], known[near]))
        shares[row] = shapely.area(shapely.intersection(own, shapely.union_all(cover))) / max(shapely.area(own), 1e-9)
    return shares


def canonical(detections: Detections) -> Detections:
    """Return the obstacles in an order that depends on their values alone, so that ties are settled alike."""
    columns = (detections.score, detections.yaw_rad, *detections.size_m.T[::-1], *detections.center_m.T[::-1])
    return detections.take(np.lexsort((detections.label, *columns)))


def moved(detections: Detections, matrix: Matrix, frame_id: str) -> Detections:
    """Return the obstacles transformed by a 4×4 matrix, with the frame ``frame_id``.

    The matrix may turn, shift, mirror and scale alike in every direction. Centres, sizes, yaw and velocities follow;
    covariances become unknown.
    """
    turn = matrix[:3, :3]
    scale = abs(float(np.linalg.det(turn))) ** (1.0 / 3.0)
    ahead = (
        np.column_stack([np.cos(detections.yaw_rad), np.sin(detections.yaw_rad), np.zeros(len(detections))]) @ turn.T
    )
    return replace(
        detections,
        frame_id=frame_id,
        center_m=move(matrix, detections.center_m),
        # Sizes stay bit for bit under a rigid motion.
        size_m=detections.size_m if abs(scale - 1.0) < 1e-9 else detections.size_m * scale,
        yaw_rad=np.arctan2(ahead[:, 1], ahead[:, 0]),
        velocity_mps=detections.velocity_mps @ turn.T,
        covariance=np.full_like(detections.covariance, np.nan),
    )
