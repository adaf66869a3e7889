# SPDX-License-Identifier: Apache-2.0
"""How a relay hears the signals that permit a change of input, and asks whether all hold."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from rclpy.node import Node

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.field_paths import FieldPath
from mt_nodes.nodes import qos
from mt_nodes.nodes.by_fields import fields_of
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.relay_topic import published_ns
from mt_nodes.runs.vehicle.baton import Baton
from mt_nodes.runs.vehicle.interlock import Interlock, Permission, SafetySignal

#: What the graph says in place of a name that has not come yet.
UNNAMED = "_NODE_NAME_UNKNOWN_"


def gid_of(node: Node, topic: str) -> bytes:
    """Return the GID of a node's own subscription of a topic.

    Raises InfrastructureError: the middleware does not tell.
    """
    name = node.get_name()
    rows = node.get_subscriptions_info_by_topic(topic)
    if mine := next((row for row in rows if row.node_name == name), None):
        return bytes(mine.endpoint_gid)
    raise InfrastructureError(f"the graph does not show that {name} subscribes to {topic}; use rmw_fastrtps_cpp")


def other_publishers(node: Node, topics: Iterable[str], baton: Baton) -> str:
    """Say who publishes topics and is no relay of this run, empty where nobody does.

    By GIDs: the name of a node may come later than its endpoints, and anybody may take it.
    """
    return "; ".join(filter(None, (_other_publishers_of(node, topic, baton) for topic in topics)))


def _other_publishers_of(node: Node, topic: str, baton: Baton) -> str:
    rows = node.get_publishers_info_by_topic(topic)
    others = [row for row in rows if not baton.is_kin(bytes(row.endpoint_gid))]
    names = ", ".join(f"{row.node_namespace.rstrip('/')}/{row.node_name}" for row in others)
    return f"{topic}: is published by {names}" if others else ""


def ambiguous_signal(node: Node, topics: Iterable[str]) -> str:
    """Say which signal has several publishers: one that still says yes would hide that another says no."""
    counts = {topic: node.count_publishers(topic) for topic in topics}
    return next((f"{topic}: is published {count} times" for topic, count in counts.items() if count > 1), "")


def since_boot_s() -> float:
    """Return a monotonic instant; what the computer slept counts, or a yes from before it would be fresh after it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Permits:
    """Hears the signals of an interlock, and asks it; may be used by several threads.

    ``node``: in the vehicle's domain. ``against``: what else stands against a change of input just now, empty if
    nothing.
    Raises UsageError: the type of a signal has no such field.
    """

    def __init__(self, node: Node, interlock: Interlock, against: Callable[[], str]) -> None:
        self._node, self._interlock, self._others = node, interlock, against
        self._lock = threading.Lock()
        for number, row in enumerate(interlock.signals):
            _listen_to(node, row, partial(self._receive, number))

    def permission(self) -> Permission:
        """Return whether input may be changed just now."""
        against = self._against()
        with self._lock:
            return self._interlock.permission(since_boot_s(), against)

    def _receive(self, number: int, value: Any, when_ns: int) -> None:
        against = self._against()
        with self._lock:
            age_s = 1e-9 * (time.time_ns() - when_ns)
            self._interlock.receive(number, value, since_boot_s(), age_s, when_ns, against)

    def _against(self) -> str:
        return self._others() or ambiguous_signal(self._node, [row.topic for row in self._interlock.signals])


def _listen_to(node: Node, row: SafetySignal, receive: Callable[[Any, int], None]) -> None:
    """Give ``receive`` each value of a signal, None where a message has none, and when it was published, ns."""
    path = FieldPath.parse(row.field, f"signal {row.topic}")
    path.type_in(row.type.replace("/msg/", "/"), fields_of, f"signal {row.topic}")

    def take(message: Any, info: Mapping[str, Any]) -> None:
        try:
            value = path.of(message)
        except ValueError:  # a list that has no such place today says nothing
            value = None
        receive(value, published_ns(info))

    node.create_subscription(message_class(row.type), row.topic, take, qos.LIVE_TAP)
