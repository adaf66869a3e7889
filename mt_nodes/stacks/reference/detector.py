# SPDX-License-Identifier: Apache-2.0
"""A LiDAR obstacle detector after the pipeline of Zhou & Sun (Metamorphic Testing of Driverless Cars, CACM 2019).

Region filter, ground removal, Euclidean clustering, minimum-area box, label by size. From the region filter on,
points are millimetres in sorted order: the order in which they arrived cannot matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.arrays import Floats, Ints
from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference import cluster_boxes, clustering, ground_removal
from mt_nodes.stacks.reference.faults.base import Points
from mt_nodes.stacks.reference.lidar_detector import LidarDetector, in_order, millimetres

#: How far a cluster may stand out of the car that it is a part of.
_SLACK_M = 0.1


@dataclass(frozen=True, eq=False)
class _Boxes:
    """Upright boxes (M,) around clusters."""

    centre_m: Floats
    size_m: Floats
    yaw_rad: Floats

    @classmethod
    def around(cls, groups: cluster_boxes.Groups, xyz_mm: Ints, height_mm: Floats) -> _Boxes:
        """Return the smallest boxes around groups of points."""
        xyz, height = xyz_mm[groups.rows] / 1000.0, height_mm[groups.rows] / 1000.0
        centre, extent, yaw = cluster_boxes.rectangles(xyz[:, :2], groups.member)
        top, tallest = (np.maximum.reduceat(values, groups.start) for values in (xyz[:, 2], height))
        return cls(np.column_stack([centre, top - tallest / 2]), np.column_stack([extent, tallest]), yaw)

    def inside_a_car(self) -> Ints:
        """Return the car (M,) that each box lies in, -1 for none: seats and doors seen through its windows."""
        cars = np.array([label == "car" for label in cluster_boxes.label_by_size(self.size_m)])
        return cluster_boxes.enclosed(self.centre_m[:, :2], self.size_m[:, :2], self.yaw_rad, cars, _SLACK_M)


@dataclass(frozen=True, eq=False)
class Detector(LidarDetector):
    """Finds obstacles in a single cloud by clustering the points above the ground.

    A cluster within the outline of a car is a part of it: LiDARs see through windows.
    """

    ground_tolerance_m: float = param(0.25, low=0.05, high=1.0, unit="m", help="lower points are ground")
    overhead_m: float = param(6.0, low=2.0, high=20.0, unit="m", help="higher points above ground are overhead")
    column_m: float = param(0.2, low=0.05, high=1.0, unit="m", help="side of the columns that are clustered")
    column_points: int = param(2, low=1, high=20, help="a column with fewer points is noise")
    tolerance_m: float = param(0.6, low=0.1, high=3.0, unit="m", help="columns this near belong together")
    max_size_m: tuple[float, float, float] = param(
        (15.0, 5.0, 4.2), low=0.1, unit="m", help="length, width, height: a larger cluster is structure, not obstacle"
    )

    def found_in(self, cloud: Points, min_points: int, stamp_ns: int | None) -> Detections:
        """Return the clusters above the ground that are not too large."""
        xyz_mm, height_mm = self.above_ground(cloud)
        found = self._boxed(xyz_mm, height_mm, min_points, stamp_ns)
        return found.take(np.asarray((found.size_m <= self.max_size_m).all(axis=1)))

    def above_ground(self, cloud: Points) -> tuple[Ints, Floats]:
        """Return the points of obstacles among those of interest: x, y, z (N, 3) and heights (N,), in mm, sorted."""
        return self._obstacle_points(in_order(millimetres(cloud.compress(self.watched(cloud), axis=0))))

    def _obstacle_points(self, xyz_mm: Ints) -> tuple[Ints, Floats]:
        if not len(xyz_mm):
            return xyz_mm, np.empty(0)
        height_mm = ground_removal.height_mm(xyz_mm)
        keep = (height_mm > self.ground_tolerance_m * 1000.0) & (height_mm < self.overhead_m * 1000.0)
        return xyz_mm[keep], height_mm[keep]

    def _boxed(self, xyz_mm: Ints, height_mm: Floats, min_points: int, stamp_ns: int | None) -> Detections:
        number = clustering.cluster(
            xyz_mm[:, :2], round(self.column_m * 1000), round(self.tolerance_m * 1000), self.column_points
        )
        groups = cluster_boxes.grouped(number, min_points)
        if not len(groups.number):
            return Detections.none(self.frame_id, stamp_ns)
        boxes = _Boxes.around(groups, xyz_mm, height_mm)
        host = boxes.inside_a_car()
        if (host >= 0).any():
            renamed = np.arange(int(number.max()) + 1)
            renamed[groups.number[host >= 0]] = groups.number[host[host >= 0]]
            groups = cluster_boxes.grouped(np.where(number >= 0, renamed[number], -1), min_points)
            boxes = _Boxes.around(groups, xyz_mm, height_mm)
        count = groups.count
        return Detections.make(
            self.frame_id,
            stamp_ns,
            boxes.centre_m,
            boxes.size_m,
            boxes.yaw_rad,
            cluster_boxes.label_by_size(boxes.size_m),
            count / (count + 2.0 * self.min_points),
        )
