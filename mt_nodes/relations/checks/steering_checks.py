# SPDX-License-Identifier: Apache-2.0
"""Checks of the steering of a single command: as the source, mirrored, or further to one side."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Control, Output
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import Check, at_least, at_most, nothing_to_judge
from mt_nodes.relations.checks.controls import DRIVES, SteeringCheck, drive, drive_name, faster_by


@dataclass(frozen=True)
class SteeringWithin(SteeringCheck):
    """The follow-up's steering is the source's, within a tolerance.

    DeepTest and its successors judge deviations of the steering; what is tolerable depends on the vehicle.
    """

    tolerance: float = param(0.02, low=0.0, high=3.2, help="largest deviation, in rad (steering) or rad/s (yaw_rate)")

    def decide(self, expected: float, after: float) -> Judgement:
        """Compare the two commands."""
        reason = f"steers {after:+.4f}, expected {expected:+.4f} {self.unit}"
        return at_most(abs(after - expected), self.tolerance, self.unit, reason)


@dataclass(frozen=True)
class SteeringMirrored(SteeringWithin):
    """If the mutation swaps left and right, the command is the source's with the opposite sign, within a tolerance.

    If it does not, as by control and sham, the stack must steer as before: this shows how far a stack's steering varies
    by itself, as a baseline for its asymmetry.
    """


@dataclass(frozen=True)
class KeepsCurrent(SteeringCheck):
    """Steering and speed stay those of the source, each within its tolerance: AutoMT's ``keep_current``.

    For a stack that commands an acceleration or pedals instead of a speed, those are compared. The deviation that is
    largest relative to its tolerance counts; quantities that the source does not command are not compared.
    """

    tolerance: float = param(0.02, low=0.001, high=3.2, help="of the steering, in rad (steering) or rad/s (yaw_rate)")
    tolerance_mps: float = param(0.5, low=0.001, high=50.0, unit="m/s", help="of the speed")
    tolerance_share: float = param(0.0, low=0.0, high=10.0, help="the same as a share of the source's speed")
    tolerance_mps2: float = param(0.5, low=0.001, high=20.0, unit="m/s²", help="of an acceleration")
    tolerance_pedal: float = param(0.1, low=0.001, high=2.0, help="of throttle less brake")

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Compare the two commands."""
        assert source.control is not None and followup.control is not None
        steering = super().judge(source, followup, effects, bundle)
        driving = self._driving(source.control, followup.control)
        parts = [part for part in (steering, driving) if part.outcome.decided]
        lost = next((part for part in parts if part.measured is None), None)
        if lost is not None or not parts:
            return lost or driving
        worst = max(parts, key=_share)
        off = {part.unit: part.measured for part in parts}
        return at_most(_share(worst), 1.0, "of the tolerance", worst.reason, detail={"off": off})

    def decide(self, expected: float, after: float) -> Judgement:
        """Compare the steering."""
        reason = f"steers {after:+.4f}, expected {expected:+.4f} {self.unit}"
        return at_most(abs(after - expected), self.tolerance, self.unit, reason)

    def _driving(self, source: Control, followup: Control) -> Judgement:
        quantity = drive_name(source)
        before, after, unit = drive(source, quantity), drive(followup, quantity), DRIVES[quantity]
        if math.isnan(before):
            return nothing_to_judge("neither steering nor speed is told", unit)
        if math.isnan(after):
            return Judgement(Outcome.VIOLATED, reason=f"no {quantity} is told any more", unit=unit, lost=1)
        tolerance = {
            "speed": max(self.tolerance_mps, self.tolerance_share * abs(before)),
            "acceleration": self.tolerance_mps2,
            "pedals": self.tolerance_pedal,
        }[quantity]
        reason = f"{quantity} was {before:.2f}, is {after:.2f} {unit}"
        return at_most(self._deviation(quantity, before, after), tolerance, unit, reason)

    def _deviation(self, quantity: str, before: float, after: float) -> float:
        return abs(after - before)


@dataclass(frozen=True)
class StaysBehind(KeepsCurrent):
    """Steering stays that of the source, and speed does not rise, each within its tolerance: no overtaking.

    As :class:`KeepsCurrent`, but a follow-up that slows down behind what was added holds.
    """

    def _deviation(self, quantity: str, before: float, after: float) -> float:
        rise = float(faster_by(before, after)) if quantity == "speed" else after - before
        return max(rise, 0.0)


def _share(part: Judgement) -> float:
    assert part.measured is not None and part.bound is not None
    return part.measured / part.bound


@dataclass(frozen=True)
class TurnCheck(SteeringCheck):
    """Base of checks that demand steering further to one side, than the source or than straight ahead.

    Control and sham give no reason to turn: their steering must not change by more than that.
    """

    by_at_least: float = param(0.05, low=0.0, high=3.2, help="how much further, in rad (steering) or rad/s (yaw_rate)")
    than: str = param("source", choices=("source", "straight"), help="than what: the source's command, or straight on")

    @property
    @abstractmethod
    def side(self) -> float:
        """1 to the left, -1 to the right."""

    @property
    def background(self) -> Check:
        """What control and sham are judged by."""
        return SteeringWithin(self.of, self.wheelbase_m, self.by_at_least)

    def decide(self, expected: float, after: float) -> Judgement:
        """Measure how far to the side the follow-up steers."""
        start = expected if self.than == "source" else 0.0
        where = "left" if self.side > 0 else "right"
        reason = (
            f"steers {after:+.4f}, at least {self.by_at_least:g} to the {where} of {start:+.4f} {self.unit} is asked"
        )
        return at_least(self.side * (after - start), self.by_at_least, self.unit, reason)


@dataclass(frozen=True)
class TurnsLeft(TurnCheck):
    """The follow-up steers further to the left than the source, or than straight ahead: AutoMT's ``turn_left``."""

    side = 1.0


@dataclass(frozen=True)
class TurnsRight(TurnCheck):
    """The follow-up steers further to the right than the source, or than straight ahead: AutoMT's ``turn_right``."""

    side = -1.0
