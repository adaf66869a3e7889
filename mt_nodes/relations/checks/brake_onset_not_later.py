# SPDX-License-Identifier: Apache-2.0
"""The stack brakes no later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.arm_series import COMMANDED, ArmSeries, SeriesWindow
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.command_series import (
    CommandSeriesCheck,
    drive_along,
    first_lasting,
    rate_of_change,
    told,
)
from mt_nodes.relations.checks.controls import DRIVES, at_most, nothing_to_judge
from mt_nodes.relations.checks.keeps_current_throughout import KeepsCurrentThroughout

_ANY_RAD = 3.2


@dataclass(frozen=True)
class BrakeOnsetNotLater(CommandSeriesCheck):
    """From the source's first braking, or from the change, it takes the follow-up at most so long until it brakes.

    It brakes from the first instant on from which, for ``lasts_s`` on end, it commands a deceleration of
    ``brakes_mps2`` or more: told as an acceleration, or by how a commanded speed falls; or ``brakes_pedal`` more brake
    than throttle. Who never brakes does so too late, unless the sequence ends before that can be told. A source that
    does not brake, or no change, leaves nothing to demand.

    Control and sham, which give no reason to brake, are asked to brake no later than the source; or, where it is
    counted from the change and the source need not brake at all, to go as fast, to within what is braking.
    """

    reads: ClassVar[tuple[str, ...]] = COMMANDED

    than: str = param("source", choices=("source", "change"), help="from when on it is counted")
    by: str = param("told", choices=("told", *DRIVES), help="what says braking; told: the first that the stack tells")
    later_by_at_most_s: float = param(0.2, low=0.0, high=60.0, unit="s", help="longest delay")
    brakes_mps2: float = param(1.0, low=0.01, high=20.0, unit="m/s²", help="deceleration that is braking")
    brakes_pedal: float = param(0.1, low=0.01, high=1.0, help="brake less throttle that is braking")
    lasts_s: float = param(0.1, low=0.0, high=10.0, unit="s", help="for how long on end")

    @property
    def background(self) -> Check:
        """What control and sham are judged by."""
        if self.than == "source":
            return self
        return KeepsCurrentThroughout(
            tolerance_rad=_ANY_RAD, tolerance_mps2=self.brakes_mps2, tolerance_pedal=self.brakes_pedal
        )

    def judge_series(self, stretch: SeriesWindow) -> Judgement:
        """Compare when both arms begin to brake."""
        quantity = told(stretch.source) if self.by == "told" else self.by
        start = self._start(stretch, quantity)
        if start is None:
            missing = "the source does not brake" if self.than == "source" else "nothing is changed"
            return nothing_to_judge(missing, "s")
        first = 0 if self.than == "source" else start
        began = self._onset(stretch.followup, stretch, quantity, first)
        since = f"{self.than} {'brakes' if self.than == 'source' else 'appears'} at {stretch.time_s[start]:.2f} s"
        if began is None and stretch.time_s[-1] - stretch.time_s[start] < self.later_by_at_most_s + self.lasts_s:
            return nothing_to_judge(f"the {since}, what is judged ends at {stretch.time_s[-1]:.2f} s", "s")
        if began is None:
            return Judgement(Outcome.VIOLATED, unit="s", lost=1, reason=f"the {since}, the follow-up never brakes")
        later_s = float(stretch.time_s[began] - stretch.time_s[start])
        reason = f"the {since}, the follow-up brakes at {stretch.time_s[began]:.2f} s"
        return at_most(later_s, self.later_by_at_most_s, "s", reason)

    def _start(self, stretch: SeriesWindow, quantity: str) -> int | None:
        if self.than == "source":
            return self._onset(stretch.source, stretch, quantity, 0)
        return int(np.argmax(stretch.changed)) if stretch.changed.any() else None

    def _onset(self, course: ArmSeries, stretch: SeriesWindow, quantity: str, first: int) -> int | None:
        """Return the row, ``first`` or later, at which an arm begins to brake."""
        values = drive_along(course, quantity)
        if quantity == "speed":
            values = rate_of_change(values, stretch.time_s)
        brakes = values <= -(self.brakes_pedal if quantity == "pedals" else self.brakes_mps2) + 1e-9
        brakes[:first] = False
        return first_lasting(brakes, stretch.time_s, self.lasts_s)
