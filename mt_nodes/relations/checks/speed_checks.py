# SPDX-License-Identifier: Apache-2.0
"""Checks of how fast a single command goes: as fast as the source, no faster, slower, or standstill."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.outputs import Control
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.base import Check, at_least, at_most, nothing_to_judge
from mt_nodes.relations.checks.controls import DRIVES, STANDS_MPS, DriveCheck, FasterOrSlower, faster_by


@dataclass(frozen=True)
class AccelerationWithin(DriveCheck):
    """The follow-up's commanded acceleration is the source's, within a tolerance."""

    tolerance_mps2: float = param(0.5, low=0.0, high=50.0, unit="m/s²", help="largest deviation")

    def quantity(self, source: Control) -> str:
        """Return what is compared."""
        return "acceleration"

    def decide(self, quantity: str, before: float, after: float) -> Judgement:
        """Compare the two commands."""
        reason = f"acceleration was {before:.2f}, is {after:.2f} m/s²"
        return at_most(abs(after - before), self.tolerance_mps2, "m/s²", reason)


@dataclass(frozen=True)
class SpeedWithin(DriveCheck):
    """The follow-up's speed is the source's, within the larger of ``tolerance_mps`` and a share of the source's."""

    tolerance_mps: float = param(0.5, low=0.0, high=50.0, unit="m/s", help="largest deviation")
    tolerance_share: float = param(0.0, low=0.0, high=10.0, help="the same as a share of the source's speed")

    def quantity(self, source: Control) -> str:
        """Return what is compared."""
        return "speed"

    def decide(self, quantity: str, before: float, after: float) -> Judgement:
        """Compare the two commands."""
        reason = f"speed was {before:.2f}, is {after:.2f} m/s"
        return at_most(abs(after - before), max(self.tolerance_mps, self.tolerance_share * abs(before)), "m/s", reason)


@dataclass(frozen=True)
class SpeedNotHigher(FasterOrSlower):
    """The follow-up's speed exceeds the source's by at most an allowance.

    The allowance is the larger of ``by_at_most_mps`` and ``by_at_most_share`` of the source's speed; the direction of
    travel does not matter. A follow-up that reverses the direction may not go faster than the allowance there. For a
    stack that commands an acceleration or pedals instead of a speed, those are compared, each with its own allowance.
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


@dataclass(frozen=True)
class SlowsDown(FasterOrSlower):
    """The follow-up's speed is lower than the source's, by at least a margin: AutoMT's ``slow_down``.

    The margin is the larger of ``by_at_least_mps`` and ``by_at_least_share`` of the source's speed. If the source
    drives slower than ``from_mps`` already: NOT_APPLICABLE. Reversing the direction of travel is no slowing down,
    unless the vehicle stands. For a stack that commands an acceleration or pedals instead of a speed, those are
    compared; a source that brakes harder than ``until_mps2`` or ``until_pedal`` already need not.

    Control and sham give no reason to slow down: their speed must not rise by as much. This shows how far a stack's
    speed varies by itself.
    """

    by_at_least_mps: float = param(0.5, low=0.0, high=50.0, unit="m/s", help="how much slower")
    by_at_least_share: float = param(0.0, low=0.0, high=1.0, help="the same as a share of the source's speed")
    from_mps: float = param(1.0, low=0.0, high=50.0, unit="m/s", help="speed from which slowing down is demanded")
    by_at_least_mps2: float = param(0.5, low=0.0, high=20.0, unit="m/s²", help="how much less of an acceleration")
    until_mps2: float = param(3.0, low=0.0, high=20.0, unit="m/s²", help="who brakes so already need not brake harder")
    by_at_least_pedal: float = param(0.1, low=0.0, high=2.0, help="how much less of throttle less brake")
    until_pedal: float = param(0.5, low=0.0, high=1.0, help="who brakes so already need not brake harder")

    @property
    def background(self) -> Check:
        """What control and sham are judged by."""
        amounts = (self.by_at_least_mps, self.by_at_least_share, self.by_at_least_mps2, self.by_at_least_pedal)
        return SpeedNotHigher(self.by, *amounts)

    def decide(self, quantity: str, before: float, after: float) -> Judgement:
        """Compare the commands."""
        unit = DRIVES[quantity]
        fast, fall = (
            (abs(before), -float(faster_by(before, after))) if quantity == "speed" else (before, before - after)
        )
        lowest, least = {
            "speed": (self.from_mps, max(self.by_at_least_mps, self.by_at_least_share * fast)),
            "acceleration": (-self.until_mps2, self.by_at_least_mps2),
            "pedals": (-self.until_pedal, self.by_at_least_pedal),
        }[quantity]
        if fast < lowest:
            return nothing_to_judge(f"{quantity} was {before:.2f} {unit}, below {lowest:g} {unit} already", unit)
        reason = f"{quantity} was {before:.2f}, is {after:.2f} {unit}, at least {least:.2f} less is demanded"
        return at_least(fall, least, unit, reason)


@dataclass(frozen=True)
class Stops(FasterOrSlower):
    """The follow-up commands standstill: at most ``at_most_mps`` in either direction, or enough braking.

    It is the stricter reading of a rule that says "stop" or "wait", which AutoMT writes as ``slow_down``. A source that
    drives slower than ``from_mps``, or brakes that hard already, leaves nothing to demand: NOT_APPLICABLE.

    Control and sham give no reason to stop: their speed must not rise by as much as the least demanded drop.
    """

    at_most_mps: float = param(STANDS_MPS, low=0.0, high=5.0, unit="m/s", help="speed that counts as standing")
    from_mps: float = param(1.0, low=0.0, high=50.0, unit="m/s", help="speed from which stopping is demanded")
    at_least_mps2: float = param(2.0, low=0.0, high=20.0, unit="m/s²", help="deceleration, if that is what is told")
    at_least_pedal: float = param(0.5, low=0.0, high=1.0, help="brake less throttle, if that is what is told")

    def __post_init__(self) -> None:
        if self.from_mps < self.at_most_mps:
            raise UsageError(f"from_mps {self.from_mps:g} is below at_most_mps {self.at_most_mps:g}")

    @property
    def background(self) -> Check:
        """What control and sham are judged by."""
        fall = self.from_mps - self.at_most_mps
        return SpeedNotHigher(self.by, fall, 0.0, self.at_least_mps2, self.at_least_pedal)

    def decide(self, quantity: str, before: float, after: float) -> Judgement:
        """Find whether the follow-up stands or brakes."""
        unit = DRIVES[quantity]
        reason = f"{quantity} was {before:.2f}, is {after:.2f} {unit}"
        if quantity == "speed":
            if abs(before) < self.from_mps:
                return nothing_to_judge(f"drove {before:.2f} m/s, slower than {self.from_mps:g} m/s already", unit)
            return at_most(abs(after), self.at_most_mps, unit, reason)
        least = self.at_least_mps2 if quantity == "acceleration" else self.at_least_pedal
        if -before >= least:
            return nothing_to_judge(f"brakes by {-before:.2f} {unit} already", unit)
        return at_least(-after, least, unit, reason)


@dataclass(frozen=True)
class StartsMoving(FasterOrSlower):
    """The follow-up sets off where the source stands: for rules that let a standing ego go, such as a green light.

    A source that drives faster than ``at_most_mps`` leaves nothing to demand: NOT_APPLICABLE. The speeds are assumed:
    ``at_most_mps`` is that of :class:`Stops`, ``from_mps`` the one from which :class:`SlowsDown` calls it driving.

    Control and sham give no reason to set off: their speed must not rise by as much.
    """

    at_most_mps: float = param(STANDS_MPS, low=0.0, high=5.0, unit="m/s", help="speed that counts as standing")
    from_mps: float = param(1.0, low=0.0, high=50.0, unit="m/s", help="speed that counts as driving")
    at_least_mps2: float = param(0.5, low=0.0, high=20.0, unit="m/s²", help="acceleration, for stacks without a speed")
    at_least_pedal: float = param(0.1, low=0.0, high=1.0, help="throttle less brake, for stacks without a speed")

    def __post_init__(self) -> None:
        if self.from_mps <= self.at_most_mps:
            raise UsageError(f"from_mps {self.from_mps:g} is not above at_most_mps {self.at_most_mps:g}")

    @property
    def background(self) -> Check:
        """What control and sham are judged by."""
        rise = self.from_mps - self.at_most_mps
        return SpeedNotHigher(self.by, rise, 0.0, self.at_least_mps2, self.at_least_pedal)

    def decide(self, quantity: str, before: float, after: float) -> Judgement:
        """Find whether the follow-up sets off."""
        unit = DRIVES[quantity]
        least = {"speed": self.from_mps, "acceleration": self.at_least_mps2, "pedals": self.at_least_pedal}[quantity]
        stands = abs(before) <= self.at_most_mps if quantity == "speed" else before < least
        if not stands:
            return nothing_to_judge(f"{quantity} was {before:.2f} {unit}: it does not stand", unit)
        reason = f"{quantity} was {before:.2f}, is {after:.2f} {unit}, at least {least:.2f} is demanded"
        return at_least(after, least, unit, reason)
