# SPDX-License-Identifier: Apache-2.0
"""Who sees less does not drive faster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mt_nodes.checks.base import Check
from mt_nodes.checks.controls import speeds
from mt_nodes.effects import Effects
from mt_nodes.frames import Bundle
from mt_nodes.outputs import Output
from mt_nodes.params import param
from mt_nodes.verdict import Judgement, Outcome


@dataclass(frozen=True)
class SpeedNotHigher(Check):
    """The follow-up's speed is at most the source's, but for an allowance.

    The allowance is the larger of ``by_at_most_mps`` and ``by_at_most_share`` of the source's speed.
    """

    needs: ClassVar[tuple[str, ...]] = ("control",)

    by_at_most_mps: float = param(0.5, low=0.0, high=50.0, unit="m/s", help="rise of the speed that is still none")
    by_at_most_share: float = param(0.0, low=0.0, high=10.0, help="the same as a share of the source's speed")

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Compare the speeds."""
        assert source.control is not None and followup.control is not None
        both = speeds(source.control, followup.control)
        if both is None:
            return Judgement(Outcome.NOT_APPLICABLE, reason="no speed is told", unit="m/s")
        before, after = both
        allowed = max(self.by_at_most_mps, self.by_at_most_share * abs(before))
        margin = round(allowed - (after - before), 9)
        return Judgement(
            Outcome.VIOLATED if margin < 0.0 else Outcome.HOLDS,
            measured=round(after - before, 9),
            bound=round(allowed, 9),
            margin=margin,
            unit="m/s",
            reason=f"drove {before:.2f}, now {after:.2f} m/s, at most {allowed:.2f} m/s more are allowed",
        )
