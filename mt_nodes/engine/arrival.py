# SPDX-License-Identifier: Apache-2.0
"""Finds which output answers which input where outputs may come before the input is known, or bear no stamp."""

from __future__ import annotations

import math
import threading
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mt_nodes.base.process_clock import process_time_s
from mt_nodes.engine.pairing import Strays, Ticket

#: Outputs of one role, and stamps of inputs, that are kept.
HISTORY = 256
#: So long before an input is known here that somebody else sends, the stack may have answered it.
AHEAD_S = 1.0


@dataclass(eq=False)
class AwaitedAnswer(Ticket):
    """One input that awaits its answer: an output that arrives between ``since_s`` and ``until_s`` (process time).

    ``lap`` is the pass of a looped bag, or the episode, that it belongs to.
    """

    lap: int = 0
    since_s: float = -math.inf
    until_s: float = math.inf


@dataclass(eq=False)
class _Output:
    arrived_s: float
    stamp_ns: int | None
    payload: Any
    #: The input that it answers.
    of: AwaitedAnswer | None = None


class Arrivals:
    """The last outputs of one arm, by stamp and by arrival; an :class:`~mt_nodes.engine.pairing.Inbox` for live input.

    An output with a stamp answers one input of that stamp, the oldest that lacks it; it arrives after the input has
    gone out, and within the deadline. A looped bag has the same stamps again: as soon as an input of another lap bears
    the stamp, the inputs before it get no further answer. One without a stamp (with ``match`` ``arrival`` every one)
    says not what it answers: the answer of its role is the last that came within the window after the input, and the
    ticket tells so in ``by_arrival``, for a pair that rests on it is less certain.

    Args:
        match: ``stamp`` or ``arrival``, as the stack file says.
        window_s: how long after an input an output without a stamp answers it.
        before_s: how long before its input was known an answer may have come; 0 where the input is sent from here.
        deadline_s: how long after the input an output answers it.
    """

    def __init__(
        self, roles: Sequence[str], match: str, window_s: float, before_s: float = 0.0, deadline_s: float = math.inf
    ) -> None:
        self._roles, self._match = tuple(roles), match
        self._window_s, self._before_s, self._deadline_s = window_s, before_s, deadline_s
        self._stamped: dict[str, dict[int, deque[_Output]]] = defaultdict(lambda: defaultdict(deque))
        self._order: dict[str, deque[_Output]] = defaultdict(deque)
        self._unstamped: dict[str, deque[_Output]] = defaultdict(lambda: deque(maxlen=HISTORY))
        #: By stamp, the one that was used last at the end.
        self._awaited: dict[int, list[AwaitedAnswer]] = {}
        #: When the last inputs went out, and how many outputs without a stamp each role has had since the last one.
        self._sent_s: deque[float] = deque(maxlen=HISTORY)
        self._since_sent: dict[str, int] = {}
        self._changed = threading.Condition()
        #: Process time at which anything was heard last.
        self.last_output_s = -math.inf
        self.strays = Strays()
        #: Stamp of the last output since the last input that is no input's.
        self.unknown_stamp_ns: int | None = None

    def expect(self, stamp_ns: int, lap: int = 0, sent_s: float | None = None) -> AwaitedAnswer:
        """Open a ticket for an input that an arm is given now, or was given at a process time before."""
        sent_s = process_time_s() if sent_s is None else sent_s
        with self._changed:
            same = self._awaited.pop(stamp_ns, [])
            since_s, until_s = sent_s - self._before_s, sent_s + self._deadline_s
            if former := [ticket for ticket in same if ticket.lap != lap]:
                # Of an output that came between the two it is only known which is nearer.
                since_s = max(since_s, (former[-1].sent_s + sent_s) / 2)
                for ticket in former:
                    self._end(ticket, since_s)
            ticket = AwaitedAnswer(stamp_ns, sent_s, lap=lap, since_s=since_s, until_s=until_s)
            self._awaited[stamp_ns] = [*(t for t in same if t is same[-1] or self.lacks(t)), ticket]
            self._sent_s.append(sent_s)
            self._since_sent.clear()
            self.unknown_stamp_ns = None
            for role in self._roles:
                self._join(role, stamp_ns)
            self._forget_inputs()
            return ticket

    def put(self, role: str, stamp_ns: int | None, payload: Any) -> None:
        """Take an output in."""
        self.last_output_s = process_time_s()
        output = _Output(self.last_output_s, stamp_ns, payload)
        with self._changed:
            if stamp_ns is None or self._match == "arrival":
                self._unstamped[role].append(output)
                self._count_unstamped(role)
            else:
                self._keep(role, stamp_ns, output)
                self._join(role, stamp_ns)
                self._count(role, output)
            self._changed.notify_all()

    def complete(self, ticket: Ticket) -> bool:
        """Whether every role that makes an answer has been heard."""
        answered_roles = [role for role in self._roles if role in ticket.parts or self._find_by_arrival(role, ticket)]
        return len(answered_roles) == len(self._roles)

    def wait(self, ticket: Ticket, until_s: float) -> bool:
        """Block until the ticket is complete or the process time ``until_s`` is reached; say which."""
        with self._changed:
            while not self.complete(ticket):
                now_s = process_time_s()
                if now_s >= until_s:
                    return False
                # An answer by arrival is complete when its window is over, which nobody announces.
                over_s = ticket.sent_s + self._window_s
                self._changed.wait((min(over_s, until_s) if over_s > now_s else until_s) - now_s)
            return True

    def close(self, ticket: Ticket) -> None:
        """Expect nothing more for this input: what still comes is forgotten in its turn, what it has is no other's."""
        ticket.given_up = True

    def between(self, after_ns: int, before_ns: int) -> int:
        """Count the stamps of outputs that lie between two, both left out."""
        with self._changed:
            stamps = {stamp_ns for by_stamp in self._stamped.values() for stamp_ns in by_stamp}
            return sum(after_ns < stamp_ns < before_ns for stamp_ns in stamps)

    def clear(self) -> None:
        """Forget everything (the stack was restarted)."""
        with self._changed:
            for data in (self._stamped, self._order, self._unstamped, self._awaited, self._sent_s, self._since_sent):
                data.clear()

    def _join(self, role: str, stamp_ns: int) -> None:
        """Give outputs of a stamp to the inputs that lack them, in their order."""
        for output in (o for o in self._stamped[role].get(stamp_ns, ()) if o.of is None):
            for ticket in self._awaited.get(stamp_ns, ()):
                if role not in ticket.parts and ticket.since_s <= output.arrived_s < ticket.until_s:
                    output.of, ticket.parts[role] = ticket, (output.payload, output.arrived_s)
                    break

    def _end(self, ticket: AwaitedAnswer, until_s: float) -> None:
        """Let an input have no output that came later; what it had of that is free again."""
        ticket.until_s = min(ticket.until_s, until_s)
        for role, by_stamp in self._stamped.items():
            for output in by_stamp.get(ticket.stamp_ns, ()):
                if output.of is ticket and output.arrived_s >= until_s and not ticket.given_up:
                    output.of = None
                    del ticket.parts[role]

    def _count(self, role: str, output: _Output) -> None:
        """Count an output that answers nothing, where it cannot be that of an input which is not known yet."""
        if output.of is not None or self._before_s:
            return
        same = self._awaited.get(output.stamp_ns or 0, ())
        if any(role in ticket.parts for ticket in same):
            self.strays.repeated += 1
        elif same:
            self.strays.late += 1
        else:
            self.strays.unknown += 1
            self.unknown_stamp_ns = output.stamp_ns

    def _count_unstamped(self, role: str) -> None:
        """Count an output as repeated if there were more since the last input than inputs await any."""
        now_s = process_time_s()
        awaiting = sum(now_s <= sent_s + self._window_s for sent_s in self._sent_s)
        self._since_sent[role] = self._since_sent.get(role, 0) + 1
        self.strays.repeated += bool(self._sent_s) and self._since_sent[role] > max(1, awaiting)

    def _forget_inputs(self) -> None:
        """Keep no more than so many stamps, and those that still await an answer."""
        while len(self._awaited) > HISTORY:
            oldest = next(iter(self._awaited))
            if any(map(self.lacks, self._awaited[oldest])):
                return
            del self._awaited[oldest]

    def lacks(self, ticket: AwaitedAnswer) -> bool:
        """Whether an answer, or a part of one, may still come for an input."""
        return process_time_s() < ticket.until_s and not all(role in ticket.parts for role in self._roles)

    def _keep(self, role: str, stamp_ns: int, output: _Output) -> None:
        order, by_stamp = self._order[role], self._stamped[role]
        order.append(output)
        by_stamp[stamp_ns].append(output)
        if len(order) > HISTORY:
            oldest = order.popleft().stamp_ns
            assert oldest is not None, "only outputs with a stamp are kept by it"
            if same := by_stamp.get(oldest):
                same.popleft()
            if not same:
                by_stamp.pop(oldest, None)

    def _find_by_arrival(self, role: str, ticket: Ticket) -> bool:
        until_s = ticket.sent_s + self._window_s
        if not self._unstamped[role] or process_time_s() < until_s:
            return False
        within = (o for o in reversed(self._unstamped[role]) if ticket.sent_s < o.arrived_s <= until_s)
        found = next(within, None)
        if found is not None:
            ticket.parts[role] = (found.payload, found.arrived_s)
            ticket.by_arrival.add(role)
        return found is not None
