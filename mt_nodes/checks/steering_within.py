# SPDX-License-Identifier: Apache-2.0
"""The stack steers as before."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.checks.controls import SteeringCheck
from mt_nodes.effects import Effects
from mt_nodes.frames import Bundle
from mt_nodes.outputs import Output
from mt_nodes.params import param
from mt_nodes.verdict import Judgement


@dataclass(frozen=True)
class SteeringWithin(SteeringCheck):
    """The follow-up's command steers as the source's, within a tolerance.

    Deviations of the steering are what DeepTest and its followers judge; what is tolerable is the vehicle's affair.
    """

    tolerance: float = param(0.02, low=0.0, high=3.2, help="largest deviation, in rad (steering) or rad/s (yaw_rate)")

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Compare the two commands."""
        assert source.control is not None and followup.control is not None
        before, after = self.turn(source.control), self.turn(followup.control)
        reason = f"steered {before:+.4f}, now {after:+.4f} {self.unit}"
        return self.within(abs(after - before), self.tolerance, reason)
