# SPDX-License-Identifier: Apache-2.0
"""An arm whose stack somebody else starts and ends (``start: external``), beside a live stack."""

from __future__ import annotations

import math
from typing import Any

from rclpy.client import Client
from std_srvs.srv import Empty, Trigger

from mt_nodes.arms import Unasked
from mt_nodes.arrival import Arrivals
from mt_nodes.engine import Answer, Heard
from mt_nodes.errors import InfrastructureError, UsageError
from mt_nodes.live.attendance import Attendance, Presence
from mt_nodes.nodes.arm import RosArm
from mt_nodes.own_time import own_time_s
from mt_nodes.pairing import Ticket
from mt_nodes.processes import wait_until

#: Services that make a stack forget, by type.
RESETS = {"std_srvs/srv/Trigger": Trigger, "std_srvs/srv/Empty": Empty}
#: How often it is looked who is there while all goes well; a reply that is lost is asked for again after so long.
LOOK_EVERY_S, ASK_AGAIN_S = 0.1, 2.0


class ExternalArm(RosArm):
    """An instance that may go away while a run goes on and come back; arguments as of :class:`RosArm`."""

    def __init__(self, *given: Any, arrivals: Arrivals, **more: Any) -> None:
        super().__init__(*given, **{**more, "arrivals": arrivals})
        self._arrivals = arrivals
        where = f"{self.name} arm, domain {self._ros.domain}"
        self._attendance = Attendance(f"external stack '{self._stack.name}' ({where})")
        self._looked_s = -math.inf
        self._reset: Client | None = None

    def presence(self) -> Presence:
        """Return whether it is there."""
        if own_time_s() - self._looked_s >= LOOK_EVERY_S:
            self._look()
        return self._attendance.presence

    def ready(self) -> None:
        """Look who is there; nothing is waited for: :meth:`presence` tells of one that is not.

        Raises:
            IsolationError: the domain holds nodes that the stack file does not name.
        """
        self._look()
        self.refuse_strangers()

    def restart(self) -> None:
        """Have it forget, by the service that its file names.

        Raises:
            InfrastructureError: nobody offers it, answers, or it was refused.
            UsageError: it is of another type.
        """
        name, limit_s = self._stack.reset, self._stack.ready_timeout_s
        client = self._reset = self._reset or self._client(name, limit_s)
        reply = None
        until_s = own_time_s() + limit_s
        # May be asked twice: what has forgotten has nothing left to forget.
        while reply is None and own_time_s() < until_s:
            asked = client.call_async(client.srv_type.Request())
            reply = asked.result() if wait_until(asked.done, ASK_AGAIN_S) else None
        if reply is None:
            raise InfrastructureError(
                f"{self._where(name)} has not answered within {limit_s:g} s; see what its node does"
            )
        if not getattr(reply, "success", True):
            raise InfrastructureError(
                f"{self._where(name)} refused: {reply.message}; the stack remembers what it was given"
            )
        self._inbox.clear()

    def wait(self, ticket: Ticket | Unasked, until_s: float | None = None) -> Answer | None:
        """Return the answer; silence only of one that is there, and None as long as that is not known."""
        if isinstance(ticket, Unasked) or self._inbox.wait(ticket, 0.0):
            return super().wait(ticket, until_s)
        away, who = self.presence().away, self._attendance
        if ticket.sent_s <= who.lost_s:
            return None
        if ticket.sent_s <= who.back_s:
            return Answer.nothing(Heard.SKIPPED, f"not there: {away or who.name}")
        deadline_s = ticket.sent_s + self._stack.deadline_s
        if own_time_s() >= deadline_s:
            self._look()
            if who.unsure(ticket.sent_s, deadline_s, self._arrivals.heard_s):
                return None
        return super().wait(ticket, until_s)

    def status(self) -> dict[str, Any]:
        """Return what diagnostics say of this arm."""
        presence = self._attendance.presence
        return {**super().status(), "away": presence.away, "times_lost": presence.times_lost}

    def _look(self) -> None:
        self._looked_s = own_time_s()
        topics = self._listener.heard_from()
        found = (info for topic in topics for info in self._monitor.get_publishers_info_by_topic(topic))
        self._attendance.look({tuple(info.endpoint_gid) for info in found}, self._lacking())

    def _client(self, name: str, limit_s: float) -> Client:
        def types() -> list[str]:
            return dict(self._monitor.get_service_names_and_types()).get(name, [])

        if not wait_until(lambda: bool(types()), limit_s):
            raise InfrastructureError(f"nobody offers {self._where(name)}; start it, or mend reset in the stack file")
        kind = next((RESETS[each] for each in types() if each in RESETS), None)
        if kind is None:
            raise UsageError(f"{self._where(name)} is of type {', '.join(types())}, expected {' or '.join(RESETS)}")
        return self._monitor.create_client(kind, name)

    def _where(self, name: str) -> str:
        return f"reset service {name} of the external stack (domain {self._ros.domain})"
