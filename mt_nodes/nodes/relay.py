# SPDX-License-Identifier: Apache-2.0
"""Stands in a topic: every original goes on as it came, or replaced by what a mutator offered in time.

A process of its own that does nothing else: ``python -m mt_nodes.nodes.relay --config FILE --offers SOCKET``. It lives
on when whoever started it dies, and then forwards only. Its events are JSON lines: how it goes, twice a second.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import threading
import time
import zlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions

from mt_nodes import cdr
from mt_nodes.errors import IsolationError, MtError
from mt_nodes.field_paths import FieldPath
from mt_nodes.flag import Flag, flag_of_signals
from mt_nodes.nodes import qos
from mt_nodes.nodes.by_fields import fields_of
from mt_nodes.nodes.messages import message_class
from mt_nodes.nodes.running import quick_executor
from mt_nodes.nodes.spinning import quiet_node
from mt_nodes.vehicle.budget import Durations
from mt_nodes.vehicle.inline import Between, InlineConfig, load_inline_config
from mt_nodes.vehicle.interlock import Interlock, Permission, Signal
from mt_nodes.vehicle.line import Line
from mt_nodes.vehicle.offers import OffersTaken

#: Its node is called after this and its socket: another run's is not taken for one's own.
NODE = "mt_relay"
#: How often it looks for publishers, and tells how it goes.
LOOK_EVERY_S = 0.5
#: Whoever is found so soon was there before: others are discovered within about a second.
NEW_S = 3.0
#: A thread that waits for nothing in particular looks up so often.
_IDLE_S = 1.0
Data = bytes | memoryview


class _Topic:
    """One topic, from the moment that its raw publisher is known."""

    def __init__(self, node: Node, between: Between, hold_s: float, kind: str, offered: QoSProfile, depth: int) -> None:
        profile = QoSProfile(depth=depth, reliability=offered.reliability, durability=offered.durability)
        # Whoever asks for what the sensor promises would hear nothing of one that does not promise it.
        promised = ("reliability", "durability", "deadline", "lifespan", "liveliness", "liveliness_lease_duration")
        same = QoSProfile(depth=depth, **{name: getattr(offered, name) for name in promised})
        self.between, self.added = between, Durations()
        self.publisher: Publisher = node.create_publisher(message_class(kind), between.topic, same)
        self.line = Line(hold_s, self._send)
        self._profile, self._kind = profile, kind

    def listen(self, node: Node, received: Any) -> None:
        """Take originals in; not before everything else is there."""
        node.create_subscription(
            message_class(self._kind), self.between.raw, partial(received, self), self._profile, raw=True
        )

    def _send(self, data: Data, came_s: float) -> None:
        self.publisher.publish(bytes(data))
        self.added.add(1e3 * (time.monotonic() - came_s))


class Relay:
    """All topics, the interlock, and who offers replacements.

    Args:
        node: in the vehicle's domain. armed: whether the user said so. offers: socket that a mutator connects to.
    """

    def __init__(self, node: Node, config: InlineConfig, armed: bool, offers: Path) -> None:
        self._node, self._config = node, config
        self._interlock = Interlock(armed, config.permits, config.dead_man)
        self._lock = threading.Lock()
        self._topics: dict[int, _Topic] = {}
        self._held = threading.Event()
        self._closing = False
        #: Nobody looks on any more who could stop it; set by whoever tells events.
        self.alone = False
        #: Others who publish what only this node may.
        self._others = ""
        self._began_s = time.monotonic()
        self.failure: MtError | None = None
        for number, row in enumerate(self._interlock.signals):
            self._hear(number, row)
        self._offers = OffersTaken(offers, self._offered)
        self._releasing = threading.Thread(target=self._release, name="release", daemon=True)
        self._releasing.start()
        self.look()
        node.create_timer(LOOK_EVERY_S, self.look)

    def close(self) -> None:
        """Send what is held, and end."""
        self._closing = True
        self._held.set()
        self._releasing.join()
        self._offers.close()
        for topic in self._topics.values():
            topic.line.release_due(float("inf"))

    def look(self) -> None:
        """Look who publishes; begin with a topic as soon as its raw one is there."""
        try:
            self._others = "; ".join(filter(None, map(self._second_publisher, self._config.topics)))
            if self._others and time.monotonic() - self._began_s < NEW_S:
                raise IsolationError(f"{self._others}; a relay must be the only one, or the stack gets both")
            for number, between in enumerate(self._config.topics):
                if number not in self._topics and (rows := self._node.get_publishers_info_by_topic(between.raw)):
                    self._begin(number, between, rows[0].topic_type, rows[0].qos_profile)
        except MtError as error:
            self.failure = error
        self.permission()  # what was lost for a moment is noticed, too

    def _begin(self, number: int, between: Between, kind: str, offered: QoSProfile) -> None:
        topic = _Topic(self._node, between, self._config.hold_s, kind, offered, self._config.depth)
        self._topics[number] = topic
        topic.listen(self._node, self._received)

    def _second_publisher(self, between: Between) -> str:
        rows = self._node.get_publishers_info_by_topic(between.topic)
        others = [row for row in rows if row.node_name != self._node.get_name()]
        names = ", ".join(f"{row.node_namespace.rstrip('/')}/{row.node_name}" for row in others)
        return f"{between.topic}: is published by {names}" if others else ""

    def _hear(self, number: int, row: Signal) -> None:
        path = FieldPath.parse(row.field, f"signal {row.topic}")
        path.type_in(row.type.replace("/msg/", "/"), fields_of, f"signal {row.topic}")

        def heard(message: Any) -> None:
            try:
                value = path.of(message)
            except ValueError:  # a list that has no such place today says nothing
                value = None
            with self._lock:
                self._interlock.heard(number, value, time.monotonic())

        self._node.create_subscription(message_class(row.type), row.topic, heard, qos.LIVE_TAP)

    def permission(self) -> Permission:
        """Return whether input may be changed just now."""
        against = self._others or self._said_by_many() or ("nobody looks on" if self.alone else "")
        with self._lock:
            return self._interlock.permission(time.monotonic(), against)

    def _said_by_many(self) -> str:
        """Say which signal has several publishers: one that still says yes would hide that another says no."""
        counts = {row.topic: self._node.count_publishers(row.topic) for row in self._interlock.signals}
        return next((f"{topic}: is published {count} times" for topic, count in counts.items() if count > 1), "")

    def _received(self, topic: _Topic, data: bytes) -> None:
        now_s = time.monotonic()
        replaceable = self.permission().granted and self._offers.connected
        topic.line.original(cdr.header_stamp_ns(data) or 0, data, now_s, replaceable)
        if replaceable:
            self._held.set()

    def _offered(self, number: int, stamp_ns: int, data: memoryview) -> None:
        if number not in self._topics:
            return
        line = self._topics[number].line
        if cdr.header_stamp_ns(data) != stamp_ns:
            line.counts.wrong += 1
        elif self.permission().granted:
            line.replacement(stamp_ns, data, time.monotonic())
        else:
            line.counts.unasked += 1

    def _release(self) -> None:
        """Send originals whose time is up, whoever else stands still."""
        while not self._closing:
            due = [topic.line.release_due(time.monotonic()) for topic in list(self._topics.values())]
            next_s = min((at_s for at_s in due if at_s is not None), default=None)
            if next_s is None:
                self._held.wait(_IDLE_S)
                self._held.clear()
            else:
                time.sleep(max(0.0, next_s - time.monotonic()))

    def status(self) -> dict[str, Any]:
        """Return how it goes, and the stamps that were replaced since it was last asked."""
        permission = self.permission()
        missing = [row.raw for number, row in enumerate(self._config.topics) if number not in self._topics]
        return {
            "granted": permission.granted,
            "why": permission.why,
            "mutator": self._offers.connected,
            "waiting_for": missing,
            "topics": {topic.between.topic: self._told(topic) for topic in self._topics.values()},
        }

    def _told(self, topic: _Topic) -> dict[str, Any]:
        stamps = topic.line.replaced_ns
        replaced = [stamps.popleft() for _ in range(len(stamps))]
        return {**vars(topic.line.counts), "added_ms": topic.added.as_plain(), "replaced_ns": replaced}


class _Events:
    """Tells whoever started this process; who does not read is not waited for."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor
        if descriptor is not None:
            os.set_blocking(descriptor, False)

    def send(self, event: Mapping[str, Any]) -> bool:
        """Tell; return whether somebody is there and reads."""
        if self._descriptor is None:
            return True
        try:
            os.write(self._descriptor, json.dumps(event).encode() + b"\n")
        except (BlockingIOError, BrokenPipeError):
            return False
        return True


def main(args: list[str] | None = None) -> None:
    """Relay until a signal comes."""
    parser = argparse.ArgumentParser(prog="relay", description="Stand in topics of a vehicle; started by `mt inline`.")
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--offers", type=Path, required=True, help="socket that the mutator connects to")
    parser.add_argument("--armed", action="store_true")
    parser.add_argument("--events", type=int)
    given = parser.parse_args(args)
    ended = flag_of_signals()
    try:
        _carry_out(given, ended)
    except MtError as error:
        _Events(given.events).send({"error": str(error)})
        print(f"relay: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def _carry_out(given: argparse.Namespace, ended: Flag) -> None:
    config, events = load_inline_config(given.config), _Events(given.events)
    context = Context()
    rclpy.init(args=[], context=context, signal_handler_options=SignalHandlerOptions.NO)
    node = quiet_node(f"{NODE}_{zlib.crc32(os.fsencode(given.offers.resolve())):08x}", context=context)
    relay = Relay(node, config, given.armed, given.offers)
    executor = quick_executor(context)
    executor.add_node(node)
    gc.freeze()
    told_s = 0.0
    try:
        while not ended.is_set():
            executor.spin_once(timeout_sec=LOOK_EVERY_S / 2)
            if relay.failure is not None:
                raise relay.failure
            if time.monotonic() - told_s > LOOK_EVERY_S:
                told_s = time.monotonic()
                relay.alone = not events.send(relay.status())
    finally:
        relay.close()
        events.send(relay.status())
        executor.shutdown()
        node.destroy_node()
        rclpy.try_shutdown(context=context)


if __name__ == "__main__":
    main()
