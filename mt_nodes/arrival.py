# SPDX-License-Identifier: Apache-2.0
"""Finds which output answers which input where outputs may come before the input is known, or bear no stamp."""

from __future__ import annotations

import math
import threading
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mt_nodes.own_time import own_time_s
from mt_nodes.pairing import Strays, Ticket

#: Outputs of one role that are kept for inputs which are not known yet.
KEPT = 256


@dataclass(eq=False)
class _Output:
    arrived_s: float
    stamp_ns: int | None
    payload: Any


class Arrivals:
    """The last outputs of one arm, by stamp and by arrival; an :class:`~mt_nodes.pairing.Inbox` for live input.

    An output with a stamp answers the input of that stamp. One without (with ``match`` ``arrival`` every one) says not
    what it answers: the answer of its role is the last that came within the window after the input, and the ticket
    tells so in ``by_arrival``, for a pair that rests on it is less certain.

    Args:
        roles: what makes an answer.
        match: ``stamp`` or ``arrival``, as the stack file says.
        window_s: how long after an input an output without a stamp answers it.
        before_s: how long before its input was known an answer may have come.
    """

    def __init__(self, roles: Sequence[str], match: str, window_s: float, before_s: float = 0.0) -> None:
        self._roles, self._match = tuple(roles), match
        self._window_s, self._before_s = window_s, before_s
        self._stamped: dict[str, dict[int, deque[_Output]]] = defaultdict(lambda: defaultdict(deque))
        self._order: dict[str, deque[_Output]] = defaultdict(deque)
        self._unstamped: dict[str, deque[_Output]] = defaultdict(lambda: deque(maxlen=KEPT))
        self._changed = threading.Condition()
        #: Own time at which anything was heard last.
        self.heard_s = -math.inf
        self.strays = Strays()
        self.unknown_stamp_ns: int | None = None

    def expect(self, stamp_ns: int) -> Ticket:
        """Open a ticket for an input that an arm is given now."""
        return Ticket(stamp_ns, own_time_s())

    def put(self, role: str, stamp_ns: int | None, payload: Any) -> None:
        """Take an output in."""
        self.heard_s = own_time_s()
        output = _Output(self.heard_s, stamp_ns, payload)
        with self._changed:
            if stamp_ns is None or self._match == "arrival":
                self._unstamped[role].append(output)
            else:
                self._keep(role, stamp_ns, output)
            self._changed.notify_all()

    def complete(self, ticket: Ticket) -> bool:
        """Whether every role that makes an answer has been heard."""
        heard = [role for role in self._roles if role in ticket.parts or self._find(role, ticket)]
        return len(heard) == len(self._roles)

    def wait(self, ticket: Ticket, until_s: float) -> bool:
        """Block until the ticket is complete or the own time ``until_s`` is reached; say which."""
        with self._changed:
            while not self.complete(ticket):
                now_s = own_time_s()
                if now_s >= until_s:
                    return False
                # An answer by arrival is complete when its window is over, which nobody announces.
                over_s = ticket.sent_s + self._window_s
                self._changed.wait((min(over_s, until_s) if over_s > now_s else until_s) - now_s)
            return True

    def close(self, ticket: Ticket) -> None:
        """Expect nothing more for this input: what still comes is forgotten in its turn."""
        ticket.given_up = True

    def between(self, after_ns: int, before_ns: int) -> int:
        """Count the stamps of outputs that lie between two, both left out."""
        with self._changed:
            stamps = {stamp_ns for by_stamp in self._stamped.values() for stamp_ns in by_stamp}
            return sum(after_ns < stamp_ns < before_ns for stamp_ns in stamps)

    def clear(self) -> None:
        """Forget everything (the stack was restarted)."""
        with self._changed:
            for kept in (self._stamped, self._order, self._unstamped):
                kept.clear()

    def _keep(self, role: str, stamp_ns: int, output: _Output) -> None:
        order, by_stamp = self._order[role], self._stamped[role]
        order.append(output)
        by_stamp[stamp_ns].append(output)
        if len(order) > KEPT:
            oldest = order.popleft().stamp_ns
            assert oldest is not None, "only outputs with a stamp are kept by it"
            if same := by_stamp.get(oldest):
                same.popleft()
            if not same:
                by_stamp.pop(oldest, None)

    def _find(self, role: str, ticket: Ticket) -> bool:
        if self._unstamped[role]:
            return self._find_by_arrival(role, ticket)
        # What came long before is of another input with that stamp: of a bag's last loop, for one.
        since_s = ticket.sent_s - self._before_s
        found = next((o for o in self._stamped[role].get(ticket.stamp_ns, ()) if o.arrived_s >= since_s), None)
        if found is not None:
            ticket.parts[role] = (found.payload, found.arrived_s)
        return found is not None

    def _find_by_arrival(self, role: str, ticket: Ticket) -> bool:
        until_s = ticket.sent_s + self._window_s
        if own_time_s() < until_s:
            return False
        within = (o for o in reversed(self._unstamped[role]) if ticket.sent_s < o.arrived_s <= until_s)
        found = next(within, None)
        if found is not None:
            ticket.parts[role] = (found.payload, found.arrived_s)
            ticket.by_arrival.add(role)
        return found is not None
