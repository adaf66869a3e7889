# SPDX-License-Identifier: Apache-2.0
"""A learned LiDAR detector: the pipeline of the system that Zhou & Sun tested, Apollo's LiDAR perception.

Region filter, segmentation of cells by a convolutional network, minimum-area box (ApolloAuto/apollo,
``docs/specs/3d_obstacle_perception.md``). As there, the network looks at the whole cloud, and the region decides only
of which points obstacles are made: what lies outside it can change what is found inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mt_nodes.base.arrays import Ints
from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference import cluster_boxes
from mt_nodes.stacks.reference.cell_features import CellGrid
from mt_nodes.stacks.reference.cell_objects import CLASSES, CellObjects, objects_of
from mt_nodes.stacks.reference.faults.base import Points
from mt_nodes.stacks.reference.lidar_detector import LidarDetector, millimetres
from mt_nodes.stacks.reference.tracker import Tracking

if TYPE_CHECKING:
    from mt_nodes.stacks.reference.cell_network import CellNetwork


@dataclass(frozen=True, eq=False)
class CnnSeg(LidarDetector):
    """Finds obstacles in a single cloud with a network that sees it from above."""

    weights: str = param(
        "cnnseg_streets",
        help="name of weights that ship, an .onnx file of `mt models train-detector`, or Apollo's deploy.prototxt with "
        "deploy.caffemodel beside it",
    )
    cells: int = param(640, low=32, high=2048, help="along each side of the network's grid")
    range_m: float = param(60.0, low=5.0, high=200.0, unit="m", help="from the sensor to each side of the grid")
    sensor_m: tuple[float, float, float] = param(
        (0.0, 0.0, 1.73), unit="m", help="x, y, z of the sensor, the middle of the grid, in frame_id"
    )
    intensity_full_scale: float = param(255.0, low=0.001, high=1e6, help="intensity that is 1 to the network")
    use_full_cloud: bool = param(True, help="the network sees the whole cloud; else only what is watched")
    objectness: float = param(0.5, low=0.0, high=1.0, help="a cell that is less likely to be of an object is of none")
    apart_cells: int = param(
        2,
        low=0,
        high=20,
        unit="cells",
        help="between two middles that are one obstacle's; 0 with Apollo's weights, as there",
    )
    confidence: float = param(0.1, low=0.0, high=1.0, help="an obstacle of a lower score is dropped")
    headroom_m: float = param(0.5, low=0.0, high=10.0, unit="m", help="points so far above an obstacle are not its")
    min_points: int = param(3, low=2, high=1000, help="a cluster with fewer points is noise")
    min_height_m: float = param(0.0, low=0.0, high=2.0, unit="m", help="a lower obstacle is kerb or grass")

    def __post_init__(self) -> None:
        super().__post_init__()
        # What is wrong with a file of weights is said when the stack starts, not at its first cloud.
        _ = self._network

    def found_in(self, cloud: Points, min_points: int, stamp_ns: int | None) -> Detections:
        """Return the obstacles that the network finds, made of the points of interest."""
        local = cloud[:, :4].astype(np.float32)
        local[:, :3] -= np.array(self.sensor_m, dtype=np.float32)
        watched = self.watched(cloud)
        points = local if self.use_full_cloud else local[watched]
        output = self._network(self._grid.features(points, self.intensity_full_scale))
        objects = objects_of(output, self._grid, self.objectness, self.apart_cells)
        return self._boxed(local[watched], objects, min_points, stamp_ns)

    @cached_property
    def _grid(self) -> CellGrid:
        return CellGrid(self.cells, self.range_m)

    @cached_property
    def _network(self) -> CellNetwork:
        from mt_nodes.stacks.reference.cell_network import CellNetwork

        return CellNetwork(self.weights, self._grid)

    def _boxed(self, points: Points, objects: CellObjects, min_points: int, stamp_ns: int | None) -> Detections:
        groups = cluster_boxes.grouped(self._members(points, objects), min_points)
        if not len(groups.number):
            return Detections.none(self.frame_id, stamp_ns)
        xyz = _in_order(millimetres(points[groups.rows]), groups.member) / 1000.0
        centre, extent, yaw = cluster_boxes.rectangles(xyz[:, :2], groups.member)
        top, bottom = (reach.reduceat(xyz[:, 2], groups.start) for reach in (np.maximum, np.minimum))
        x, y, z = self.sensor_m
        return Detections.make(
            self.frame_id,
            stamp_ns,
            np.column_stack([centre[:, 0] + x, centre[:, 1] + y, (top + bottom) / 2.0 + z]),
            np.column_stack([extent, top - bottom]),
            yaw,
            [CLASSES[kind] for kind in objects.kind[groups.number]],
            np.round(objects.score[groups.number], 6),
        )

    def _members(self, points: Points, objects: CellObjects) -> Ints:
        """Return the obstacle number (N,) of each point, −1 for none."""
        cell = self._grid.cell_of(points[:, 0], points[:, 1])
        number = np.where(cell >= 0, objects.number[cell], -1)
        sure = objects.score >= self.confidence
        of_object = number >= 0
        low_enough = points[of_object, 2] <= objects.top_m[number[of_object]] + self.headroom_m
        number[of_object] = np.where(sure[number[of_object]] & low_enough, number[of_object], -1)
        return np.asarray(number)


def _in_order(xyz_mm: Ints, member: Ints) -> Ints:
    """Return points (K, 3) sorted within each cluster, so that boxes do not depend on their order."""
    x, y, z = xyz_mm.T
    return xyz_mm[np.lexsort((z, y, x, member))]


@dataclass(frozen=True, eq=False)
class CnnSegTracker(Tracking, CnnSeg):
    """The learned detector with a tracker, as in Apollo."""
