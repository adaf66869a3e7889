# SPDX-License-Identifier: Apache-2.0
"""What checks of commands share: steering and yaw rate, whichever of them a stack commands."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from mt_nodes.checks.base import Check
from mt_nodes.outputs import Control
from mt_nodes.params import param
from mt_nodes.verdict import Judgement, Outcome

#: Slower than this a yaw rate says nothing of the steering.
CRAWL_MPS = 0.1
#: Commands are compared to so many decimals: a message may round the last digits of what was computed.
_DECIMALS = 9


@dataclass(frozen=True)
class SteeringCheck(Check):
    """Base of checks that compare where two commands steer.

    Of a stack that commands a yaw rate ``w`` at a speed ``v`` in place of a steering angle, the angle is that of the
    single-track model without slip, ``atan(wheelbase * w / v)``; and the other way around.
    """

    needs: ClassVar[tuple[str, ...]] = ("control",)

    of: str = param("steering", choices=("steering", "yaw_rate"), help="what is compared: rad, or rad/s")
    wheelbase_m: float = param(2.7, low=0.5, high=12.0, unit="m", help="between the axles; to tell one from the other")

    def turn(self, control: Control) -> float:
        """Return what is compared, positive to the left; NaN where it cannot be known."""
        return steering_rad(control, self.wheelbase_m) if self.of == "steering" else yaw_rate(control, self.wheelbase_m)

    @property
    def unit(self) -> str:
        """Unit of what is compared."""
        return "rad" if self.of == "steering" else "rad/s"

    def within(self, off: float, tolerance: float, reason: str) -> Judgement:
        """Judge a deviation; NaN is NOT_APPLICABLE."""
        if math.isnan(off):
            return Judgement(Outcome.NOT_APPLICABLE, reason=f"no {self.of} is told, or the vehicle stands still")
        off = round(off, _DECIMALS)
        margin = round(tolerance - off, _DECIMALS)
        outcome = Outcome.VIOLATED if margin < 0.0 else Outcome.HOLDS
        return Judgement(outcome, measured=off, bound=tolerance, margin=margin, unit=self.unit, reason=reason)


def steering_rad(control: Control, wheelbase_m: float) -> float:
    """Return the road-wheel angle of a command, from its yaw rate where it holds no other; NaN where unknown."""
    if not math.isnan(control.steering_rad):
        return control.steering_rad
    if not abs(control.speed_mps) >= CRAWL_MPS:
        return math.nan
    return math.atan(wheelbase_m * control.yaw_rate_radps / control.speed_mps)


def yaw_rate(control: Control, wheelbase_m: float) -> float:
    """Return the yaw rate of a command in rad/s, from its steering angle where it holds no other; NaN where unknown."""
    if not math.isnan(control.yaw_rate_radps):
        return control.yaw_rate_radps
    return control.speed_mps * math.tan(control.steering_rad) / wheelbase_m


def speeds(source: Control, followup: Control) -> tuple[float, float] | None:
    """Return both speeds, None where one of them is not told."""
    if math.isnan(source.speed_mps) or math.isnan(followup.speed_mps):
        return None
    return round(source.speed_mps, _DECIMALS), round(followup.speed_mps, _DECIMALS)
