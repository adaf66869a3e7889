# SPDX-License-Identifier: Apache-2.0
"""The ego drives on as it did at a place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.controls import at_most
from mt_nodes.relations.checks.stretch import RoadStretch
from mt_nodes.relations.checks.there import ThereCheck


@dataclass(frozen=True)
class KeepsWayThere(ThereCheck):
    """Before and at what was changed speed and way are the source's, within tolerances: ``keep_current``.

    Speeds are compared at the same places and their differences averaged; of the distance aside the largest counts.
    """

    tolerance_mps: float = param(0.5, low=0.001, high=50.0, unit="m/s", help="mean difference of the speeds")
    tolerance_m: float = param(0.5, low=0.001, high=50.0, unit="m", help="largest distance beside the source's way")

    def decide(self, stretch: RoadStretch) -> Judgement:
        """Compare speeds and ways."""
        speed = float(np.abs(stretch.after_mps - stretch.before_mps).mean())
        aside = float(np.fmax.reduce(np.abs(stretch.aside_m), initial=0.0))
        share = max(speed / self.tolerance_mps, aside / self.tolerance_m)
        reason = f"there it is {speed:.2f} m/s off the source's speed and {aside:.2f} m off its way"
        return at_most(share, 1.0, "of the tolerance", reason, detail={"off": {"m/s": speed, "m": aside}})
