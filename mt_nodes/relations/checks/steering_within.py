# SPDX-License-Identifier: Apache-2.0
"""The stack steers as before."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.controls import SteeringCheck, at_most


@dataclass(frozen=True)
class SteeringWithin(SteeringCheck):
    """The follow-up's command steers as the source's, within a tolerance.

    Deviations of the steering are what DeepTest and its followers judge; what is tolerable is the vehicle's affair.
    """

    tolerance: float = param(0.02, low=0.0, high=3.2, help="largest deviation, in rad (steering) or rad/s (yaw_rate)")

    def decide(self, expected: float, after: float) -> Judgement:
        """Compare the two commands."""
        reason = f"steers {after:+.4f}, expected {expected:+.4f} {self.unit}"
        return at_most(abs(after - expected), self.tolerance, self.unit, reason)
