# SPDX-License-Identifier: Apache-2.0
"""Reports over a topic at which inputs a hosted callable raised an exception, so that only those pairs end."""

from __future__ import annotations

import json
from collections.abc import Callable

from rclpy.node import Node
from rclpy.publisher import Publisher
from std_msgs.msg import String

from mt_nodes.nodes import qos

#: In the domain of an arm, after its prefix.
TOPIC = "/mt/failed_calls"


def advertise(node: Node, prefix: str) -> Publisher:
    """Return the publisher of reports."""
    return node.create_publisher(String, prefix + TOPIC, qos.ANSWERS)


def report(stamp_ns: int, reason: str) -> String:
    """Return the message for an input: its stamp, and why there is no answer to it."""
    return String(data=json.dumps({"stamp_ns": stamp_ns, "reason": reason}))


def listen(node: Node, topic: str, take: Callable[[int, str], object]) -> None:
    """Call ``take`` with the stamp and the reason of each report."""

    def received(message: String) -> None:
        report = json.loads(message.data)
        take(int(report["stamp_ns"]), str(report["reason"]))

    node.create_subscription(String, topic, received, qos.ANSWERS)
