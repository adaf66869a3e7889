# SPDX-License-Identifier: Apache-2.0
"""Looks for a while at the graph of one ROS domain and prints what it saw as one JSON line; publishes nothing there.

Started by ``mt doctor --live-config`` with what to look for as JSON: ``topics``; those of them that are to be heard
(``hear``), and into which directory their last messages are to be written (``keep``); what one of our instances would
be given (``given``) with a file of profiles for it (``qos``); whether to ask for the clocks of other computers
(``clocks``), which is for our own control domain only.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSCompatibility, QoSProfile, qos_check_compatible

from mt_nodes.base.environment import user_domain
from mt_nodes.nodes import qos
from mt_nodes.nodes.clock_echo import ClockPings
from mt_nodes.nodes.message_classes import available
from mt_nodes.nodes.query_process import json_output
from mt_nodes.nodes.raw_subscription import subscribe_raw
from mt_nodes.nodes.spinning_context import SpinningContext, quiet_node

EVERY_S = 0.1
NAME = "mt_doctor"
#: So many of the last messages of each topic are written where that is asked for.
KEPT = 8


def main() -> None:
    """Look, and print."""
    answer = json_output()
    ros = SpinningContext(user_domain(os.environ))
    try:
        answer(look(ros.add(quiet_node, NAME), json.loads(sys.argv[1])))
    finally:
        ros.close()


def look(node: Node, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return who is there: ``nodes``, ``publishers`` and ``subscribers`` by topic, ``heard`` messages, ``clocks``."""
    received: dict[str, Heard] = {}
    pings = ClockPings(node) if request.get("clocks") else None
    waiting = list(request.get("hear", ()))
    until_s = time.monotonic() + request["lasting_s"]
    while time.monotonic() < until_s:
        waiting = [topic for topic in waiting if not _tap(node, topic, received)]
        time.sleep(EVERY_S)
    # What goes on to come while files are written belongs to other instants.
    kept = [replace(heard, last=heard.last.copy()) for heard in received.values()] if "keep" in request else []
    names = [f"{space.rstrip('/')}/{name}" for name, space in node.get_node_names_and_namespaces()]
    publishers = {topic: node.get_publishers_info_by_topic(topic) for topic in request["topics"]}
    given = _given(request, publishers)
    subscribers = {topic: node.get_subscriptions_info_by_topic(topic) for topic in request["topics"]}
    return {
        "nodes": sorted(name for name in names if name != f"/{NAME}"),
        "publishers": {topic: [_endpoint(info) for info in rows] for topic, rows in publishers.items()},
        "subscribers": {
            topic: [_subscriber(info, given.get(topic)) for info in rows if info.node_name != NAME]
            for topic, rows in subscribers.items()
        },
        "heard": {topic: heard.count for topic, heard in received.items()},
        "kept": [heard.written(Path(request["keep"])) for heard in kept],
        "clocks": pings.offsets() if pings else {},
    }


def _given(request: Mapping[str, Any], publishers: Mapping[str, Sequence[Any]]) -> dict[str, QoSProfile]:
    """Return with what QoS an instance of ours would be given each topic."""
    profiles = qos.load_overrides(Path(request["qos"])) if request.get("qos") else {}
    first = {topic: publishers[topic][0].qos_profile for topic in request.get("given", ()) if publishers[topic]}
    latched = {topic for topic, profile in first.items() if profile.durability is DurabilityPolicy.TRANSIENT_LOCAL}
    return {
        topic: profiles.get(topic, qos.LATCHED if topic in latched else qos.REPLAY)
        for topic in request.get("given", ())
    }


@dataclass
class Heard:
    """What came on a topic: how much, when the first and the last of it, and the last itself."""

    topic: str
    type: str
    count: int = 0
    came_s: tuple[float, float] = (0.0, 0.0)
    last: deque[bytes] = field(default_factory=lambda: deque(maxlen=KEPT))

    def take(self, data: bytes) -> None:
        """Take a message in."""
        now_s = time.monotonic()
        self.came_s = (self.came_s[0] or now_s, now_s)
        self.count += 1
        self.last.append(data)

    def written(self, directory: Path) -> dict[str, Any]:
        """Write the last messages into files; return their names, topic, type and rate (Hz, 0 of less than two)."""
        names = [f"{self.topic.strip('/').replace('/', '_')}_{number}.cdr" for number in range(len(self.last))]
        for name, data in zip(names, self.last, strict=True):
            (directory / name).write_bytes(data)
        lasted_s = self.came_s[1] - self.came_s[0]
        hz = (self.count - 1) / lasted_s if lasted_s else 0.0
        return {"topic": self.topic, "type": self.type, "hz": hz, "files": names}


def _tap(node: Node, topic: str, received: dict[str, Heard]) -> bool:
    """Count what comes on a topic, as soon as its type is known; say whether it is by now."""
    rows = node.get_publishers_info_by_topic(topic)
    if not rows or not available(rows[0].topic_type):
        return False

    heard = received[topic] = Heard(topic, rows[0].topic_type)
    subscribe_raw(node, heard.type, topic, heard.take, qos.SENSOR_TAP)
    return True


def _subscriber(info: Any, given: QoSProfile | None) -> dict[str, str]:
    """Tell of a subscriber, and why one of ours like it would not get what it is given."""
    row = {**_endpoint(info), "refused": "", "offered": ""}
    if given is not None:
        asks = info.qos_profile
        # Of what the graph tells the rest is not in the form in which it was asked for.
        requested = QoSProfile(depth=1, reliability=asks.reliability, durability=asks.durability)
        compatible, why = qos_check_compatible(given, requested)
        refused = why.strip(" ;") if compatible == QoSCompatibility.ERROR else ""
        row |= {"refused": refused, "offered": qos.describe(given)}
    return row


def _endpoint(info: Any) -> dict[str, str]:
    profile = info.qos_profile
    return {
        "node": f"{info.node_namespace.rstrip('/')}/{info.node_name}",
        "type": info.topic_type,
        "reliability": profile.reliability.name.lower(),
        "durability": profile.durability.name.lower(),
    }


if __name__ == "__main__":
    main()
