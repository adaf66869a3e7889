# SPDX-License-Identifier: Apache-2.0
"""The stack reacts in time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.arm_series import SeriesWindow
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.command_series import PartingCheck, first_lasting
from mt_nodes.relations.checks.controls import at_most, nothing_to_judge
from mt_nodes.relations.checks.keeps_current_throughout import KeepsCurrentThroughout


@dataclass(frozen=True)
class ReactionTimeNotLonger(PartingCheck):
    """After the change appears it takes at most ``at_most_s`` until the follow-up's command leaves the source's.

    It has left it from the first instant on at which steering or speed deviate by more than their tolerance for
    ``lasts_s`` on end. Who never does reacts too late, unless the sequence ends before that can be told. The clock runs
    by the stamps of the input, so that what passes between an input and its answer is not in it: that is the latency's
    affair.

    Of control and sham, which give no reason to react, it demands that the command stays the source's.
    """

    at_most_s: float = param(1.0, low=0.0, high=60.0, unit="s", help="longest reaction time")
    lasts_s: float = param(0.0, low=0.0, high=10.0, unit="s", help="for how long on end the command deviates")

    @property
    def background(self) -> Check:
        """What control and sham are judged by."""
        tolerances = (self.tolerance_rad, self.tolerance_mps, self.tolerance_mps2, self.tolerance_pedal)
        return KeepsCurrentThroughout(*tolerances, self.wheelbase_m)

    def judge_series(self, stretch: SeriesWindow) -> Judgement:
        """Look when the follow-up's command leaves the source's."""
        if not stretch.changed.any():
            return nothing_to_judge("nothing is changed", "s")
        shares, change = self.shares(stretch), int(np.argmax(stretch.changed))
        if not np.isfinite(shares[change:]).any():
            return nothing_to_judge("no command is told by both arms", "s")
        parted = shares > 1.0 + 1e-9
        parted[:change] = False
        reacted = first_lasting(parted, stretch.time_s, self.lasts_s)
        appeared = f"the change appears at {stretch.time_s[change]:.2f} s"
        if reacted is None and stretch.time_s[-1] - stretch.time_s[change] < self.at_most_s + self.lasts_s:
            return nothing_to_judge(f"{appeared}, what is judged ends at {stretch.time_s[-1]:.2f} s", "s")
        if reacted is None:
            return Judgement(Outcome.VIOLATED, unit="s", lost=1, reason=f"{appeared}, the command stays the source's")
        reason = f"{appeared}, the command leaves the source's at {stretch.time_s[reacted]:.2f} s"
        return at_most(float(stretch.time_s[reacted] - stretch.time_s[change]), self.at_most_s, "s", reason)
