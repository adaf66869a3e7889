# SPDX-License-Identifier: Apache-2.0
"""The stack answers as often."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.arm_series import SeriesWindow
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.controls import at_least, nothing_to_judge
from mt_nodes.relations.checks.sequence import SequenceCheck


@dataclass(frozen=True)
class OutputRateNotLower(SequenceCheck):
    """The follow-up arm answers at least as many inputs a second as the source arm, but for a share.

    Only instants at which both arms were asked count, and time is that of the input's stamps: in lockstep nobody is
    hurried, and what is late is there all the same.
    """

    tolerance_share: float = param(0.05, low=0.0, high=1.0, help="share of the source's rate that may be missing")

    def judge_series(self, stretch: SeriesWindow) -> Judgement:
        """Compare the rates."""
        both, time_s = stretch.compared, stretch.time_s
        if both.sum() < 2 or np.ptp(time_s[both]) <= 0.0:
            return nothing_to_judge("fewer than two instants at which both arms were asked", "Hz")
        # As many intervals as instants, each as long as they are on average.
        lasted_s = np.ptp(time_s[both]) * both.sum() / (both.sum() - 1)
        before, after = (float((arm.answered & both).sum() / lasted_s) for arm in (stretch.source, stretch.followup))
        reason = f"answered {before:.2f}, now {after:.2f} inputs a second"
        return at_least(after, before * (1.0 - self.tolerance_share), "Hz", reason)
