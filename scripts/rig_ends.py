# SPDX-License-Identifier: Apache-2.0
"""The two ends of ``bench_rig.py``: sensors that publish a rig's messages at their rates, and a stack that listens.

Sensors write when they published each message, listeners when they heard it and what it looked like, at the end.
"""

from __future__ import annotations

import heapq
import json
import os
import signal
import sys
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: Every so many bytes one is looked at to tell a changed message from its source.
SAMPLE_EVERY = 4099
STAMP = slice(4, 12)
ANSWERS = "/perception/obstacles"


@contextmanager
def _node(name: str) -> Iterator[Any]:
    from mt_nodes.nodes.spinning_context import SpinningContext, plain_node

    ros = SpinningContext(int(os.environ["ROS_DOMAIN_ID"]))
    try:
        yield ros.add(plain_node, name)
    finally:
        ros.close()


def play(place: Path) -> None:
    """Publish every sensor's messages in turn, at its rate, the instant as stamp, and odometry with those of the
    LiDAR, until a signal.
    """
    from mt_nodes.data.ego.published_motion import ODOMETRY_TYPE
    from mt_nodes.nodes import qos
    from mt_nodes.nodes.message_classes import message_class
    from mt_nodes.world.scene.drive import ODOMETRY_TOPIC

    rows = json.loads((place / "rig.json").read_text())
    ending = threading.Event()
    sent: list[tuple[str, int, float]] = []
    with _node("rig_sensors") as node:
        threading.Thread(target=_wait_for_signal, args=(ending,), daemon=True).start()
        messages = [[bytearray((place / name).read_bytes()) for name in row["files"]] for row in rows]
        publishers = [node.create_publisher(message_class(row["type"]), row["topic"], qos.REPLAY) for row in rows]
        odometry = node.create_publisher(message_class(ODOMETRY_TYPE), ODOMETRY_TOPIC, qos.REPLAY)
        began_s, began_ns = time.perf_counter(), time.time_ns()
        due = [(0.0, at, 0) for at in range(len(rows))]
        while not ending.is_set():
            due_s, at, number = heapq.heappop(due)
            if ending.wait(max(0.0, began_s + due_s - time.perf_counter())):
                break
            stamp_ns = began_ns + round(due_s * 1e9)
            template = messages[at][number % len(messages[at])]
            template[STAMP] = (stamp_ns // 10**9).to_bytes(4, "little") + (stamp_ns % 10**9).to_bytes(4, "little")
            data = bytes(template)
            if at == 0:
                odometry.publish(_odometry(due_s, stamp_ns))
            sent.append((rows[at]["topic"], stamp_ns, time.perf_counter()))
            publishers[at].publish(data)
            heapq.heappush(due, ((number + 1) / rows[at]["hz"], at, number + 1))
    (place / "sent.json").write_text(json.dumps(sent))


def _odometry(driven_s: float, stamp_ns: int) -> bytes:
    """Return the odometry of a vehicle that drives straight on, as the vehicle of the messages does."""
    from mt_nodes.data.cdr.world_messages import encode_odometry
    from mt_nodes.data.messages import Odometry
    from mt_nodes.world.scene.drive import EGO_SPEED_MPS

    return encode_odometry(Odometry("odom", stamp_ns, EGO_SPEED_MPS * driven_s, 0.0, 0.0, EGO_SPEED_MPS))


def _wait_for_signal(ending: threading.Event) -> None:
    signal.sigwait({signal.SIGINT, signal.SIGTERM})
    ending.set()


def hear(place: Path) -> None:
    """Listen to all that the rig publishes, answer every cloud with one obstacle ahead, until a signal."""
    from mt_nodes.nodes import qos
    from mt_nodes.nodes.message_classes import message_class

    rows = json.loads((place / "rig.json").read_text())
    heard: list[tuple[str, int, float, int]] = []
    with _node("rig_stack") as node:
        answer = _Answer(node)

        def listen(topic: str) -> Any:
            def received(data: bytes) -> None:
                at_s = time.perf_counter()
                heard.append((topic, _stamp_ns(data), at_s, _sample(data)))
                if topic == rows[0]["topic"]:
                    answer.publish(data[STAMP])

            return received

        for row in rows:
            kind = message_class(row["type"])
            node.create_subscription(kind, row["topic"], listen(row["topic"]), qos.REPLAY, raw=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    (place / f"heard_{os.environ['ROS_DOMAIN_ID']}.json").write_text(json.dumps(heard))


class _Answer:
    """Publishes one car that stands ahead, with the stamp of the cloud that it answers."""

    def __init__(self, node: Any) -> None:
        from visualization_msgs.msg import Marker, MarkerArray

        from mt_nodes.nodes import qos

        self._out = node.create_publisher(MarkerArray, ANSWERS, qos.ANSWERS)
        car = Marker(ns="rig", id=1, type=Marker.CUBE, action=Marker.ADD)
        car.pose.position.x, car.pose.position.z, car.pose.orientation.w = 12.0, 0.8, 1.0
        car.scale.x, car.scale.y, car.scale.z = 4.2, 1.8, 1.6
        car.color.a = 1.0
        self._message = MarkerArray(markers=[Marker(ns="rig", action=Marker.DELETEALL), car])

    def publish(self, stamp: bytes) -> None:
        for marker in self._message.markers:
            marker.header.frame_id = "base_link"
            marker.header.stamp.sec = int.from_bytes(stamp[:4], "little")
            marker.header.stamp.nanosec = int.from_bytes(stamp[4:], "little")
        self._out.publish(self._message)


def _stamp_ns(data: bytes) -> int:
    return int.from_bytes(data[4:8], "little") * 10**9 + int.from_bytes(data[8:12], "little")


def _sample(data: bytes) -> int:
    """Return a number that differs, all but surely, for messages that differ in some of their bytes."""
    return zlib.crc32(data[12::SAMPLE_EVERY], len(data))


def main(argv: Sequence[str]) -> None:
    """``play PLACE`` or ``hear PLACE``."""
    # Before a thread starts (NumPy has some as soon as it is imported), all of which take it over: one waits for it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    {"play": play, "hear": hear}[argv[0]](Path(argv[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
