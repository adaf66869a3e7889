# SPDX-License-Identifier: Apache-2.0
"""Obstacles as a ``sensor_msgs/PointCloud2`` whose points bear the number of their cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.cdr.codec import cloud_from_msg
from mt_nodes.data.outputs import Detections
from mt_nodes.nodes.adapters.base import Adapter
from mt_nodes.nodes.message_classes import stamp_of
from mt_nodes.stacks.upright_boxes import boxes_around


@dataclass(frozen=True)
class PointCloudClusters(Adapter):
    """Each cluster is the smallest upright box around its points, in metres, in the frame of the header.

    Clusters have neither class, score nor track: their numbers change from cloud to cloud. Points that are not finite,
    or of no cluster, count for nothing. A cloud without points of clusters, with the input's stamp, says that nothing
    was seen. Read only: of a box the points are not known.
    """

    field: str = param("cluster_id", help="field that holds the number of a point's cluster, such as label, intensity")
    none: int = param(-1, help="number of points that are of no cluster")

    type: ClassVar[str] = "sensor_msgs/msg/PointCloud2"
    role: ClassVar[str] = "detections"

    def stamp_ns(self, message: Any) -> int | None:
        """Header stamp."""
        return stamp_of(message)

    def decode(self, message: Any) -> Detections:
        """Read a box a cluster.

        Raises:
            ValueError: the cloud has no such field, or one of several elements.
            UsageError: the cloud is damaged.
        """
        cloud = cloud_from_msg("clusters", message)
        names = cloud.points.dtype.names or ()
        if self.field not in names or cloud.points.dtype[self.field].shape:
            raise ValueError(
                f"got a cloud with fields {', '.join(names)}, expected {self.field} with one number a point; name the "
                "field of the clusters: outputs: {detections: {…, params: {field: …}}}"
            )
        number = cloud.points[self.field].astype(np.float64)
        places = np.column_stack([cloud.points[axis].astype(np.float64) for axis in "xyz"])
        kept = np.isfinite(places).all(axis=1) & np.isfinite(number) & (number != self.none)
        number, places = number[kept], places[kept]
        order = np.argsort(number, kind="stable")
        group = np.cumsum(np.diff(number[order], prepend=number[order[:1]]) != 0.0)
        center, size, yaw = boxes_around(places[order], group)
        return Detections.make(cloud.frame_id, cloud.stamp_ns, center, size, yaw)
