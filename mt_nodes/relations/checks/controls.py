# SPDX-License-Identifier: Apache-2.0
"""Shared code of checks of commands: steering angle or yaw rate; speed, acceleration or pedals."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Control, Output
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import DECIMALS, Check, nothing_to_judge

#: Below this speed a yaw rate says nothing about the steering.
CRAWL_MPS = 0.1
#: At or below this speed, in either direction, a vehicle counts as standing.
STANDS_MPS = 0.3
#: Quantities that command how fast to go, with units; ``pedals`` is throttle minus brake, each 0..1.
DRIVES = {"speed": "m/s", "acceleration": "m/s²", "pedals": "of full pedal"}
Numbers = npt.NDArray[np.float64]
#: Key in the detail of a verdict: the command expected from the source's, and the follow-up's command.
COMMANDED = "commanded"


def _with_commands(judgement: Judgement, expected: float, after: float) -> Judgement:
    rounded = [round(expected, DECIMALS), round(after, DECIMALS)]
    return replace(judgement, detail={**judgement.detail, COMMANDED: rounded})


def _missing_in_followup(what: str, unit: str) -> Judgement:
    return Judgement(Outcome.VIOLATED, unit=unit, lost=1, reason=f"no {what} is told any more, as the source did")


@dataclass(frozen=True)
class SteeringCheck(Check):
    """Base of checks that compare the steering of two commands.

    If a stack commands a yaw rate ``w`` at speed ``v`` instead of a steering angle, the angle follows from the
    single-track model without slip, ``atan(wheelbase * w / v)``; and the reverse. If the mutation swaps left and right,
    the expected command has the opposite sign. A follow-up without steering is a violation.
    """

    needs: ClassVar[tuple[str, ...]] = ("control",)

    of: str = param("steering", choices=("steering", "yaw_rate"), help="what is compared: rad, or rad/s")
    wheelbase_m: float = param(2.7, low=0.5, high=12.0, unit="m", help="between the axles; to tell one from the other")

    def turn(self, control: Control) -> float:
        """Return the compared quantity, positive to the left; NaN if it is unknown."""
        return steering_rad(control, self.wheelbase_m) if self.of == "steering" else yaw_rate(control, self.wheelbase_m)

    @property
    def unit(self) -> str:
        """Unit of the compared quantity."""
        return "rad" if self.of == "steering" else "rad/s"

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Compare the two commands."""
        assert source.control is not None and followup.control is not None
        if undecided := self.unknown(source.control, followup.control):
            return undecided
        expected, after = self.expected(source.control, effects), self.turn(followup.control)
        return _with_commands(self.decide(expected, after), expected, after)

    def unknown(self, source: Control, followup: Control) -> Judgement | None:
        """Return the judgement of a pair whose steering cannot be compared, None if it can."""
        before, after = self.turn(source), self.turn(followup)
        if math.isnan(before) or (math.isnan(after) and steers(followup)):
            return nothing_to_judge(f"no {self.of} is told, or the vehicle stands still", self.unit)
        return _missing_in_followup(self.of, self.unit) if math.isnan(after) else None

    def expected(self, source: Control, effects: Effects) -> float:
        """Return the expected command of the follow-up, if the change at most swaps left and right."""
        return -self.turn(source) if effects.mirrored else self.turn(source)

    @abstractmethod
    def decide(self, expected: float, after: float) -> Judgement:
        """Judge the follow-up's command (``after``) by the expected one."""


@dataclass(frozen=True)
class DriveCheck(Check):
    """Base of checks that compare how fast two commands go.

    A stack may command a speed, an acceleration, or pedals, of which throttle minus brake is compared. A follow-up
    without the quantity of the source is a violation.
    """

    needs: ClassVar[tuple[str, ...]] = ("control",)

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Compare the two commands."""
        assert source.control is not None and followup.control is not None
        quantity = self.quantity(source.control)
        before, after = (self.value(control, quantity) for control in (source.control, followup.control))
        if math.isnan(before):
            return nothing_to_judge(f"no {quantity} is told", DRIVES[quantity])
        if math.isnan(after):
            return _missing_in_followup(quantity, DRIVES[quantity])
        return _with_commands(self.decide(quantity, round(before, DECIMALS), round(after, DECIMALS)), before, after)

    def value(self, control: Control, quantity: str) -> float:
        """Return the compared quantity of a command, NaN if it is missing."""
        return drive(control, quantity)

    @abstractmethod
    def quantity(self, source: Control) -> str:
        """Return the name of the compared quantity: a key of :data:`DRIVES`."""

    @abstractmethod
    def decide(self, quantity: str, before: float, after: float) -> Judgement:
        """Judge the two values, in the unit of the quantity."""


@dataclass(frozen=True)
class FasterOrSlower(DriveCheck):
    """Base of checks that demand more or less speed, in the direction of travel, whatever quantity a stack commands.

    An acceleration counts in the direction of the command's own speed, forwards if it has none.
    """

    by: str = param(
        "told", choices=("told", *DRIVES), help="what is compared; told: the first of these that the stack tells"
    )

    def quantity(self, source: Control) -> str:
        """Return the name of the compared quantity."""
        return drive_name(source) if self.by == "told" else self.by

    def value(self, control: Control, quantity: str) -> float:
        """Return the compared quantity: a speed with its sign, an acceleration in the direction of travel."""
        value = drive(control, quantity)
        return float(along_motion(value, control.speed_mps)) if quantity == "acceleration" else value


def faster_by(before_mps: npt.ArrayLike, after_mps: npt.ArrayLike) -> Numbers:
    """Return by how much the second of two speeds is faster, in m/s, of either sign, for each pair (N,).

    Direction does not matter as long as both drive the same way. A vehicle that drives the other way, and does not
    stand, is faster by all of its speed.
    """
    before, after = np.asarray(before_mps, dtype=np.float64), np.asarray(after_mps, dtype=np.float64)
    other_way = (before * after < 0.0) & (np.abs(after) > STANDS_MPS)
    return np.asarray(np.abs(after) - np.where(other_way, 0.0, np.abs(before)))


def along_motion(acceleration_mps2: npt.ArrayLike, speed_mps: npt.ArrayLike) -> Numbers:
    """Return accelerations in the direction of travel: positive if the vehicle gets faster, also in reverse."""
    acceleration = np.asarray(acceleration_mps2, dtype=np.float64)
    return np.asarray(np.where(np.asarray(speed_mps) < -CRAWL_MPS, -acceleration, acceleration))


def steers(control: Control) -> bool:
    """Return whether a command contains steering."""
    return not (math.isnan(control.steering_rad) and math.isnan(control.yaw_rate_radps))


def steering_rad(control: Control, wheelbase_m: float) -> float:
    """Return the road-wheel angle of a command, computed from the yaw rate if it has no angle; NaN if unknown."""
    if not math.isnan(control.steering_rad):
        return control.steering_rad
    if not abs(control.speed_mps) >= CRAWL_MPS:
        return math.nan
    return math.atan(wheelbase_m * control.yaw_rate_radps / control.speed_mps)


def yaw_rate(control: Control, wheelbase_m: float) -> float:
    """Return the yaw rate of a command in rad/s, computed from the steering angle if it has no rate; NaN if unknown."""
    if not math.isnan(control.yaw_rate_radps):
        return control.yaw_rate_radps
    return control.speed_mps * math.tan(control.steering_rad) / wheelbase_m


def drive(control: Control, quantity: str) -> float:
    """Return one of :data:`DRIVES` of a command, NaN if missing; a missing pedal counts as not pressed."""
    if quantity == "speed":
        return control.speed_mps
    if quantity == "acceleration":
        return control.acceleration_mps2
    if math.isnan(control.throttle) and math.isnan(control.brake):
        return math.nan
    return (0.0 if math.isnan(control.throttle) else control.throttle) - (
        0.0 if math.isnan(control.brake) else control.brake
    )


def drive_name(control: Control) -> str:
    """Return the first of :data:`DRIVES` that a command contains; ``speed`` if it contains none."""
    return next((name for name in DRIVES if not math.isnan(drive(control, name))), "speed")
