# SPDX-License-Identifier: Apache-2.0
"""Sends large messages to a second process and back word; prints what happened as one JSON line."""

from __future__ import annotations

import array
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.utilities import get_rmw_implementation_identifier
from std_msgs.msg import UInt8MultiArray, UInt64

from mt_nodes.nodes.query_process import default_context, json_output

PING, PONG = "/mt_doctor/there", "/mt_doctor/back"
BYTES = 2_000_000
SENT = 10
MATCH_TIMEOUT_S = 20.0
ANSWER_TIMEOUT_S = 2.0


def main() -> None:
    """Probe; or, with ``--echo``, be the second process."""
    answer = json_output()
    with suppress(KeyboardInterrupt, ExternalShutdownException), default_context():
        if "--echo" in sys.argv:
            echo(rclpy.create_node("mt_doctor_echo"))
        else:
            answer(probe(rclpy.create_node("mt_doctor")))


def echo(node: Node) -> None:
    """Answer each large message with its size until the pipe from the parent closes."""
    reply = node.create_publisher(UInt64, PONG, 10)

    def answer(message: Any) -> None:
        reply.publish(UInt64(data=len(message.data)))

    node.create_subscription(UInt8MultiArray, PING, answer, 10)
    os.set_blocking(0, False)
    while not _closed(0):
        rclpy.spin_once(node, timeout_sec=0.1)


def probe(node: Node) -> dict[str, Any]:
    """Return the RMW, the bytes of our shared-memory segment, and the round trips that came back, in ms."""
    answers: list[Any] = []
    publisher = node.create_publisher(UInt8MultiArray, PING, 10)
    node.create_subscription(UInt64, PONG, answers.append, 10)
    message = UInt8MultiArray(data=array.array("B", bytes(BYTES)))
    trips = []
    other = subprocess.Popen([sys.executable, "-m", "mt_nodes.nodes.doctor_probe", "--echo"], stdin=subprocess.PIPE)
    try:
        matched = _spin_until(
            node, lambda: publisher.get_subscription_count() > 0 and node.count_publishers(PONG) > 0, MATCH_TIMEOUT_S
        )
        for _ in range(SENT if matched else 0):
            answers.clear()
            start = time.perf_counter()
            publisher.publish(message)
            if _spin_until(node, lambda: bool(answers), ANSWER_TIMEOUT_S):
                trips.append(round((time.perf_counter() - start) * 1e3, 3))
    finally:
        other.communicate()
    return {
        "rmw": get_rmw_implementation_identifier(),
        "segment_bytes": _segment_bytes(),
        "bytes": BYTES,
        "sent": SENT,
        "round_trips_ms": trips,
    }


def _closed(descriptor: int) -> bool:
    """Whether the other end of a non-blocking pipe has been closed."""
    try:
        return not os.read(descriptor, 1)
    except BlockingIOError:
        return False


def _spin_until(node: Node, done: Callable[[], bool], timeout_s: float) -> bool:
    until = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > until:
            return False
        rclpy.spin_once(node, timeout_sec=0.05)
    return True


def _segment_bytes() -> int:
    """Return the size of the largest Fast DDS segment mapped into this process, 0 without shared memory.

    The largest, because rmw_fastrtps adds a transport with a small one of its own when the range is LOCALHOST.
    """
    mapped = set(re.findall(r"/dev/shm/fastrtps_[0-9a-f]{16}(?=\n)", Path("/proc/self/maps").read_text()))
    return max((Path(path).stat().st_size for path in mapped), default=0)


if __name__ == "__main__":
    main()
