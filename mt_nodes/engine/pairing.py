# SPDX-License-Identifier: Apache-2.0
"""Finds which output answers which input of one arm."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mt_nodes.base.process_clock import process_time_s

#: Of so many inputs the stamps are known after they were answered, to tell a repeated answer from a strange one.
REMEMBERED = 100


@dataclass(eq=False)
class Ticket:
    """One input that awaits its answer.

    Attributes:
        stamp_ns: stamp as emitted: what a stamped answer carries.
        sent_s: process time of sending.
        parts: outputs heard so far, by role, each with the process time of its arrival.
        disturbed: how often this process had stood still before, or the wall clock had been set.
        given_up: whether nobody waits any more; what still comes for it is late.
        by_arrival: roles of which the output was taken for the answer only because it came when it did.
        failure: why no answer comes: the stack raised an exception at this input. Empty otherwise.
    """

    stamp_ns: int
    sent_s: float
    parts: dict[str, tuple[Any, float]] = field(default_factory=dict)
    disturbed: int = field(default_factory=lambda: process_time_s.disturbed)
    given_up: bool = False
    by_arrival: set[str] = field(default_factory=set)
    failure: str = ""


@dataclass
class Strays:
    """Outputs that answered nothing outstanding: repeated ones, late ones, and those with an unknown stamp."""

    repeated: int = 0
    late: int = 0
    unknown: int = 0


class Inbox:
    """Joins the outputs of one arm to its outstanding inputs; safe to use from several threads.

    ``match`` is ``stamp`` (an output with a stamp answers the input of that stamp) or ``order`` (it answers the oldest
    outstanding input). An output without a stamp always answers by order. By order, an input that was given up still
    takes the answer that it is owed: otherwise every answer after a late one would be taken for the next input's.
    Where the stack may keep silent (``owes`` is False) nothing is owed.
    """

    def __init__(self, roles: Sequence[str], match: str = "stamp", owes: bool = True) -> None:
        self._roles = tuple(roles)
        self._match = match
        self._owes = owes
        self._open: list[Ticket] = []
        self._answered: deque[int] = deque(maxlen=REMEMBERED)
        #: Whether the input that was closed last had been answered: then the stack owes nothing.
        self._last_answered = False
        self._changed = threading.Condition()
        self.strays = Strays()
        #: Stamp of the last output since the last input that is no input's.
        self.unknown_stamp_ns: int | None = None

    def expect(self, stamp_ns: int) -> Ticket:
        """Open a ticket for an input that is about to be sent."""
        ticket = Ticket(stamp_ns, process_time_s())
        with self._changed:
            self._open.append(ticket)
            self.unknown_stamp_ns = None
        return ticket

    def put(self, role: str, stamp_ns: int | None, payload: Any) -> None:
        """Take an output in; the first one of a role counts, a second is a stray."""
        with self._changed:
            candidates = self._candidates(stamp_ns)
            ticket = next((t for t in candidates if role not in t.parts), None)
            if ticket is None:
                self._stray(stamp_ns, repeated=bool(candidates))
                return
            ticket.parts[role] = (payload, process_time_s())
            if ticket.given_up:
                self.strays.late += 1
                if self.complete(ticket):
                    self._open.remove(ticket)
            self._changed.notify_all()

    def fail(self, stamp_ns: int | None, reason: str) -> bool:
        """Take in that no answer to the input of this stamp can be read; return whether that is awaited."""
        with self._changed:
            awaited = [t for t in self._open if t.stamp_ns == stamp_ns and not t.given_up]
            for ticket in awaited[:1]:
                ticket.failure = reason
            self._changed.notify_all()
            return bool(awaited)

    def complete(self, ticket: Ticket) -> bool:
        """Whether every role that makes an answer has been heard, or no answer comes."""
        return bool(ticket.failure) or all(role in ticket.parts for role in self._roles)

    def wait(self, ticket: Ticket, until_s: float) -> bool:
        """Block until the ticket is complete or the process time ``until_s`` is reached; say which."""
        with self._changed:
            self._changed.wait_for(lambda: self.complete(ticket), max(0.0, until_s - process_time_s()))
            return self.complete(ticket)

    def close(self, ticket: Ticket) -> None:
        """Expect nothing more for this input: what still comes is a stray."""
        with self._changed:
            ticket.given_up = True
            self._last_answered = self.complete(ticket)
            if self._last_answered:
                self._answered.append(ticket.stamp_ns)
            if self._last_answered or not self._owes:
                self._open.remove(ticket)

    def clear(self) -> None:
        """Forget everything outstanding (the stack was restarted)."""
        with self._changed:
            self._open.clear()
            self._answered.clear()
            self._last_answered = False

    def _stray(self, stamp_ns: int | None, repeated: bool) -> None:
        repeats_last = self._last_answered if self._by_order(stamp_ns) else stamp_ns in self._answered
        if repeated or repeats_last:
            self.strays.repeated += 1
        else:
            self.strays.unknown += 1
            self.unknown_stamp_ns = stamp_ns

    def _candidates(self, stamp_ns: int | None) -> list[Ticket]:
        """Inputs that an output may answer, the first one first: by order the oldest, by stamp the awaited before."""
        if self._by_order(stamp_ns):
            return list(self._open)
        return sorted((t for t in self._open if t.stamp_ns == stamp_ns), key=lambda t: t.given_up)

    def _by_order(self, stamp_ns: int | None) -> bool:
        return self._match == "order" or stamp_ns is None
