# SPDX-License-Identifier: Apache-2.0
"""The stack stops, or brakes as one who is about to."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.controls import (
    DRIVES,
    STANDS_MPS,
    FasterOrSlower,
    at_least,
    at_most,
    nothing_to_judge,
)
from mt_nodes.relations.checks.speed_not_higher import SpeedNotHigher


@dataclass(frozen=True)
class Stops(FasterOrSlower):
    """The follow-up commands a standstill: at most ``at_most_mps`` forwards or backwards, or so much braking.

    It is the stricter reading of a rule that says "stop" or "wait", which AutoMT writes as ``slow_down``. A source
    that drives slower than ``from_mps``, or brakes so already, leaves nothing to demand: NOT_APPLICABLE.

    Of control and sham, which give no reason to stop, it demands that the speed does not rise by as much as it must
    fall at the least.
    """

    at_most_mps: float = param(STANDS_MPS, low=0.0, high=5.0, unit="m/s", help="speed that counts as standing")
    from_mps: float = param(1.0, low=0.0, high=50.0, unit="m/s", help="speed from which stopping is demanded")
    at_least_mps2: float = param(2.0, low=0.0, high=20.0, unit="m/s²", help="deceleration, if that is what is told")
    at_least_pedal: float = param(0.5, low=0.0, high=1.0, help="brake less throttle, if that is what is told")

    def __post_init__(self) -> None:
        if self.from_mps < self.at_most_mps:
            raise UsageError(f"from_mps {self.from_mps:g} is below at_most_mps {self.at_most_mps:g}")

    @property
    def background(self) -> Check:
        """What control and sham are judged by."""
        fall = self.from_mps - self.at_most_mps
        return SpeedNotHigher(self.by, fall, 0.0, self.at_least_mps2, self.at_least_pedal)

    def decide(self, quantity: str, before: float, after: float) -> Judgement:
        """Look whether the follow-up stands or brakes."""
        unit = DRIVES[quantity]
        reason = f"{quantity} was {before:.2f}, is {after:.2f} {unit}"
        if quantity == "speed":
            if abs(before) < self.from_mps:
                return nothing_to_judge(f"drove {before:.2f} m/s, slower than {self.from_mps:g} m/s already", unit)
            return at_most(abs(after), self.at_most_mps, unit, reason)
        least = self.at_least_mps2 if quantity == "acceleration" else self.at_least_pedal
        if -before >= least:
            return nothing_to_judge(f"brakes by {-before:.2f} {unit} already", unit)
        return at_least(-after, least, unit, reason)
