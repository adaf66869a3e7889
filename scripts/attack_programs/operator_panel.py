# SPDX-License-Identifier: Apache-2.0
"""An operator of a test bench: the vehicle is not engaged; the switch is let go at first and held from then on."""

from __future__ import annotations

import contextlib
import time

import rclpy
from std_msgs.msg import Bool


def main() -> None:
    """Say so ten times a second until the process is ended."""
    rclpy.init()
    node, began_s = rclpy.create_node("operator"), time.monotonic()
    engaged, switch = (node.create_publisher(Bool, name, 1) for name in ("/engaged", "/dead_man"))

    def say() -> None:
        engaged.publish(Bool(data=False))
        switch.publish(Bool(data=time.monotonic() - began_s > 3.0))

    node.create_timer(0.1, say)
    with contextlib.suppress(KeyboardInterrupt, rclpy.executors.ExternalShutdownException):
        rclpy.spin(node)


if __name__ == "__main__":
    main()
