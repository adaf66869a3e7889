# SPDX-License-Identifier: Apache-2.0
"""Longitudinal control behind another vehicle: following, emergency braking, and limited jerk otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np


@dataclass(frozen=True)
class Lead:
    """The lead vehicle: the gap to it, the closing speed, and its row among the obstacles."""

    gap_m: float
    closing_mps: float
    row: int


@dataclass(frozen=True)
class Following:
    """The parameters of a careful driver's acceleration.

    Attributes:
        time_gap_s, standstill_m: the gap that is kept is the road of so many seconds, and so much more.
        acceleration_mps2, braking_mps2: largest, and comfortable.
        emergency_s, emergency_mps2: with less time to a collision all brakes are used.
        jerk_mps3, emergency_jerk_mps3: how fast the acceleration may change, and that of brakes.
    """

    time_gap_s: float
    standstill_m: float
    acceleration_mps2: float
    braking_mps2: float
    emergency_s: float
    emergency_mps2: float
    jerk_mps3: float
    emergency_jerk_mps3: float

    def wanted_mps2(self, speed_mps: float, cruise_mps: float, lead: Lead | None) -> float:
        """Return the acceleration of the Intelligent Driver Model, or that of full braking.

        a (1 - (v / v0)⁴ - (s* / s)²) with s* = s0 + v T + v dv / (2 sqrt(a b)), of M. Treiber, A. Hennecke and D.
        Helbing, 2000, here as given at traffic-simulation.de; s is the gap, dv how fast it shrinks. Never less than
        all brakes give. That they are used by the time to a collision is common; their limits are assumptions.
        """
        free = 1.0 - (speed_mps / cruise_mps) ** 4
        if lead is None:
            return max(-self.braking_mps2, self.acceleration_mps2 * free)
        if self.emergency(lead):
            return -self.emergency_mps2
        approach_m = speed_mps * lead.closing_mps / (2.0 * sqrt(self.acceleration_mps2 * self.braking_mps2))
        wished_m = self.standstill_m + max(0.0, speed_mps * self.time_gap_s + approach_m)
        acceleration = self.acceleration_mps2 * (free - (wished_m / max(lead.gap_m, 0.1)) ** 2)
        return max(-self.emergency_mps2, acceleration)

    def emergency(self, lead: Lead | None) -> bool:
        """Tell whether comfortable braking is no longer enough."""
        return lead is not None and lead.gap_m < self.emergency_s * lead.closing_mps

    def most_change_mps2(self, lead: Lead | None, elapsed_s: float) -> float:
        """Return the largest change of the acceleration within a time."""
        return (self.emergency_jerk_mps3 if self.emergency(lead) else self.jerk_mps3) * elapsed_s


def eased(wanted_mps2: float, before_mps2: float, most_change_mps2: float) -> float:
    """Return the acceleration nearest to the target within the allowed change from the previous one."""
    return float(np.clip(wanted_mps2, before_mps2 - most_change_mps2, before_mps2 + most_change_mps2))
