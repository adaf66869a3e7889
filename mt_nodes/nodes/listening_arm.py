# SPDX-License-Identifier: Apache-2.0
"""The source arm beside a live stack: the stack itself, which is only listened to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rclpy.node import Node

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Diagnostics
from mt_nodes.engine.arrival import AHEAD_S, Arrivals
from mt_nodes.engine.judging import Answer, AnswerStatus
from mt_nodes.engine.pairing import Ticket
from mt_nodes.nodes import qos
from mt_nodes.nodes.output_listener import OutputListener, answer_of
from mt_nodes.stacks.stack import Stack


class ListeningArm:
    """An arm whose stack somebody else runs and feeds: nothing is published, started or ended here.

    ``node``: in the live domain. ``window_s``: how long after an input an output without a stamp answers it.
    """

    def __init__(self, node: Node, stack: Stack, window_s: float) -> None:
        self.name = "source"
        self._stack = stack
        self._inbox = Arrivals(stack.answers, stack.match, window_s, AHEAD_S, stack.deadline_s)
        self._listener = OutputListener(
            node, stack.outputs, lambda topic: topic, self._inbox, qos.LIVE_BURSTS, **stack.reading
        )
        self._answer_ms: float | None = None

    def start(self) -> None:
        """Nothing to do: it runs, or will."""

    def ready(self) -> None:
        """Nothing to wait for: a live stack that is silent is a finding, not a reason to stop."""

    def restart(self) -> None:
        """Never done: the live stack is nobody's to end. Raises InfrastructureError: always."""
        raise InfrastructureError("the live stack is not ours to restart")

    def begin_episode(self) -> None:
        """Nothing to do: its time is its own."""

    def final_diagnostics(self) -> Diagnostics | None:
        """Return what was told of errors since the last answer, as far as it has come by now."""
        return self._listener.diagnostics()

    def pass_time(self, stamp_ns: int) -> None:
        """Nothing to do: its time is its own."""

    def stop(self) -> None:
        """Nothing to end; the context that the node is in takes it along."""

    def send(
        self,
        bundle: Bundle,
        changed: frozenset[str],
        source_ns: int | None = None,
        delay_ns: int = 0,
        late: Sequence[Bundle] = (),
    ) -> Ticket:
        """Await the answer to an instant that the live stack has got by itself; nothing is sent."""
        return self._inbox.expect(bundle.stamp_ns, bundle.episode)

    def publish_only(
        self, bundle: Bundle, changed: frozenset[str] = frozenset(), source_ns: int | None = None, delay_ns: int = 0
    ) -> None:
        """Nothing to do: it has everything."""

    def wait(self, ticket: Ticket, until_s: float | None = None) -> Answer | None:
        """Return the answer, or silence at the deadline."""
        if self._listener.failure:
            raise InfrastructureError(f"live stack: {self._listener.failure}")
        deadline_s = ticket.sent_s + self._stack.deadline_s
        if self._inbox.wait(ticket, deadline_s if until_s is None else min(deadline_s, until_s)):
            last_s = max(arrived_s for _, arrived_s in ticket.parts.values())
            answer = answer_of(ticket, last_s, self._listener.diagnostics())
            self._answer_ms = answer.output.answer_ms
            return answer
        if process_time_s() < deadline_s:
            return None
        silent = [role for role in self._stack.answers if role not in ticket.parts]
        missing = [row.topic for role in silent for row in self._stack.outputs[role].rows]
        away = [topic for topic, count in self._listener.publisher_counts().items() if topic in missing and not count]
        why = f"; nobody publishes {', '.join(away)}" if away else ""
        return Answer.nothing(AnswerStatus.SILENT, f"no {', '.join(missing)} within {self._stack.deadline_s:g} s{why}")

    def missed(self, after_ns: int, before_ns: int) -> int:
        """Count the inputs between two stamps that the live stack has answered: if we had none, our taps lost them."""
        return self._inbox.between(after_ns, before_ns)

    def status(self) -> dict[str, Any]:
        """Return what diagnostics say of this arm."""
        publishers = self._listener.publisher_counts()
        return {"answer_ms": self._answer_ms, "silent": ", ".join(t for t, count in publishers.items() if not count)}
