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

from mt_nodes.base.errors import PluginError
from mt_nodes.base.plugins import describe_failure
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.data.messages import Wire
from mt_nodes.data.outputs import Control, Detections, Diagnostics, ImageBoxes, Output
from mt_nodes.data.stack_topics import OutputTopic
from mt_nodes.engine import judging
from mt_nodes.engine.judging import Answer
from mt_nodes.engine.pairing import Inbox, Ticket
from mt_nodes.nodes import message_classes, qos
from mt_nodes.nodes.adapter_choice import adapter_of
from mt_nodes.nodes.raw_subscription import subscribe_raw
from mt_nodes.stacks.command_merger import CommandMerger
from mt_nodes.stacks.message_adapter import Adapter, OutputPart


class OutputSink(Protocol):
    """Whoever wants the outputs: an :class:`~mt_nodes.engine.pairing.Inbox`, or what keeps them by stamp."""

    def put(self, role: str, stamp_ns: int | None, payload: Any) -> None:
        """Take an output in."""


@dataclass(frozen=True, eq=False)
class ReceivedOutput:
    """One output: its decoded part, its message as received, and the other messages of the same command."""

    part: OutputPart
    wire: Wire
    other_wires: tuple[Wire, ...] = ()


@dataclass(eq=False)
class _Tap:
    """One topic that a stack says something on."""

    role: str
    row: OutputTopic
    topic: str
    adapter: Adapter
    subscription: Subscription | None = None
    best_effort: bool = False


class OutputListener:
    """Subscribes to the outputs of a stack and hands them to an inbox.

    Starts out reliable, unless told otherwise; where the stack turns out to offer best effort only, the subscription
    is made anew.

    Args:
        node: whose subscriptions they are. outputs: what is said, by role. rename: takes a topic to that of the arm.
        inbox: who wants it. profile: QoS to begin with.
        within_ns: how far apart the messages of one command may be that is told on several topics.
        classes: what the stack's classes are called here.
    """

    def __init__(
        self,
        node: Node,
        outputs: Mapping[str, OutputTopic],
        rename: Callable[[str], str],
        inbox: OutputSink,
        profile: QoSProfile = qos.ANSWERS,
        within_ns: int = 0,
        classes: Mapping[str, str] | None = None,
    ) -> None:
        self._node, self._classes = node, classes or {}
        self._inbox = inbox
        rows = [(role, row) for role, leading in outputs.items() for row in leading.rows]
        self._taps = [_Tap(role, row, rename(row.topic), adapter_of(role, row)) for role, row in rows]
        self._mergers = {role: self._merger(role, within_ns) for role, row in outputs.items() if row.beside}
        self._downgrade: set[_Tap] = set()
        self.failure: str | None = None
        self._errors_lock = threading.Lock()
        self._errors: dict[str, str] | None = None
        for tap in self._taps:
            self._subscribe(tap, profile)

    def publisher_counts(self) -> dict[str, int]:
        """Say for each output topic how many publish it (and repair a refused QoS on the way)."""
        while self._downgrade:  # which the spinning thread fills meanwhile
            tap = self._downgrade.pop()
            if not tap.best_effort:  # else the one before has said it twice, and what comes meanwhile would be lost
                tap.best_effort = True
                self._node.destroy_subscription(tap.subscription)
                self._subscribe(tap, qos.ANSWERS_BEST_EFFORT)
        return {tap.topic: tap.subscription.get_publisher_count() for tap in self._taps if tap.subscription is not None}

    def forget(self) -> None:
        """Forget parts of commands that wait for the others: the stack was restarted."""
        for merger in self._mergers.values():
            merger.forget()

    def diagnostics(self) -> Diagnostics | None:
        """Return what was told of errors since this was asked last; None as long as nobody has told anything."""
        with self._errors_lock:
            errors = self._errors
            self._errors = None if errors is None else {}
        return None if errors is None else Diagnostics(errors)

    def _merger(self, role: str, within_ns: int) -> CommandMerger:
        taps = [tap for tap in self._taps if tap.role == role]
        by_arrival = not all(tap.adapter.stamped for tap in taps)
        return CommandMerger([tap.row.topic for tap in taps], within_ns, by_arrival)

    def _subscribe(self, tap: _Tap, profile: Any) -> None:
        def refused(event: Any) -> None:
            self._downgrade.add(tap)

        def received(data: bytes) -> None:
            self._take(tap, data)

        events = SubscriptionEventCallbacks(incompatible_qos=refused, use_default_callbacks=False)
        tap.subscription = subscribe_raw(self._node, tap.row.type, tap.topic, received, profile, event_callbacks=events)

    def _take(self, tap: _Tap, data: bytes) -> None:
        adapter, row, stamp = tap.adapter, tap.row, None
        try:
            message = message_classes.decode(adapter.type, data)
            stamp = adapter.stamp_ns(message)
            part = adapter.decode(message)
            if self._classes and isinstance(part, (Detections, ImageBoxes)):
                part = part.renamed(self._classes)
        except Exception as error:  # noqa: BLE001 - kept for the thread that waits; this one must go on spinning
            self._refuse(tap, stamp, error)
            return
        if isinstance(part, Diagnostics):
            with self._errors_lock:
                self._errors = {**(self._errors or {}), **part.errors}
            return
        wire, merger = Wire(row.topic, row.type, stamp or 0, data), self._mergers.get(tap.role)
        if merger is None:
            self._inbox.put(tap.role, stamp, ReceivedOutput(part, wire))
            return
        assert isinstance(part, Control), "only commands are told on several topics"
        command = merger.take(row.topic, part, wire, round(process_time_s() * 1e9))
        if command is not None:
            self._inbox.put(
                tap.role, command.control.stamp_ns, ReceivedOutput(command.control, command.wires[0], command.wires[1:])
            )

    def _refuse(self, tap: _Tap, stamp_ns: int | None, error: Exception) -> None:
        """End the pair whose answer an adapter cannot read; end the run if the message is bad, or of unknown stamp.

        An adapter says by a ``ValueError`` that the message is bad.
        """
        reason = str(PluginError(describe_failure(tap.adapter, "decode", error)))
        if isinstance(error, ValueError):
            self.failure = f"cannot read {tap.adapter.type} on {tap.row.topic}: {type(error).__name__}: {error}"
        elif not (isinstance(self._inbox, Inbox) and self._inbox.fail(stamp_ns, reason)):
            self.failure = reason


def answer_of(ticket: Ticket, last_s: float, diagnostics: Diagnostics | None = None) -> Answer:
    """Return the answer that a ticket's outputs make; the last of them came at process time ``last_s``.

    FAILED if a hosted callable raised an exception, which it survives, or its adapter did.
    """
    if ticket.failure:
        return Answer.nothing(judging.AnswerStatus.FAILED, ticket.failure)
    parts: dict[str, ReceivedOutput] = {role: received for role, (received, _) in ticket.parts.items()}
    outputs: dict[str, Any] = {role: received.part for role, received in parts.items()}
    # Beside a live stack its answer may be heard before the input is.
    output = Output(**outputs, diagnostics=diagnostics, answer_ms=round(1e3 * max(0.0, last_s - ticket.sent_s), 3))
    # What carries no stamp of its own is of the instant that it answers.
    came = (wire for h in parts.values() for wire in (h.wire, *h.other_wires))
    wires = (wire if wire.stamp_ns else replace(wire, stamp_ns=ticket.stamp_ns) for wire in came)
    return Answer(judging.AnswerStatus.ANSWERED, output, wires=tuple(wires), by_arrival=frozenset(ticket.by_arrival))
