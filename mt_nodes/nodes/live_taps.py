# SPDX-License-Identifier: Apache-2.0
"""Taps of a live system: what its stack is given becomes instants, and all else is handed on byte for byte.

Nothing is published there, and no tap can hold a publisher back: all are best effort, but those of latched topics,
which have one message and could not be heard late otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy

from mt_nodes.base.errors import MtError
from mt_nodes.data.intensity.sensor_reading import SensorBook
from mt_nodes.data.messages import Bundle, Wire
from mt_nodes.data.transforms import TransformTree
from mt_nodes.engine.plan import ReplayedTopic
from mt_nodes.nodes import qos
from mt_nodes.nodes.convert import SENSOR_TYPES
from mt_nodes.nodes.frame_taps import FrameTaps
from mt_nodes.nodes.live_inputs import InstantReader, LiveInputs
from mt_nodes.nodes.raw_subscription import subscribe_raw
from mt_nodes.stacks.stack import Stack

LOOK_EVERY_S = 0.1
CLOCK = "/clock"


class Receives(Protocol):
    """Whoever takes what is tapped."""

    def received(self, bundle: Bundle, wrong: str = "") -> None:
        """Take an instant in."""

    def passes(self, wire: Wire) -> None:
        """Take in a message that is no sensor's."""


class LiveTopics:
    """Finds out how the inputs of a live stack are published.

    ``clock``: ``true``, ``false`` or ``auto``, as ``use_sim_time`` of the configuration.
    """

    def __init__(self, node: Node, stack: Stack, clock: str) -> None:
        self._node, self._clock = node, clock
        # The type of images and radar messages is known from their publishers only; clouds and camera infos have one.
        self._fixed = {topic: SENSOR_TYPES[role] for role in stack.topics for topic in stack.topics[role]}
        self._cameras = (*stack.topics.get("camera", ()), *stack.topics.get("radar", ()))
        self._others = [topic for topic in stack.needs if topic not in self._fixed]

    def missing(self) -> list[str]:
        """Name the topics of which it is not known yet what they carry."""
        clock = [CLOCK] if self._clock == "true" else []
        return [t for t in (*self._cameras, *self._others, *clock) if not self._node.count_publishers(t)]

    def other_topics(self) -> dict[str, ReplayedTopic]:
        """Return how our instances are given what is no sensor's, /clock included where there is one."""
        topics = [*self._others, *([] if self._clock == "false" or CLOCK in self._others else [CLOCK])]
        return {topic: row for topic in topics if (row := self._published(topic)) is not None}

    def sensors(self) -> dict[str, ReplayedTopic]:
        """Return how our instances are given what sensors see."""
        return {topic: self._published(topic) or ReplayedTopic(topic, kind) for topic, kind in self._fixed.items()}

    def _published(self, topic: str) -> ReplayedTopic | None:
        rows = self._node.get_publishers_info_by_topic(topic)
        if not rows:
            return None
        latched = rows[0].qos_profile.durability is DurabilityPolicy.TRANSIENT_LOCAL
        return ReplayedTopic(topic, rows[0].topic_type, latched)


class LiveTaps:
    """Hears instants and everything else, from the moment that it is made.

    Args:
        node: in the live domain, spun by somebody else; what is heard is handed on in that thread.
        stack: whose inputs are tapped.
        transforms: the user's file, to which comes what is heard of frames.
        receiver: who takes it.
    """

    def __init__(
        self, node: Node, stack: Stack, beside: dict[str, ReplayedTopic], transforms: TransformTree, receiver: Receives
    ) -> None:
        self._node, self._receiver = node, receiver
        radars = frozenset(stack.topics.get("radar", ()))
        self._frames = FrameTaps(node, transforms)
        self._reader = InstantReader(self._frames.at, self._frames.track, SensorBook(stack.intensities), radars)
        #: Why nothing more is heard, empty while all is well.
        self.failure = ""
        for row in beside.values():
            profile = qos.LATCHED if row.latched else qos.LIVE_BURSTS
            subscribe_raw(node, row.type, row.topic, self._passing(row), profile)
        within_ns = round(stack.sync_s * 1e9)
        self._inputs = LiveInputs(node, stack.sensor_topics, within_ns, self._received, qos.SENSOR_TAP)
        self._looking = node.create_timer(LOOK_EVERY_S, self._look)

    def _passing(self, row: ReplayedTopic) -> Callable[[bytes], None]:
        def received(data: bytes) -> None:
            self._receiver.passes(Wire(row.topic, row.type, 0, data, came_s=time.monotonic()))

        return received

    def _look(self) -> None:
        try:
            if self._inputs.look():
                self._looking.cancel()
        except MtError as error:  # raised from here, the executor would print where; what to do is in the text
            self.failure = str(error)
            self._looking.cancel()

    def _received(self, wires: Sequence[Wire]) -> None:
        # A stack gets what is between two instants with the second of them, before it.
        loose = self._inputs.passed_over
        every = (*loose, *wires)
        try:
            bundle = self._reader.read(0, wires)
            self._receiver.received(replace(bundle, wires=every, loose=loose))
        except MtError as error:
            self._receiver.received(Bundle(0, 0, wires[0].stamp_ns, wires=every, loose=loose), str(error))
