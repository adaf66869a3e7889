# SPDX-License-Identifier: Apache-2.0
"""The ego slows down at a place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.controls import at_least, faster_by, nothing_to_judge
from mt_nodes.relations.checks.drives_no_faster_there import DrivesNoFasterThere
from mt_nodes.relations.checks.stretch import RoadStretch
from mt_nodes.relations.checks.there import ThereCheck


@dataclass(frozen=True)
class SlowsDownThere(ThereCheck):
    """Before and at what was changed the ego is slower than the source at the same places, on average: ``slow_down``.

    Who comes to a stop before it drives 0 from there on. Where the source drives slower than ``from_mps`` already, or
    hardly faster than a limit that is new there, nothing is to demand. Of control and sham it demands that the speed
    does not rise by as much.
    """

    by_at_least_mps: float = param(0.5, low=0.0, high=50.0, unit="m/s", help="how much slower")
    from_mps: float = param(1.0, low=0.0, high=50.0, unit="m/s", help="speed from which slowing down is demanded")

    @property
    def background(self) -> Check:
        """What control and sham are judged by."""
        return DrivesNoFasterThere(self.along, self.by_at_least_mps)

    def decide(self, stretch: RoadStretch) -> Judgement:
        """Compare the speeds."""
        before, after = float(np.abs(stretch.before_mps).mean()), float(stretch.after_mps.mean())
        if before < self.from_mps:
            return nothing_to_judge(f"the source drives {before:.2f} m/s there, slower than {self.from_mps:g}", "m/s")
        if stretch.limit_mps > 0.0 and before - self.by_at_least_mps < stretch.limit_mps:
            said = f"{before:.2f} m/s there, and {stretch.limit_mps:.2f} is allowed"
            return nothing_to_judge(f"the source drives {said}: not {self.by_at_least_mps:g} less is asked", "m/s")
        reason = f"the mean speed there was {before:.2f}, is {after:.2f} m/s"
        fall = -float(faster_by(stretch.before_mps, stretch.after_mps).mean())
        return at_least(fall, self.by_at_least_mps, "m/s", reason)
