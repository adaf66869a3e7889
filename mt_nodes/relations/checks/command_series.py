# SPDX-License-Identifier: Apache-2.0
"""Shared code of checks over a series of commands: speed, steering, and how long a state lasts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.arm_series import COMMANDED, ArmSeries, Flags, Numbers, SeriesWindow
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import Check, at_most, nothing_to_judge
from mt_nodes.relations.checks.controls import CRAWL_MPS, DRIVES, along_motion
from mt_nodes.relations.checks.sequence import SequenceCheck
from mt_nodes.relations.checks.steering_checks import KeepsCurrent

#: Fields that determine how fast to go.
DRIVING = ("speed_mps", "acceleration_mps2", "throttle", "brake")


@dataclass(frozen=True)
class CommandSeriesCheck(SequenceCheck):
    """Base of checks that judge the commands of a sequence."""

    needs: ClassVar[tuple[str, ...]] = ("control",)
    reads: ClassVar[tuple[str, ...]] = DRIVING


@dataclass(frozen=True)
class PartingCheck(CommandSeriesCheck):
    """Base of checks whether two arms command the same, each quantity within its tolerance.

    For driving, the first of speed, acceleration and pedals that the source commands is compared.
    """

    reads: ClassVar[tuple[str, ...]] = COMMANDED

    tolerance_rad: float = param(0.02, low=0.001, high=3.2, unit="rad", help="of the steering")
    tolerance_mps: float = param(0.5, low=0.001, high=50.0, unit="m/s", help="of the speed")
    tolerance_mps2: float = param(0.5, low=0.001, high=20.0, unit="m/s²", help="of an acceleration")
    tolerance_pedal: float = param(0.1, low=0.001, high=2.0, help="of throttle less brake")
    wheelbase_m: float = param(2.7, low=0.5, high=12.0, unit="m", help="between the axles; for yaw rates")

    @property
    def agreement(self) -> Check:
        """The same check for a single pair."""
        tolerances = (self.tolerance_rad, self.tolerance_mps, 0.0, self.tolerance_mps2, self.tolerance_pedal)
        return KeepsCurrent("steering", self.wheelbase_m, *tolerances)

    def shares(self, stretch: SeriesWindow) -> Numbers:
        """Return (N,) the larger deviation of the follow-up as a share of its tolerance, NaN if there is neither."""
        quantity = drive_name(stretch.source)
        tolerances = {"speed": self.tolerance_mps, "acceleration": self.tolerance_mps2, "pedals": self.tolerance_pedal}
        arms = (stretch.source, stretch.followup)
        driving = np.subtract(*(drive(arm, quantity) for arm in arms)) / tolerances[quantity]
        steering = np.subtract(*(steering_rad(arm, self.wheelbase_m) for arm in arms)) / self.tolerance_rad
        return np.asarray(np.fmax(np.abs(driving), np.abs(steering)))


def drive_name(course: ArmSeries) -> str:
    """Return the first of :data:`DRIVES` that a series contains; ``speed`` if it contains none."""
    return next((name for name in DRIVES if np.isfinite(drive(course, name)).any()), "speed")


def drive(course: ArmSeries, quantity: str) -> Numbers:
    """Return (N,) one of :data:`DRIVES`, NaN if missing; a missing pedal counts as not pressed."""
    if quantity == "speed":
        return course["speed_mps"]
    if quantity == "acceleration":
        return course["acceleration_mps2"]
    pedals = np.stack([course["throttle"], -course["brake"]])
    return np.asarray(np.where(np.isnan(pedals).all(axis=0), np.nan, np.nansum(pedals, axis=0)))


def drive_along(course: ArmSeries, quantity: str) -> Numbers:
    """Return (N,) one of :data:`DRIVES` in the direction of travel: speed without sign, acceleration of the speed."""
    values = drive(course, quantity)
    if quantity == "speed":
        return np.abs(values)
    return along_motion(values, course["speed_mps"]) if quantity == "acceleration" else values


def steering_rad(course: ArmSeries, wheelbase_m: float) -> Numbers:
    """Return (N,) road-wheel angles, computed from the yaw rate if a command has no angle; NaN if unknown."""
    speed = np.where(np.abs(course["speed_mps"]) >= CRAWL_MPS, course["speed_mps"], np.nan)
    other = np.arctan(wheelbase_m * course["yaw_rate_radps"] / speed)
    return np.asarray(np.where(np.isnan(course["steering_rad"]), other, course["steering_rad"]))


def rate_of_change(values: Numbers, time_s: Numbers) -> Numbers:
    """Return (N,) the change per second since the previous row, NaN for the first row and beside gaps."""
    grown = np.full(len(values), np.nan)
    passed = np.diff(time_s)
    grown[1:] = np.divide(np.diff(values), passed, out=np.full(len(passed), np.nan), where=passed > 0.0)
    return grown


def first_sustained(flags: Flags, time_s: Numbers, lasts_s: float) -> int | None:
    """Return the first row from which a flag is set for at least ``lasts_s`` without a break; None if there is none."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]])))
    begins, ends = edges[::2], edges[1::2] - 1
    sustained = begins[time_s[ends] - time_s[begins] >= lasts_s - 1e-9]
    return int(sustained[0]) if len(sustained) else None


def comes_within(stretch: SeriesWindow, flags: Flags, within_s: float, does: str) -> Judgement:
    """Judge that at most ``within_s`` pass from the change until a flag of the follow-up is set.

    A series that ends before that time and before the flag is set decides nothing.
    """
    if not stretch.changed.any():
        return nothing_to_judge("nothing is changed", "s")
    change = int(np.argmax(stretch.changed))
    since_s = stretch.time_s - stretch.time_s[change]
    appears = f"the change appears at {stretch.time_s[change]:.2f} s"
    rows = change + np.flatnonzero(flags[change:])
    if len(rows):
        at_s = stretch.time_s[rows[0]]
        return at_most(float(since_s[rows[0]]), within_s, "s", f"{appears}, the follow-up {does} at {at_s:.2f} s")
    if since_s[-1] < within_s:
        return nothing_to_judge(f"{appears}, what is judged ends {since_s[-1]:.2f} s later", "s")
    reason = f"{appears}, the follow-up never {does} in {since_s[-1]:.2f} s"
    return Judgement(Outcome.VIOLATED, unit="s", lost=1, reason=reason)
