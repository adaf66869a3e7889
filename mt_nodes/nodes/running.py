# SPDX-License-Identifier: Apache-2.0
"""How every node that runs alone starts and ends."""

from __future__ import annotations

import sys
from collections.abc import Callable

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node

from mt_nodes.errors import MtError

#: What a node logs when it can be talked to; launch files wait for it.
READY = "ready"


def run_node(make: Callable[[], Node], args: list[str] | None) -> None:
    """Initialise rclpy, make the node, spin it until shutdown or Ctrl-C; known errors are one line and an exit code."""
    rclpy.init(args=args)
    try:
        node = make()
        node.get_logger().info(READY)
        spin(node)
    except MtError as error:
        print(f"mt_nodes: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    finally:
        rclpy.try_shutdown()


def spin(node: Node) -> None:
    """Spin a node until shutdown, Ctrl-C, or until it sets ``finished``; then destroy it."""
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        while rclpy.ok() and not getattr(node, "finished", False):
            executor.spin_once(timeout_sec=0.5)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        executor.shutdown()
        node.destroy_node()
