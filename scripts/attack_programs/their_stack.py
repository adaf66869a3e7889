# SPDX-License-Identifier: Apache-2.0
"""Somebody's stack over topics: answers each cloud with one box, wrongly as its first argument says."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from typing import Any

import rclpy
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import String
from visualization_msgs.msg import Marker, MarkerArray

CLOUDS, BOXES = "/sensing/lidar/points", "/perception/obstacles"
#: What is done to the stamp of an answer, s; a day ahead is later than any deadline.
STAMPS = {"stamp zero": None, "stamp of yesterday": -86_400, "stamp of tomorrow": 86_400}


def answer_to(cloud: Any, wrong: str) -> Any:
    """Return the answer to a cloud."""
    box = Marker(type=Marker.CUBE, action=Marker.ADD, ns="car", header=cloud.header)
    if wrong in STAMPS:
        moved = STAMPS[wrong]
        box.header.stamp.sec = 0 if moved is None else box.header.stamp.sec + moved
    box.header.frame_id = "nowhere" if wrong == "unknown frame" else "base_link"
    box.pose.position.x, box.scale.x, box.scale.y, box.scale.z = 10.0, 4.0, 2.0, 1.5
    if wrong == "not a number":
        box.pose.position.x = float("nan")
    return MarkerArray(markers=[Marker(action=Marker.DELETEALL, header=box.header), box])


def answers(publish: Callable[[Any], None], wrong: str) -> Callable[[Any], None]:
    """Return what is done with a cloud."""

    def received(cloud: Any) -> None:
        if wrong == "late":
            time.sleep(0.8)
        for _ in range(2 if wrong == "doubled" else 1):
            publish(String(data="a car") if wrong == "another type" else answer_to(cloud, wrong))

    return received


def main() -> None:
    """Answer until the process is ended."""
    wrong = sys.argv[1]
    rclpy.init()
    node = rclpy.create_node("their_stack")
    boxes = node.create_publisher(String if wrong == "another type" else MarkerArray, BOXES, 10)
    node.create_subscription(PointCloud2, CLOUDS, answers(boxes.publish, wrong), 10)
    with contextlib.suppress(KeyboardInterrupt, rclpy.executors.ExternalShutdownException):
        rclpy.spin(node)


if __name__ == "__main__":
    main()
