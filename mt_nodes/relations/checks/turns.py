# SPDX-License-Identifier: Apache-2.0
"""What checks that ask for a turn share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.controls import SteeringCheck, at_least
from mt_nodes.relations.checks.steering_within import SteeringWithin


@dataclass(frozen=True)
class TurnCheck(SteeringCheck):
    """Base of checks that ask for steering to one side, by at least so much more than the source, or than straight.

    Of control and sham, which give no reason to turn, it demands that the steering changes by no more than that.
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
        """Look how far to the side the follow-up steers."""
        start = expected if self.than == "source" else 0.0
        where = "left" if self.side > 0 else "right"
        reason = (
            f"steers {after:+.4f}, at least {self.by_at_least:g} to the {where} of {start:+.4f} {self.unit} is asked"
        )
        return at_least(self.side * (after - start), self.by_at_least, self.unit, reason)
