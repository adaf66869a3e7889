# SPDX-License-Identifier: Apache-2.0
"""The stack drives as fast as before."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Control
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.controls import DriveCheck, at_most


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
