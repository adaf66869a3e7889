# SPDX-License-Identifier: Apache-2.0
"""How relations take turns on live input: settle, test for a while, make place for the next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from mt_nodes.engine.judging import Offer
from mt_nodes.engine.open_loop import commands
from mt_nodes.runs.live.config import Segments

EXTERNAL_STACK = (
    "the stack is external, so we do not restart it; name a service that makes it forget (reset: in its file)"
)


class Phase(str, Enum):
    """What an instant is used for: to see that the arms agree, or to test a relation."""

    SETTLING = "settling"
    TESTING = "testing"


class Next(str, Enum):
    """What is to be done now that the arms have not agreed for long."""

    CONTINUE = "go on"
    RESTART = "restart"
    GAVE_UP = "gave up"


@dataclass(frozen=True)
class Turn:
    """What one instant is used for.

    ``round``: how often everybody had a turn before. ``stretch``: changes whenever the arms have to agree anew; what an
    older one came to says nothing any more.
    """

    offer: Offer
    phase: Phase
    segment: int
    round: int
    stretch: int


class Rotation:
    """The state of the rotation; it knows neither input nor arms, and time only as it is told.

    ``offers``: control first, sham last, relations between them. ``segments``: how long what lasts. ``remembers``:
    whether the stack's answers depend on former inputs.
    """

    def __init__(self, offers: Sequence[Offer], segments: Segments, *, remembers: bool) -> None:
        self._all = self._order = tuple(offers)
        self.segments = segments
        self._remembers = remembers
        self._at = self._segment = self._stretch = self._round = 0
        self._tested = self._restarts = self._agreed = self._waited = 0
        #: When the arms agreed, None: they have not yet.
        self._settled_s: float | None = None

    @property
    def offer(self) -> Offer:
        """Whose turn it is."""
        return self._order[self._at]

    @property
    def needed(self) -> int:
        """How many inputs in a row the arms must agree on: of a stack without memory one says all."""
        return self.segments.settle_bundles if self._remembers else 1

    @property
    def agreed(self) -> int:
        """How many inputs in a row the arms have agreed on."""
        return self._agreed

    def turn(self, now_s: float) -> Turn:
        """Return what the next instant is used for."""
        if self._tested >= self.segments.test_bundles:
            self._next()
        elif self._settled_s is not None and now_s - self._settled_s > self._horizon_s():
            self.settle_anew()
        phase = Phase.SETTLING if self._settled_s is None else Phase.TESTING
        return Turn(self.offer, phase, self._segment, self._round, self._stretch)

    def tested(self) -> None:
        """Count an instant that the test of this turn was given."""
        self._tested += 1

    def settled(self, turn: Turn, agrees: bool | None, now_s: float) -> Next:
        """Take in whether the arms agreed on an instant (None: nothing can be said) and return what is to be done."""
        if turn.stretch != self._stretch or self._settled_s is not None:
            return Next.CONTINUE
        self._agreed = self._agreed + 1 if agrees else 0
        if self._agreed >= self.needed:
            self._settled_s = now_s
            return Next.CONTINUE
        self._waited += agrees is not None
        if self._waited < self.segments.restart_after_bundles:
            return Next.CONTINUE
        if self._restarts >= self.segments.give_up_after_restarts:
            self._next()
            return Next.GAVE_UP
        self._restarts += 1
        self.settle_anew()
        return Next.RESTART

    def settle_anew(self) -> None:
        """Have the arms agree anew before the test goes on: what they heard last was not the same."""
        self._stretch += 1
        self._settled_s = None
        self._agreed = self._waited = 0

    def interrupted(self) -> None:
        """Settle anew if the stack remembers; any other can be judged at once."""
        if self._remembers:
            self.settle_anew()

    def choose(self, relations: Sequence[str]) -> None:
        """Let only these relations take turns, in this order; a turn that is none of theirs ends."""
        by_id = {offer.relation.id: offer for offer in self._all}
        now = self.offer
        self._order = (self._all[0], *(by_id[name] for name in relations), self._all[-1])
        if now in self._order:
            self._at = self._order.index(now)
        else:
            self._at, self._segment = 0, self._segment + 1
            self._begin_segment()

    def _next(self) -> None:
        self._at = (self._at + 1) % len(self._order)
        self._segment += 1
        self._round += self._at == 0
        self._begin_segment()

    def _begin_segment(self) -> None:
        self._tested = self._restarts = 0
        self.settle_anew()

    def _horizon_s(self) -> float:
        drives = any(commands(judge) for judge in self.offer.judges)
        return self.segments.control_horizon_s if self._remembers and drives else math.inf
