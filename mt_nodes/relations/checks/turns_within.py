# SPDX-License-Identifier: Apache-2.0
"""The stack turns in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mt_nodes.base.params import param
from mt_nodes.data.arm_series import COMMANDED, SeriesWindow
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.command_series import CommandSeriesCheck, comes_within, steering_rad
from mt_nodes.relations.checks.keeps_current_throughout import KeepsCurrentThroughout

_ANY_MPS, _ANY_MPS2, _ANY_PEDAL = 50.0, 20.0, 2.0


@dataclass(frozen=True)
class TurnsWithin(CommandSeriesCheck):
    """After the change appears it takes at most ``within_s`` until the follow-up steers further to one side.

    Further than the source at the same instant, by ``by_at_least_rad`` of the road wheels; for stacks that steady their
    steering, of which the first instants (``turns_left`` and ``turns_right`` judge single ones) say little.

    Of control and sham, which give no reason to turn, it demands that the steering stays the source's to within that.
    """

    reads: ClassVar[tuple[str, ...]] = COMMANDED

    to: str = param("left", choices=("left", "right"), help="side to which it must steer further")
    within_s: float = param(1.0, low=0.0, high=60.0, unit="s", help="longest time until it does")
    by_at_least_rad: float = param(0.05, low=0.001, high=3.2, unit="rad", help="how much further")
    wheelbase_m: float = param(2.7, low=0.5, high=12.0, unit="m", help="between the axles; for yaw rates")

    @property
    def background(self) -> Check:
        """What control and sham are judged by."""
        return KeepsCurrentThroughout(self.by_at_least_rad, _ANY_MPS, _ANY_MPS2, _ANY_PEDAL, self.wheelbase_m)

    def judge_series(self, stretch: SeriesWindow) -> Judgement:
        """Look when the follow-up steers so far."""
        source, followup = (steering_rad(arm, self.wheelbase_m) for arm in (stretch.source, stretch.followup))
        further = (1.0 if self.to == "left" else -1.0) * (followup - source)
        enough = further >= self.by_at_least_rad - 1e-9
        return comes_within(stretch, enough, self.within_s, f"steers {self.by_at_least_rad:g} rad to the {self.to}")
