# SPDX-License-Identifier: Apache-2.0
"""The ego drives no faster at a place."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.controls import at_most, faster_by
from mt_nodes.relations.checks.stretch import RoadStretch
from mt_nodes.relations.checks.there import ThereCheck


@dataclass(frozen=True)
class DrivesNoFasterThere(ThereCheck):
    """Before and at what was changed the ego is no faster than the source at the same places, on average."""

    by_at_most_mps: float = param(0.5, low=0.0, high=50.0, unit="m/s", help="rise of the speed that is still none")

    def decide(self, stretch: RoadStretch) -> Judgement:
        """Compare the speeds."""
        before, after = float(stretch.before_mps.mean()), float(stretch.after_mps.mean())
        reason = f"the mean speed there was {before:.2f}, is {after:.2f} m/s"
        return at_most(
            float(faster_by(stretch.before_mps, stretch.after_mps).mean()), self.by_at_most_mps, "m/s", reason
        )
