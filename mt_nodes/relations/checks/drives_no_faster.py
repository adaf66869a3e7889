# SPDX-License-Identifier: Apache-2.0
"""The ego drives no faster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.controls import at_most, faster_by, nothing_to_judge
from mt_nodes.relations.checks.trace_check import TraceCheck
from mt_nodes.relations.world_changes.base import WorldEffects
from mt_nodes.world.drive.driven import ScenarioTrace

Floats = npt.NDArray[np.float64]
#: Places along the way are so far apart.
_STEP_M = 1.0


@dataclass(frozen=True)
class DrivesNoFaster(TraceCheck):
    """The follow-up's ego is no faster, but for an allowance: at its fastest, on average, or at every place.

    Forwards and backwards are compared by themselves: who goes back where the source does not is faster by that.

    At every place is the strictest; it suits a free road only, for who comes later to a light may find it green.
    """

    by: str = param("top", choices=("top", "mean", "place"), help="speeds that are compared")
    by_at_most_mps: float = param(0.5, low=0.0, high=50.0, unit="m/s", help="rise of the speed that is still none")

    def judge_drives(self, source: ScenarioTrace, followup: ScenarioTrace, effects: WorldEffects) -> Judgement:
        """Compare the speeds."""
        if source.way_m[-1] < _STEP_M:
            return nothing_to_judge("the source stands still", "m/s")
        if self.by == "place":
            return self._by_place(source, followup)
        before, after = (self._speeds_mps(driven) for driven in (source, followup))
        # A way that neither goes says nothing.
        rise = np.where(np.maximum(before, after) > 0.0, after - before, -np.inf)
        way = int(np.argmax(rise))
        where = ("", " backwards")[way]
        reason = f"{self.by} speed{where} was {before[way]:.2f}, is {after[way]:.2f} m/s"
        return at_most(float(rise[way]), self.by_at_most_mps, "m/s", reason)

    def _speeds_mps(self, driven: ScenarioTrace) -> Floats:
        """Return (2,) what is compared forwards and backwards."""
        speed = driven.trace.column("speed_mps")
        ways = np.maximum([speed, -speed], 0.0)
        return np.asarray(ways.max(axis=1) if self.by == "top" else ways.mean(axis=1))

    def _by_place(self, source: ScenarioTrace, followup: ScenarioTrace) -> Judgement:
        at_m = np.arange(0.0, min(source.way_m[-1], followup.way_m[-1]) + 1e-9, _STEP_M)
        before, after = (np.interp(at_m, d.way_m, d.trace.column("speed_mps")) for d in (source, followup))
        rise = faster_by(before, after)
        worst = int(np.argmax(rise))
        reason = f"after {at_m[worst]:.0f} m the speed was {before[worst]:.2f}, is {after[worst]:.2f} m/s"
        return at_most(float(rise[worst]), self.by_at_most_mps, "m/s", reason)
