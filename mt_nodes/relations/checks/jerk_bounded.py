# SPDX-License-Identifier: Apache-2.0
"""The stack drives no more jerkily."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.arm_series import ArmSeries, Numbers, SeriesWindow
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.command_series import CommandSeriesCheck, drive, rate_of_change
from mt_nodes.relations.checks.controls import at_most, nothing_to_judge


@dataclass(frozen=True)
class JerkBounded(CommandSeriesCheck):
    """The largest jerk of the follow-up's commands is at most the source's and a tolerance, or at most a bound.

    Jerk is how fast the commanded acceleration changes: the first difference of an acceleration, or the second of a
    speed where none is told. Pedals say nothing of it.
    """

    than: str = param("source", choices=("source", "bound"), help="what it is compared with")
    tolerance_mps3: float = param(1.0, low=0.0, high=1000.0, unit="m/s³", help="than source: by how much more")
    at_most_mps3: float = param(10.0, low=0.0, high=1000.0, unit="m/s³", help="than bound: the largest")

    def judge_series(self, stretch: SeriesWindow) -> Judgement:
        """Compare the largest jerks."""
        before, after = (self._jerk(course, stretch.time_s) for course in (stretch.source, stretch.followup))
        if not len(before) or not len(after):
            return nothing_to_judge("neither accelerations nor speeds of enough inputs in a row are told", "m/s³")
        bound = before.max() + self.tolerance_mps3 if self.than == "source" else self.at_most_mps3
        reason = f"the largest jerk was {before.max():.2f}, is {after.max():.2f} m/s³"
        return at_most(float(after.max()), float(bound), "m/s³", reason)

    def _jerk(self, course: ArmSeries, time_s: Numbers) -> Numbers:
        """Return the sizes of all that is known of it."""
        acceleration = drive(course, "acceleration")
        if not np.isfinite(acceleration).any():
            acceleration = rate_of_change(drive(course, "speed"), time_s)
        jerk = np.abs(rate_of_change(acceleration, time_s))
        return np.asarray(jerk[np.isfinite(jerk)])
