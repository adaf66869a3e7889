# SPDX-License-Identifier: Apache-2.0
"""Hears what a stack says in one arm."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription

from mt_nodes import engine
from mt_nodes.engine import Answer
from mt_nodes.frames import Wire
from mt_nodes.nodes import messages, qos
from mt_nodes.nodes.adapters.base import Adapter, Said, adapter_of
from mt_nodes.outputs import Diagnostics, Output
from mt_nodes.pairing import Ticket
from mt_nodes.stack_topics import OutputTopic


class Takes(Protocol):
    """Whoever wants the outputs: an :class:`~mt_nodes.pairing.Inbox`, or what keeps them by stamp."""

    def put(self, role: str, stamp_ns: int | None, payload: Any) -> None:
        """Take an output in."""


@dataclass(frozen=True, eq=False)
class Heard:
    """One output: what was read, and the message as it came."""

    said: Said
    wire: Wire


class OutputListener:
    """Subscribes to the outputs of a stack and hands them to an inbox.

    Starts out reliable, unless told otherwise; where the stack turns out to offer best effort only, the subscription
    is made anew.
    """

    def __init__(
        self,
        node: Node,
        outputs: Mapping[str, OutputTopic],
        rename: Callable[[str], str],
        inbox: Takes,
        profile: QoSProfile = qos.ANSWERS,
    ) -> None:
        self._node = node
        self._inbox = inbox
        self._outputs = {role: (row, rename(row.topic)) for role, row in outputs.items()}
        self._adapters = {role: adapter_of(role, row) for role, row in outputs.items()}
        self._subscriptions: dict[str, Subscription] = {}
        self._downgrade: set[str] = set()
        self.failure: str | None = None
        self._told = threading.Lock()
        self._errors: dict[str, str] | None = None
        for role in outputs:
            self._subscribe(role, profile)

    def heard_from(self) -> dict[str, int]:
        """Say for each output topic how many publish it (and repair a refused QoS on the way)."""
        while self._downgrade:  # which the spinning thread fills meanwhile
            role = self._downgrade.pop()
            self._node.destroy_subscription(self._subscriptions[role])
            self._subscribe(role, qos.ANSWERS_BEST_EFFORT)
        return {self._outputs[role][1]: s.get_publisher_count() for role, s in self._subscriptions.items()}

    def diagnostics(self) -> Diagnostics | None:
        """Return what was told of errors since this was asked last; None as long as nobody has told anything."""
        with self._told:
            errors = self._errors
            self._errors = None if errors is None else {}
        return None if errors is None else Diagnostics(errors)

    def _subscribe(self, role: str, profile: Any) -> None:
        row, topic = self._outputs[role]
        adapter = self._adapters[role]

        def refused(event: Any) -> None:
            self._downgrade.add(role)

        def received(data: bytes) -> None:
            self._take(role, row, adapter, data)

        events = SubscriptionEventCallbacks(incompatible_qos=refused, use_default_callbacks=False)
        self._subscriptions[role] = self._node.create_subscription(
            messages.message_class(row.type), topic, received, profile, raw=True, event_callbacks=events
        )

    def _take(self, role: str, row: OutputTopic, adapter: Adapter, data: bytes) -> None:
        try:
            message = messages.decode(adapter.type, data)
            stamp = adapter.stamp_ns(message)
            said = adapter.decode(message)
        except Exception as error:  # noqa: BLE001 - kept for the thread that waits; this one must go on spinning
            self.failure = f"cannot read {adapter.type} on {row.topic}: {type(error).__name__}: {error}"
            return
        if isinstance(said, Diagnostics):
            with self._told:
                self._errors = {**(self._errors or {}), **said.errors}
            return
        self._inbox.put(role, stamp, Heard(said, Wire(row.topic, row.type, stamp or 0, data)))


def answer_of(ticket: Ticket, last_s: float, diagnostics: Diagnostics | None = None) -> Answer:
    """Return the answer that a ticket's outputs make; the last of them came at own time ``last_s``."""
    parts: dict[str, Heard] = {role: heard for role, (heard, _) in ticket.parts.items()}
    said: dict[str, Any] = {role: heard.said for role, heard in parts.items()}
    # Beside a live stack its answer may be heard before the input is.
    output = Output(**said, diagnostics=diagnostics, answer_ms=round(1e3 * max(0.0, last_s - ticket.sent_s), 3))
    # What carries no stamp of its own is of the instant that it answers.
    wires = (h.wire if h.wire.stamp_ns else replace(h.wire, stamp_ns=ticket.stamp_ns) for h in parts.values())
    return Answer(engine.Heard.ANSWERED, output, wires=tuple(wires), by_arrival=frozenset(ticket.by_arrival))
