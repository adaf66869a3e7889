# SPDX-License-Identifier: Apache-2.0
"""The stack accelerates and brakes as before."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Control
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.controls import DriveCheck, at_most


@dataclass(frozen=True)
class AccelerationWithin(DriveCheck):
    """The follow-up commands the source's acceleration, within a tolerance."""

    tolerance_mps2: float = param(0.5, low=0.0, high=50.0, unit="m/s²", help="largest deviation")

    def quantity(self, source: Control) -> str:
        """Return what is compared."""
        return "acceleration"

    def decide(self, quantity: str, before: float, after: float) -> Judgement:
        """Compare the two commands."""
        reason = f"acceleration was {before:.2f}, is {after:.2f} m/s²"
        return at_most(abs(after - before), self.tolerance_mps2, "m/s²", reason)
