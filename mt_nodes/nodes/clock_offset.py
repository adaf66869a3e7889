# SPDX-License-Identifier: Apache-2.0
"""How far apart the clocks of two computers are, from messages that go there and back.

The way there and the way back take unknown times, and both are at least 0: so of one exchange the offset is known to
half of what it took on its ways (RFC 5905, section 8). Of the last eight the one that took least is believed
(section 10); as it ages, its bound grows by what two clocks may drift apart (PHI, section 7.2).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

#: Exchanges that are kept, as NTP's clock filter does.
EXCHANGES = 8
#: How far two clocks may drift apart, s/s.
PHI = 15e-6
#: Offsets surely above this are warned of: what a stack may take for a message of another instant (its usual sync_s).
TOLERATED_S = 0.02


@dataclass(frozen=True)
class Exchange:
    """One message there and back: our clock when it left and when it came back, theirs in between; ns."""

    sent_ns: int
    received_ns: int
    answered_ns: int
    back_ns: int

    @property
    def offset_s(self) -> float:
        """How far their clock is ahead of ours, were both ways equally long."""
        return ((self.received_ns - self.sent_ns) + (self.answered_ns - self.back_ns)) / 2e9

    @property
    def ways_s(self) -> float:
        """What both ways took together; below 0 if a clock was set meanwhile."""
        return ((self.back_ns - self.sent_ns) - (self.answered_ns - self.received_ns)) / 1e9


@dataclass(frozen=True)
class Offset:
    """Their clock is ahead of ours by ``offset_s``, give or take ``bound_s``; from so many exchanges."""

    offset_s: float
    bound_s: float
    exchanges: int

    @property
    def surely_s(self) -> float:
        """By how much the clocks surely differ, whichever is ahead."""
        return max(0.0, abs(self.offset_s) - self.bound_s)

    def as_plain(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {
            "offset_ms": round(1e3 * self.offset_s, 3),
            "bound_ms": round(1e3 * self.bound_s, 3),
            "exchanges": self.exchanges,
        }

    def warning(self, computer: str) -> str | None:
        """Say what is wrong and what to do, None while the clocks agree as far as is known."""
        if self.surely_s <= TOLERATED_S:
            return None
        side = "ahead of" if self.offset_s > 0 else "behind"
        return (
            f"the clock of {computer} is {1e3 * abs(self.offset_s):.1f} ms {side} ours (give or take "
            f"{1e3 * self.bound_s:.1f} ms), expected at most {1e3 * TOLERATED_S:g} ms: what compares stamps with its "
            "own clock drops or misplaces messages; synchronise both computers with chrony "
            "(`chronyc tracking`) or PTP (`ptp4l` and `phc2sys` of linuxptp)"
        )


class ClockOffset:
    """The offset of one other clock, from the last exchanges with it."""

    def __init__(self) -> None:
        self._exchanges: deque[Exchange] = deque(maxlen=EXCHANGES)

    def add(self, exchange: Exchange) -> bool:
        """Take an exchange; say whether it was one: where a clock was set meanwhile, nothing before counts either."""
        if exchange.ways_s < 0 or exchange.back_ns < exchange.sent_ns:
            self._exchanges.clear()
            return False
        self._exchanges.append(exchange)
        return True

    def estimate(self, now_ns: int) -> Offset | None:
        """Return the offset as it is known at a time of our clock, None before the first exchange."""
        if not self._exchanges:
            return None
        bounds = [(each.ways_s / 2 + PHI * abs(now_ns - each.back_ns) / 1e9, each.offset_s) for each in self._exchanges]
        bound_s, offset_s = min(bounds)
        return Offset(offset_s, bound_s, len(self._exchanges))
