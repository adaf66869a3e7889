# SPDX-License-Identifier: Apache-2.0
"""Who sees less does not drive faster."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.controls import DRIVES, FasterOrSlower, at_most, faster_by


@dataclass(frozen=True)
class SpeedNotHigher(FasterOrSlower):
    """The follow-up's speed is at most the source's, but for an allowance.

    The allowance is the larger of ``by_at_most_mps`` and ``by_at_most_share`` of the source's speed; backwards is as
    fast as forwards. Who turns from one to the other may not go faster there than the allowance. Of a stack that
    commands an acceleration or pedals in place of a speed, those are compared, each with an allowance of its own.
    """

    by_at_most_mps: float = param(0.5, low=0.0, high=50.0, unit="m/s", help="rise of the speed that is still none")
    by_at_most_share: float = param(0.0, low=0.0, high=10.0, help="the same as a share of the source's speed")
    by_at_most_mps2: float = param(0.5, low=0.0, high=20.0, unit="m/s²", help="rise of an acceleration")
    by_at_most_pedal: float = param(0.1, low=0.0, high=2.0, help="rise of throttle less brake")

    def decide(self, quantity: str, before: float, after: float) -> Judgement:
        """Compare the commands."""
        allowed = {
            "speed": max(self.by_at_most_mps, self.by_at_most_share * abs(before)),
            "acceleration": self.by_at_most_mps2,
            "pedals": self.by_at_most_pedal,
        }[quantity]
        unit = DRIVES[quantity]
        reason = f"{quantity} was {before:.2f}, is {after:.2f} {unit}, at most {allowed:.2f} more is allowed"
        rise = float(faster_by(before, after)) if quantity == "speed" else after - before
        return at_most(rise, allowed, unit, reason)
