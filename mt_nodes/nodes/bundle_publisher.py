# SPDX-License-Identifier: Apache-2.0
"""Publishes bundles into an arm: what was not mutated goes out byte for byte."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.topic_endpoint_info import TopicEndpointInfo
from rosgraph_msgs.msg import Clock

from mt_nodes.data.cdr.wire import wires_of_bundle
from mt_nodes.data.message_headers import set_stamp
from mt_nodes.data.messages import Bundle
from mt_nodes.data.stack_topics import WORLD_TYPES
from mt_nodes.engine.plan import ReplayedTopic
from mt_nodes.nodes import qos
from mt_nodes.nodes.convert import world_to_message
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.runs.vehicle.budget import AddedByTopic

MOST_STEPS = 10_000
#: Longest time that a node in our domain stayed unseen (measured: 1,055 ms).
DISCOVERY_S = 1.2


class BundlePublisher:
    """Publishers of one arm, by topic of the bag.

    Args:
        topics: topic of the bag -> how the arm is given it.
        required: topics of the bag that go out always, as latched ones do; others only while somebody listens.
        profiles: QoS by topic of the stack, where the user wants another.
    """

    def __init__(
        self,
        node: Node,
        topics: Mapping[str, ReplayedTopic],
        required: frozenset[str],
        profiles: Mapping[str, QoSProfile] | None = None,
    ) -> None:
        self.incompatible: list[str] = []
        #: How much later than it was heard live input went out, by topic of the live system.
        self.added = AddedByTopic(topics)
        self._node = node
        self._profiles = profiles or {}
        self._always = required | {topic for topic, row in topics.items() if row.latched}
        self._types = {topic: row.type for topic, row in topics.items()}
        self._publishers = {topic: self._create(node, row) for topic, row in topics.items()}

    def publish(self, bundle: Bundle, changed: frozenset[str]) -> None:
        """Send every message of the bundle, in the order of the bag; topics in ``changed`` are encoded anew.

        What a world tells goes out as the type that the stack takes it in.
        """
        other = {
            m.topic: m for m in bundle.world_messages if self._types.get(m.topic) not in (None, WORLD_TYPES[m.role])
        }
        for wire in wires_of_bundle(bundle, changed):
            publisher = self._publishers.get(wire.topic)
            if publisher is not None and (wire.topic in self._always or publisher.get_subscription_count()):
                told = other.get(wire.topic)
                publisher.publish(world_to_message(told, self._types[wire.topic]) if told else wire.cdr)
                if wire.came_s is not None:
                    self.added.sent(wire.topic, wire.came_s)

    def subscriber_count(self, topic: str) -> int:
        """Say how many subscribe to what carries this topic of the bag."""
        return int(self._publishers[topic].get_subscription_count())

    def readers(self, topics: Iterable[str]) -> list[TopicEndpointInfo]:
        """Return who subscribes to what carries these topics of the bag."""
        names = (self._publishers[topic].topic_name for topic in topics)
        return [row for name in names for row in self._node.get_subscriptions_info_by_topic(name)]

    @property
    def unconfirmed(self) -> bool:
        """Whether somebody reads best effort: he never says what he has got, nor that he knows of us."""
        found = (row.qos_profile for row in self.readers(self._publishers))
        return any(profile.reliability is ReliabilityPolicy.BEST_EFFORT for profile in found)

    def flush(self, timeout_s: float) -> None:
        """Wait until everybody who confirms it has got what was sent."""
        until_s = time.monotonic() + timeout_s
        for publisher in self._publishers.values():
            publisher.wait_for_all_acked(Duration(seconds=max(0.0, until_s - time.monotonic())))

    def _create(self, node: Node, row: ReplayedTopic) -> Publisher:
        profile = self._profiles.get(row.topic, qos.LATCHED if row.latched else qos.REPLAY)
        return _publisher(node, message_class(row.type), row.topic, profile, self.incompatible)


class ClockPublisher:
    """``/clock`` of one arm: never goes back within an episode, and goes on in steps.

    Only gaps of more than :data:`MOST_STEPS` steps are taken in one jump.
    """

    def __init__(self, node: Node, topic: str, step_s: float) -> None:
        self.incompatible: list[str] = []
        self._publisher = _publisher(node, Clock, topic, qos.CLOCK, self.incompatible)
        self._step_ns = int(step_s * 1e9)
        self.now_ns: int | None = None

    def reset(self) -> None:
        """Say that time starts anew with the next call."""
        self.now_ns = None

    def advance(self, to_ns: int) -> int:
        """Publish steps up to and including an instant, none when time is there already; return what time it is."""
        if self.now_ns is not None and to_ns - self.now_ns < MOST_STEPS * self._step_ns:
            for stamp in range(self.now_ns + self._step_ns, to_ns, self._step_ns):
                self._publish(stamp)
        if self.now_ns is None or to_ns > self.now_ns:
            self._publish(to_ns)
        return max(to_ns, self.now_ns or to_ns)

    def follow(self, to_ns: int) -> None:
        """Publish whole steps, not beyond ``to_ns``."""
        while self.now_ns is not None and self.now_ns + self._step_ns <= to_ns:
            self._publish(self.now_ns + self._step_ns)

    def tick(self, limit_ns: int) -> None:
        """Go on by one step, but not beyond ``limit_ns``."""
        if self.now_ns is not None and self.now_ns < limit_ns:
            self._publish(min(limit_ns, self.now_ns + self._step_ns))

    def _publish(self, stamp_ns: int) -> None:
        message = Clock()
        set_stamp(message.clock, stamp_ns)
        self._publisher.publish(message)
        self.now_ns = stamp_ns


class NoClock:
    """In place of :class:`ClockPublisher` where time is not ours to make: beside a live system."""

    incompatible: tuple[str, ...] = ()

    def reset(self) -> None:
        """Nothing to do."""

    def advance(self, to_ns: int) -> int:
        """Say that it is as late as it is asked to be."""
        return to_ns

    def follow(self, to_ns: int) -> None:
        """Nothing to do."""

    def tick(self, limit_ns: int) -> None:
        """Nothing to do."""


def _publisher(node: Node, message: Any, topic: str, profile: QoSProfile, incompatible: list[str]) -> Publisher:
    """Make a publisher that notes whoever asks for what it does not offer: DDS itself would let him wait in silence."""

    def note(event: Any) -> None:
        policy = event.last_policy_kind.name.lower().removeprefix("rmw_qos_policy_")
        incompatible.append(f"a subscriber of {topic} asks for another {policy} than {qos.describe(profile)}")

    events = PublisherEventCallbacks(incompatible_qos=note, use_default_callbacks=False)
    return node.create_publisher(message, topic, profile, event_callbacks=events)
