# SPDX-License-Identifier: Apache-2.0
"""One topic of a relay: what it subscribes to and publishes, and what it holds while another relay still serves."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.topic_endpoint_info import TopicEndpointInfo

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.cdr import codec
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.raw_subscription import subscribe_raw
from mt_nodes.runs.vehicle.backlog import Backlog
from mt_nodes.runs.vehicle.baton import Baton
from mt_nodes.runs.vehicle.budget import Durations
from mt_nodes.runs.vehicle.inline import Between, InlineConfig
from mt_nodes.runs.vehicle.line import Line

#: Whoever asks for what the sensor promises would hear nothing of one that does not promise it.
_PROMISED = ("reliability", "durability", "deadline", "lifespan", "liveliness", "liveliness_lease_duration")
#: A relay may send its first so much later than its standby hears one: it looks for publishers now and then, imports
#: types, and is found by the publisher some tenths of a second later.
START_S = 2.0
#: So many stamps are told at once, that a line stays short.
_MOST_STAMPS = 1000
Data = bytes | memoryview


def published_ns(info: Mapping[str, Any]) -> int:
    """Return when a message was published, ns by the clock of its publisher: what tells it from all others.

    Raises InfrastructureError: the middleware does not tell.
    """
    if not (found := int(info["source_timestamp"] or 0)):
        raise InfrastructureError("the middleware tells no time of publication; use rmw_fastrtps_cpp")
    return found


class RelayTopic:
    """One topic, from the moment that its raw publisher is known; nothing is sent before :meth:`relieve`.

    ``offered``: who publishes the raw topic. ``baton``: where it is told what was sent. ``number``: of the topic.
    ``is_permitted``: whether input may be changed just now.
    """

    def __init__(
        self,
        node: Node,
        config: InlineConfig,
        number: int,
        offered: TopicEndpointInfo,
        baton: Baton,
        is_permitted: Callable[[], bool],
    ) -> None:
        self.between: Between = config.topics[number]
        self.added = Durations()
        self._number, self._baton, self._offered = number, baton, offered
        promised = {name: getattr(offered.qos_profile, name) for name in _PROMISED}
        same = QoSProfile(depth=config.depth, **promised)
        self.publisher: Publisher = node.create_publisher(message_class(offered.topic_type), self.between.topic, same)
        self.line = Line(config.hold_s, self._send, is_permitted)
        self._subscription_qos = QoSProfile(depth=config.depth, **{name: promised[name] for name in _PROMISED[:2]})
        self._backlog = Backlog()
        #: When a standby heard the first.
        self._first_s: float | None = None
        #: Another relay sends; until :meth:`relieve`.
        self._standing_by = True
        #: What another relay has sent, or may have.
        self._claimed: frozenset[int] = frozenset()
        #: When those that the line has not sent yet were published; it sends each once, in the order in which it came.
        self._published_ns: deque[int] = deque()
        self._lock = threading.Lock()

    def listen(self, node: Node, received: Any) -> None:
        """Take originals in; not before everything else is there."""
        taking, profile = partial(received, self), self._subscription_qos
        subscribe_raw(node, self._offered.topic_type, self.between.raw, taking, profile, with_info=True)

    def take(self, when_ns: int, data: bytes, now_s: float, replaceable: bool) -> None:
        """Send an original, or hold it: for a while where something may take its place, else for another relay."""
        with self._lock:
            if self._standing_by:
                self._first_s = now_s if self._first_s is None else self._first_s
                self._backlog.add(when_ns, data, self._baton.claimed(self._number), now_s)
            elif when_ns not in self._claimed:
                self._forward(when_ns, data, now_s, replaceable)

    def behind_s(self) -> float:
        """Return for how long the relay that serves has left out what came here, s."""
        claimed = self._baton.claimed(self._number)
        with self._lock:
            since_s = self._backlog.oldest_s(claimed) if claimed else self._first_s
        if since_s is None:
            return 0.0
        return time.monotonic() - since_s - (0.0 if claimed else START_S)

    def relieve(self) -> bool:
        """Send from now on, first what another relay, now dead, has left; return whether it died while it sent one."""
        with self._lock:
            if not self._standing_by:
                return False
            self._standing_by = False
            self._claimed = self._baton.claimed(self._number)
            in_doubt = self._baton.in_doubt(self._number)
            now_s = time.monotonic()
            for when_ns, data in self._backlog.unsent(self._claimed):
                self._forward(when_ns, data, now_s, replaceable=False)
        return in_doubt

    def _forward(self, when_ns: int, data: bytes, now_s: float, replaceable: bool) -> None:
        self._published_ns.append(when_ns)
        self.line.original(codec.header_stamp_ns(data) or 0, data, now_s, replaceable)

    def _send(self, data: Data, came_s: float) -> None:
        self._baton.claim(self._number, self._published_ns.popleft())
        self.publisher.publish(bytes(data))
        self._baton.sent(self._number)
        self.added.add(1e3 * (time.monotonic() - came_s))

    def changed(self, rows: Iterable[TopicEndpointInfo]) -> str:
        """Say who publishes the raw topic otherwise than when the relay began, empty where nobody does."""
        return next((f"{self.between.raw}: {what}" for row in rows if (what := self._difference(row))), "")

    def _difference(self, row: TopicEndpointInfo) -> str:
        if row.topic_type != self._offered.topic_type:
            return f"is published as {row.topic_type} now, was {self._offered.topic_type}; start anew"
        for name in _PROMISED:
            now, before = getattr(row.qos_profile, name), getattr(self._offered.qos_profile, name)
            if now != before:
                return f"is published with {name} {_plain(now)} now, was {_plain(before)}; start anew"
        return ""

    def status(self) -> dict[str, Any]:
        """Return the counts, and the stamps that were replaced since it was last asked."""
        stamps = self.line.replaced_ns
        replaced = [stamps.popleft() for _ in range(min(len(stamps), _MOST_STAMPS))]
        return {**vars(self.line.counts), "added_ms": self.added.as_plain(), "replaced_ns": replaced}


def _plain(value: Any) -> str:
    return getattr(value, "name", None) or f"{value.nanoseconds / 1e9:g} s"
