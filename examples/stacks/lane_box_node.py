# SPDX-License-Identifier: Apache-2.0
"""The same stack as a ROS 2 program; it knows nothing of mt_nodes."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from sensor_msgs.msg import PointCloud2
from visualization_msgs.msg import Marker, MarkerArray

LIDAR_HEIGHT_M = 1.73


class LaneBoxNode(Node):
    """Answers each point cloud with the box of what stands on the road ahead."""

    def __init__(self) -> None:
        super().__init__("lane_box")
        self._boxes = self.create_publisher(MarkerArray, "/perception/obstacles", 10)
        self.create_subscription(PointCloud2, "/sensing/lidar/points", self._received, 10)

    def _received(self, cloud: PointCloud2) -> None:
        """Publish, also if there is nothing: DELETEALL with the stamp of the cloud means that nothing was detected."""
        markers = [Marker(action=Marker.DELETEALL, header=cloud.header)]
        points = xyz(cloud)
        x, y, z = points.T
        z_m = z + LIDAR_HEIGHT_M
        on_road = points[(x > 3.0) & (x < 40.0) & (np.abs(y) < 5.0) & (z_m > 0.4) & (z_m < 3.0)]
        if len(on_road) >= 10:
            markers.append(box(cloud, on_road.min(axis=0), on_road.max(axis=0)))
        self._boxes.publish(MarkerArray(markers=markers))


def xyz(cloud: PointCloud2) -> np.ndarray:
    """Return the coordinates (N, 3) of a cloud, in metres."""
    offsets = {field.name: field.offset for field in cloud.fields}
    layout = {"names": list("xyz"), "formats": ["<f4"] * 3, "offsets": [offsets[axis] for axis in "xyz"]}
    points = np.frombuffer(cloud.data, np.dtype({**layout, "itemsize": cloud.point_step}))
    return np.stack([points[axis] for axis in "xyz"], axis=1).astype(np.float64)


def box(cloud: PointCloud2, low: np.ndarray, high: np.ndarray) -> Marker:
    """Return the box between two corners, in the frame of the cloud."""
    marker = Marker(type=Marker.CUBE, action=Marker.ADD, ns="unknown", header=cloud.header)
    place, size = marker.pose.position, marker.scale
    place.x, place.y, place.z = ((low + high) / 2.0).tolist()
    size.x, size.y, size.z = (high - low).tolist()
    marker.color.a = 1.0
    return marker


def main() -> None:
    """Run until the process is asked to end."""
    rclpy.init()
    with suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(LaneBoxNode())


if __name__ == "__main__":
    main()
