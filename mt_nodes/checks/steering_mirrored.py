# SPDX-License-Identifier: Apache-2.0
"""In a mirror the stack steers to the other side."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.checks.controls import SteeringCheck
from mt_nodes.effects import Effects
from mt_nodes.frames import Bundle
from mt_nodes.outputs import Output
from mt_nodes.params import param
from mt_nodes.verdict import Judgement


@dataclass(frozen=True)
class SteeringMirrored(SteeringCheck):
    """Where the mutation swaps left and right, the command is the source's with the other sign, within a tolerance.

    Where it does not, as with control and sham, the stack must steer as before: how much a stack wavers by itself is
    what its asymmetry is measured against.
    """

    tolerance: float = param(0.02, low=0.0, high=3.2, help="largest deviation, in rad (steering) or rad/s (yaw_rate)")

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Compare the follow-up's command with what is expected of it."""
        assert source.control is not None and followup.control is not None
        before, after = self.turn(source.control), self.turn(followup.control)
        expected = -before if effects.image_mirrored else before
        reason = f"steered {before:+.4f}, now {after:+.4f}, expected {expected:+.4f} {self.unit}"
        return self.within(abs(after - expected), self.tolerance, reason)
