# SPDX-License-Identifier: Apache-2.0
"""Joins inputs with the outputs that answer them, by stamps or by order; the same for topics and recordings."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import ROLES, ImageBoxes, Output
from mt_nodes.relations.stream_checks.base import WatchedInstant

#: Inputs that await answers; each holds its clouds. Outputs that came before their input, and how many inputs before.
MOST_WAITING, MOST_EARLY, MOST_AHEAD = 32, 64, 3


@dataclass(eq=False)
class _WaitingInput:
    bundle: Bundle
    clock_ns: int
    parts: dict[str, Any] = field(default_factory=dict)


class AnswerJoin:
    """Gives instants in the order of their inputs, each once its answer is complete or overdue.

    An output bears the stamp of the input that it answers, or answers the last input before it that lacks its role.
    ``roles``: what an answer consists of; further cameras under their topics. ``wait_s``: so much later an input may be
    that comes while an answer is awaited; then it is given up. ``by_arrival``: no output bears the stamp of its input.
    """

    def __init__(self, roles: Collection[str], wait_s: float, by_arrival: bool = False) -> None:
        self._roles, self._wait_ns, self._by_arrival = frozenset(roles), round(wait_s * 1e9), by_arrival
        self._waiting: deque[_WaitingInput] = deque()
        #: Role, stamp and content of outputs that came before their input, and how many inputs came before them.
        self._early: deque[tuple[str, int, Any, int]] = deque()
        self._inputs = self._clock_ns = 0
        self._last_ns: int | None = None

    def input(self, bundle: Bundle) -> Iterator[WatchedInstant]:
        """Take an input; yield what is ready."""
        # Stamps that go back, as in a looped bag, take no time: what is on its way still comes.
        self._clock_ns += max(0, bundle.stamp_ns - (self._last_ns or bundle.stamp_ns))
        self._last_ns = bundle.stamp_ns
        entry = _WaitingInput(bundle, self._clock_ns)
        # An output whose input was lost must not answer the input of that stamp in another lap of a looped bag.
        self._inputs += 1
        self._early = deque(each for each in self._early if self._inputs - each[3] <= MOST_AHEAD)
        for early in [each for each in self._early if each[1] == bundle.stamp_ns]:
            entry.parts.setdefault(early[0], early[2])
            self._early.remove(early)
        self._waiting.append(entry)
        yield from self._ready()

    def output(self, role: str, stamp_ns: int | None, part: Any) -> Iterator[WatchedInstant]:
        """Take an output; yield what is ready."""
        stamp_ns = None if self._by_arrival else stamp_ns
        # Of two laps with the same stamp the former was given first; what has no stamp answers the last input.
        for entry in reversed(self._waiting) if stamp_ns is None else self._waiting:
            if stamp_ns in (None, entry.bundle.stamp_ns) and role not in entry.parts:
                entry.parts[role] = part
                break
        else:
            if stamp_ns is not None:
                self._early.append((role, stamp_ns, part, self._inputs))
                while len(self._early) > MOST_EARLY:
                    self._early.popleft()
        yield from self._ready()

    def rest(self) -> Iterator[WatchedInstant]:
        """Yield all that waits."""
        while self._waiting:
            yield self._instant(self._waiting.popleft())

    def _ready(self) -> Iterator[WatchedInstant]:
        while self._waiting:
            first, last = self._waiting[0], self._waiting[-1]
            passed = last.clock_ns - first.clock_ns > self._wait_ns
            if not (self._roles <= set(first.parts) or passed or len(self._waiting) > MOST_WAITING):
                return
            yield self._instant(self._waiting.popleft())

    def _instant(self, entry: _WaitingInput) -> WatchedInstant:
        known = {role: part for role, part in entry.parts.items() if role in ROLES}
        other = tuple(part for role, part in entry.parts.items() if role not in ROLES and isinstance(part, ImageBoxes))
        return WatchedInstant(entry.bundle, Output(**known), other)
