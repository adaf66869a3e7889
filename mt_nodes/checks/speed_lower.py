# SPDX-License-Identifier: Apache-2.0
"""The stack slows down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mt_nodes.checks.base import Check
from mt_nodes.checks.controls import speeds
from mt_nodes.checks.speed_not_higher import SpeedNotHigher
from mt_nodes.effects import Effects
from mt_nodes.frames import Bundle
from mt_nodes.outputs import Output
from mt_nodes.params import param
from mt_nodes.verdict import Judgement, Outcome


@dataclass(frozen=True)
class SpeedLower(Check):
    """The follow-up's speed is lower than the source's, by at least so much.

    That is the larger of ``by_at_least_mps`` and ``by_at_least_share`` of the source's speed. Who drives no faster
    than ``from_mps`` already need not slow down: NOT_APPLICABLE.

    Of control and sham, which give no reason to slow down, it demands that the speed does not rise by as much: how
    far a stack's speed wavers by itself is what is measured against.
    """

    needs: ClassVar[tuple[str, ...]] = ("control",)

    by_at_least_mps: float = param(0.5, low=0.0, high=50.0, unit="m/s", help="how much slower")
    by_at_least_share: float = param(0.0, low=0.0, high=1.0, help="the same as a share of the source's speed")
    from_mps: float = param(1.0, low=0.0, high=50.0, unit="m/s", help="speed from which slowing down is demanded")

    @property
    def background(self) -> Check:
        """What control and sham are judged by."""
        return SpeedNotHigher(self.by_at_least_mps, self.by_at_least_share)

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Compare the speeds."""
        assert source.control is not None and followup.control is not None
        both = speeds(source.control, followup.control)
        if both is None:
            return Judgement(Outcome.NOT_APPLICABLE, reason="no speed is told", unit="m/s")
        before, after = both
        if before < self.from_mps:
            reason = f"drove {before:.2f} m/s, slower than {self.from_mps:g} m/s already"
            return Judgement(Outcome.NOT_APPLICABLE, reason=reason, unit="m/s")
        least = max(self.by_at_least_mps, self.by_at_least_share * before)
        margin = round(before - after - least, 9)
        return Judgement(
            Outcome.VIOLATED if margin < 0.0 else Outcome.HOLDS,
            measured=round(before - after, 9),
            bound=round(least, 9),
            margin=margin,
            unit="m/s",
            reason=f"drove {before:.2f}, now {after:.2f} m/s, at least {least:.2f} m/s less are demanded",
        )
