# SPDX-License-Identifier: Apache-2.0
"""An arm whose stack somebody else starts and ends (``start: external``), beside a live stack."""

from __future__ import annotations

import math
from typing import Any

from mt_nodes.base.process_clock import process_time_s
from mt_nodes.engine.arm import UnansweredInput
from mt_nodes.engine.arrival import Arrivals
from mt_nodes.engine.judging import Answer, AnswerStatus
from mt_nodes.engine.pairing import Ticket
from mt_nodes.nodes.ros_arm import RosArm
from mt_nodes.runs.live.attendance import Attendance, Presence

#: How often it is looked who is there while all goes well.
LOOK_EVERY_S = 0.1


class ExternalArm(RosArm):
    """An instance that may go away while a run goes on and come back; arguments as of :class:`RosArm`."""

    def __init__(self, *given: Any, arrivals: Arrivals, **more: Any) -> None:
        super().__init__(*given, **{**more, "arrivals": arrivals})
        self._live_arrivals = arrivals
        where = f"{self.name} arm, domain {self._ros.domain}"
        self._attendance = Attendance(f"external stack '{self._stack.name}' ({where})")
        self._looked_s = -math.inf
        self._known_endpoints: frozenset[Any] = frozenset()

    def presence(self) -> Presence:
        """Return whether it is there."""
        if process_time_s() - self._looked_s >= LOOK_EVERY_S:
            self._look()
        return self._attendance.presence

    def ready(self) -> None:
        """Look who is there; nothing is waited for: :meth:`presence` tells of one that is not.

        Raises IsolationError: the domain holds nodes that the stack file does not name.
        """
        self._look()
        self.refuse_unexpected_nodes()

    def wait(self, ticket: Ticket | UnansweredInput, until_s: float | None = None) -> Answer | None:
        """Return the answer; silence only of one that is there, and None as long as that is not known."""
        if isinstance(ticket, UnansweredInput) or self._inbox.wait(ticket, 0.0):
            return super().wait(ticket, until_s)
        away, who = self.presence().away, self._attendance
        if ticket.sent_s <= who.lost_s:
            return None
        if ticket.sent_s <= who.back_s:
            return Answer.nothing(AnswerStatus.SKIPPED, f"not there: {away or who.name}")
        deadline_s = ticket.sent_s + self._stack.deadline_s
        if process_time_s() >= deadline_s:
            self._look()
            if who.unsure(ticket.sent_s, deadline_s, self._live_arrivals.last_output_s):
                return None
        return super().wait(ticket, until_s)

    def status(self) -> dict[str, Any]:
        """Return what diagnostics say of this arm."""
        presence = self._attendance.presence
        return {**super().status(), "away": presence.away, "times_lost": presence.times_lost}

    def _look(self) -> None:
        self._looked_s = process_time_s()
        topics = self._listener.publisher_counts()
        found = (info for topic in topics for info in self._monitor.get_publishers_info_by_topic(topic))
        endpoints = frozenset(tuple(info.endpoint_gid) for info in found)
        lacking = self._meeting.lacking()
        if not lacking and not endpoints <= self._known_endpoints:
            if self._meeting.known():
                self._known_endpoints = endpoints
            else:
                lacking = ["it has not found us yet"]
        self._attendance.look(endpoints, lacking)
