# SPDX-License-Identifier: Apache-2.0
"""Publishes bundles into an arm: what was not mutated goes out byte for byte."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher
from rosgraph_msgs.msg import Clock

from mt_nodes.cdr import encode_message
from mt_nodes.frames import Bundle
from mt_nodes.nodes import qos
from mt_nodes.nodes.messages import message_class, set_stamp


class BundlePublisher:
    """Publishers of one arm, by topic of the bag.

    Args:
        node: whose publishers they are.
        topics: topic of the bag -> (topic in the arm, message type).
        required: topics of the bag that go out always; others only while somebody listens.
    """

    def __init__(self, node: Node, topics: Mapping[str, tuple[str, str]], required: frozenset[str]) -> None:
        self.incompatible: list[str] = []
        self._required = required
        self._publishers = {topic: self._create(node, name, type_name) for topic, (name, type_name) in topics.items()}

    def publish(self, bundle: Bundle, changed: frozenset[str]) -> None:
        """Send every message of the bundle, in the order of the bag; topics in ``changed`` are encoded anew."""
        mutated = {m.topic: m for m in bundle.messages if m.topic in changed}
        for wire in bundle.wires:
            publisher = self._publishers.get(wire.topic)
            if publisher is None or not self._wanted(wire.topic, publisher):
                continue
            message = mutated.get(wire.topic)
            publisher.publish(wire.cdr if message is None else encode_message(message, wire))

    def heard(self, topic: str) -> bool:
        """Whether somebody subscribes to what carries this topic of the bag."""
        return bool(self._publishers[topic].get_subscription_count())

    def _wanted(self, topic: str, publisher: Publisher) -> bool:
        return topic in self._required or bool(publisher.get_subscription_count())

    def _create(self, node: Node, name: str, type_name: str) -> Publisher:
        def incompatible(event: Any) -> None:
            self.incompatible.append(
                f"a subscriber of {name} asks for another {event.last_policy_kind.name.lower()} than "
                f"{qos.describe(profile)}"
            )

        profile = qos.LATCHED if name.endswith("/tf_static") else qos.REPLAY
        events = PublisherEventCallbacks(incompatible_qos=incompatible, use_default_callbacks=False)
        return node.create_publisher(message_class(type_name), name, profile, event_callbacks=events)


class ClockPublisher:
    """``/clock`` of one arm: never goes back within an episode, never jumps further than a step."""

    def __init__(self, node: Node, topic: str, step_s: float) -> None:
        self._publisher = node.create_publisher(Clock, topic, qos.CLOCK)
        self._step_ns = int(step_s * 1e9)
        self.now_ns: int | None = None
        self.bundle_ns: int | None = None

    def reset(self) -> None:
        """Say that time starts anew with the next call."""
        self.now_ns = self.bundle_ns = None

    def advance(self, to_ns: int) -> None:
        """Publish steps up to and including a bundle's instant; nothing when time is there already."""
        self.bundle_ns = to_ns
        if self.now_ns is not None and to_ns - self.now_ns < 100 * self._step_ns:
            for stamp in range(self.now_ns + self._step_ns, to_ns, self._step_ns):
                self._publish(stamp)
        if self.now_ns is None or to_ns > self.now_ns:
            self._publish(to_ns)

    def tick(self, limit_ns: int) -> None:
        """Go on by one step, but not beyond ``limit_ns``."""
        if self.now_ns is not None and self.now_ns < limit_ns:
            self._publish(min(limit_ns, self.now_ns + self._step_ns))

    def _publish(self, stamp_ns: int) -> None:
        message = Clock()
        set_stamp(message.clock, stamp_ns)
        self._publisher.publish(message)
        self.now_ns = stamp_ns
