# SPDX-License-Identifier: Apache-2.0
"""The stack slows down."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.controls import DRIVES, FasterOrSlower, at_least, faster_by, nothing_to_judge
from mt_nodes.relations.checks.speed_not_higher import SpeedNotHigher


@dataclass(frozen=True)
class SlowsDown(FasterOrSlower):
    """The follow-up's speed is lower than the source's, by at least so much: AutoMT's ``slow_down``.

    That is the larger of ``by_at_least_mps`` and ``by_at_least_share`` of the source's speed. Who drives slower than
    ``from_mps`` already need not slow down: NOT_APPLICABLE. Who turns from forwards to backwards, or back, has not
    slowed down, unless it stands. Of a stack that commands an acceleration or pedals in place of a speed, those are
    compared; who brakes harder than ``until_mps2`` or ``until_pedal`` already need not.

    Of control and sham, which give no reason to slow down, it demands that the speed does not rise by as much: how
    far a stack's speed wavers by itself is what is measured against.
    """

    by_at_least_mps: float = param(0.5, low=0.0, high=50.0, unit="m/s", help="how much slower")
    by_at_least_share: float = param(0.0, low=0.0, high=1.0, help="the same as a share of the source's speed")
    from_mps: float = param(1.0, low=0.0, high=50.0, unit="m/s", help="speed from which slowing down is demanded")
    by_at_least_mps2: float = param(0.5, low=0.0, high=20.0, unit="m/s²", help="how much less of an acceleration")
    until_mps2: float = param(3.0, low=0.0, high=20.0, unit="m/s²", help="who brakes so already need not brake harder")
    by_at_least_pedal: float = param(0.1, low=0.0, high=2.0, help="how much less of throttle less brake")
    until_pedal: float = param(0.5, low=0.0, high=1.0, help="who brakes so already need not brake harder")

    @property
    def background(self) -> Check:
        """What control and sham are judged by."""
        amounts = (self.by_at_least_mps, self.by_at_least_share, self.by_at_least_mps2, self.by_at_least_pedal)
        return SpeedNotHigher(self.by, *amounts)

    def decide(self, quantity: str, before: float, after: float) -> Judgement:
        """Compare the commands."""
        unit = DRIVES[quantity]
        fast, fall = (
            (abs(before), -float(faster_by(before, after))) if quantity == "speed" else (before, before - after)
        )
        lowest, least = {
            "speed": (self.from_mps, max(self.by_at_least_mps, self.by_at_least_share * fast)),
            "acceleration": (-self.until_mps2, self.by_at_least_mps2),
            "pedals": (-self.until_pedal, self.by_at_least_pedal),
        }[quantity]
        if fast < lowest:
            return nothing_to_judge(f"{quantity} was {before:.2f} {unit}, below {lowest:g} {unit} already", unit)
        reason = f"{quantity} was {before:.2f}, is {after:.2f} {unit}, at least {least:.2f} less is demanded"
        return at_least(fall, least, unit, reason)
