# SPDX-License-Identifier: Apache-2.0
"""Checks of a series of commands: reaction times, and how commands change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.arm_series import COMMANDED, ArmSeries, Flags, Numbers, SeriesWindow
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import Check, at_most, nothing_to_judge
from mt_nodes.relations.checks.command_series import (
    CommandSeriesCheck,
    PartingCheck,
    comes_within,
    drive,
    drive_along,
    drive_name,
    first_sustained,
    rate_of_change,
    steering_rad,
)
from mt_nodes.relations.checks.controls import DRIVES, STANDS_MPS


@dataclass(frozen=True)
class KeepsCurrentThroughout(PartingCheck):
    """Steering and speed of a sequence stay those of the source, except for a tolerated share of its instants.

    At each instant the quantity with the larger deviation, relative to its tolerance, counts.
    """

    but_for_share: float = param(0.0, low=0.0, high=1.0, help="share of the instants that may deviate further")

    def judge_series(self, stretch: SeriesWindow) -> Judgement:
        """Measure how far the arms diverge."""
        shares = self.shares(stretch)
        known = np.isfinite(shares)
        if not known.any():
            return nothing_to_judge("no command is told by both arms", "of the tolerance")
        measured = float(np.quantile(shares[known], 1.0 - self.but_for_share, method="inverted_cdf"))
        at_s = stretch.time_s[int(np.nanargmax(shares))]
        reason = f"the arms part most at {at_s:.2f} s, by {np.nanmax(shares):.2f} of the tolerance"
        return at_most(measured, 1.0, "of the tolerance", reason)


@dataclass(frozen=True)
class ReactionTimeNotLonger(PartingCheck):
    """The follow-up's command departs from the source's within ``at_most_s`` after the change appears.

    It departs at the first instant from which steering or speed deviate by more than their tolerance for ``lasts_s``
    without a break. A follow-up that never does reacts too late, unless the sequence ends before that is certain. Times
    are stamps of the input, so that the latency between an input and its answer does not count: other checks judge
    that.

    Control and sham give no reason to react: their command must stay that of the source.
    """

    at_most_s: float = param(1.0, low=0.0, high=60.0, unit="s", help="longest reaction time")
    lasts_s: float = param(0.0, low=0.0, high=10.0, unit="s", help="for how long on end the command deviates")

    @property
    def background(self) -> Check:
        """What control and sham are judged by."""
        tolerances = (self.tolerance_rad, self.tolerance_mps, self.tolerance_mps2, self.tolerance_pedal)
        return KeepsCurrentThroughout(*tolerances, self.wheelbase_m)

    def judge_series(self, stretch: SeriesWindow) -> Judgement:
        """Find when the follow-up's command departs from the source's."""
        if not stretch.changed.any():
            return nothing_to_judge("nothing is changed", "s")
        shares, change = self.shares(stretch), int(np.argmax(stretch.changed))
        if not np.isfinite(shares[change:]).any():
            return nothing_to_judge("no command is told by both arms", "s")
        parted = shares > 1.0 + 1e-9
        parted[:change] = False
        reacted = first_sustained(parted, stretch.time_s, self.lasts_s)
        appeared = f"the change appears at {stretch.time_s[change]:.2f} s"
        if reacted is None and stretch.time_s[-1] - stretch.time_s[change] < self.at_most_s + self.lasts_s:
            return nothing_to_judge(f"{appeared}, what is judged ends at {stretch.time_s[-1]:.2f} s", "s")
        if reacted is None:
            return Judgement(Outcome.VIOLATED, unit="s", lost=1, reason=f"{appeared}, the command stays the source's")
        reason = f"{appeared}, the command leaves the source's at {stretch.time_s[reacted]:.2f} s"
        return at_most(float(stretch.time_s[reacted] - stretch.time_s[change]), self.at_most_s, "s", reason)


_ANY_RAD = 3.2


@dataclass(frozen=True)
class BrakeOnsetNotLater(CommandSeriesCheck):
    """The follow-up begins to brake in time, counted from the source's first braking or from the change.

    Braking begins at the first instant from which, for ``lasts_s`` without a break, the command decelerates by at least
    ``brakes_mps2`` (an acceleration, or the change of a commanded speed) or has ``brakes_pedal`` more brake than
    throttle. A follow-up that never brakes brakes too late, unless the sequence ends before that is certain. A source
    that does not brake, or a missing change, leaves nothing to demand.

    Control and sham give no reason to brake: they must brake no later than the source; or, if times count from the
    change and the source need not brake at all, keep the source's speed to within what counts as braking.
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
        quantity = drive_name(stretch.source) if self.by == "told" else self.by
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
        return first_sustained(brakes, stretch.time_s, self.lasts_s)


@dataclass(frozen=True)
class StopsWithin(CommandSeriesCheck):
    """The follow-up commands standstill, or enough braking, within ``within_s`` after the change appears.

    A commanded speed cannot fall faster than the vehicle brakes, so single pairs on the way are not conclusive
    (``stops`` judges those); a stack that commands an acceleration or pedals must command a deceleration. A source that
    drives slower than ``from_mps`` or brakes when the change appears leaves nothing to demand, and the rest of its
    series must last that long: at most ``open_loop_s`` for a stack with memory.

    Control and sham give no reason to stop: their speed must stay that of the source, to within what is demanded.
    """

    reads: ClassVar[tuple[str, ...]] = COMMANDED

    within_s: float = param(1.5, low=0.0, high=60.0, unit="s", help="longest time until it stands, or brakes so")
    at_most_mps: float = param(STANDS_MPS, low=0.0, high=5.0, unit="m/s", help="speed that counts as standing")
    from_mps: float = param(1.0, low=0.0, high=50.0, unit="m/s", help="speed from which stopping is demanded")
    at_least_mps2: float = param(2.0, low=0.01, high=20.0, unit="m/s²", help="deceleration, if that is what is told")
    at_least_pedal: float = param(0.5, low=0.01, high=1.0, help="brake less throttle, if that is what is told")

    def __post_init__(self) -> None:
        if self.from_mps <= self.at_most_mps:
            raise UsageError(f"from_mps {self.from_mps:g} is not above at_most_mps {self.at_most_mps:g}")

    @property
    def background(self) -> Check:
        """What control and sham are judged by."""
        fall = max(self.from_mps - self.at_most_mps, 0.001)
        return KeepsCurrentThroughout(_ANY_RAD, fall, self.at_least_mps2, self.at_least_pedal)

    def judge_series(self, stretch: SeriesWindow) -> Judgement:
        """Find when the follow-up stands."""
        quantity = drive_name(stretch.source)
        before = drive_along(stretch.source, quantity)[int(np.argmax(stretch.changed))]
        if quantity == "speed" and before < self.from_mps:
            return nothing_to_judge(f"drove {before:.2f} m/s, slower than {self.from_mps:g} m/s already", "s")
        if quantity != "speed" and self._enough(quantity, np.array([before]))[0]:
            return nothing_to_judge(f"brakes by {-before:.2f} {DRIVES[quantity]} already", "s")
        does = "stands" if quantity == "speed" else "brakes so"
        return comes_within(
            stretch, self._enough(quantity, drive_along(stretch.followup, quantity)), self.within_s, does
        )

    def _enough(self, quantity: str, values: Numbers) -> Flags:
        """Return (N,) whether the command counts as stopping."""
        most = {"speed": self.at_most_mps, "acceleration": -self.at_least_mps2, "pedals": -self.at_least_pedal}
        return np.asarray(values <= most[quantity] + 1e-9)


_ANY_MPS, _ANY_MPS2, _ANY_PEDAL = 50.0, 20.0, 2.0


@dataclass(frozen=True)
class TurnsWithin(CommandSeriesCheck):
    """The follow-up steers further to one side within ``within_s`` after the change appears.

    Further than the source at the same instant, by at least ``by_at_least_rad`` at the road wheels; for stacks that
    smooth their steering, so that the first instants are not conclusive (``turns_left`` and ``turns_right`` judge
    single ones).

    Control and sham give no reason to turn: their steering must stay within that of the source.
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
        """Find when the follow-up steers that far."""
        source, followup = (steering_rad(arm, self.wheelbase_m) for arm in (stretch.source, stretch.followup))
        further = (1.0 if self.to == "left" else -1.0) * (followup - source)
        enough = further >= self.by_at_least_rad - 1e-9
        return comes_within(stretch, enough, self.within_s, f"steers {self.by_at_least_rad:g} rad to the {self.to}")


@dataclass(frozen=True)
class JerkBounded(CommandSeriesCheck):
    """The largest jerk of the follow-up's commands is at most the source's plus a tolerance, or at most a bound.

    Jerk is the rate of change of the commanded acceleration: the first difference of an acceleration, or the second of
    a speed if there is none. It cannot be computed from pedals.
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
        """Return the absolute values of all known jerks."""
        acceleration = drive(course, "acceleration")
        if not np.isfinite(acceleration).any():
            acceleration = rate_of_change(drive(course, "speed"), time_s)
        jerk = np.abs(rate_of_change(acceleration, time_s))
        return np.asarray(jerk[np.isfinite(jerk)])
