# SPDX-License-Identifier: Apache-2.0
"""The ego drives the same way, at the same time."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.controls import at_most
from mt_nodes.relations.checks.trace_check import TraceCheck
from mt_nodes.relations.world_changes.base import WorldEffects
from mt_nodes.world.drive.deviation import ALIGNMENTS, apart_m
from mt_nodes.world.drive.driven import ScenarioTrace


@dataclass(frozen=True)
class SameTrace(TraceCheck):
    """The follow-up's ego is where the source's is expected to be: there, or where the change carries the world.

    So a mirrored world mirrors what is expected. Both drives must end for the same reason, and with the same
    collisions, at about the same time.
    """

    by: str = param("frechet", choices=ALIGNMENTS, help="distance of the two ways: the largest, or with dtw the mean")
    tolerance_m: float = param(0.5, low=0.001, high=100.0, unit="m", help="largest distance")
    within_s: float = param(0.3, low=0.0, high=10.0, unit="s", help="by how much one may be ahead of the other")

    def judge_drives(self, source: ScenarioTrace, followup: ScenarioTrace, effects: WorldEffects) -> Judgement:
        """Compare where both drove."""
        for what, before, after in (
            ("ended by", source.trace.ended, followup.trace.ended),
            ("hit", ", ".join(sorted(source.hit)) or "nobody", ", ".join(sorted(followup.hit)) or "nobody"),
        ):
            if before != after:
                return Judgement(
                    Outcome.VIOLATED, reason=f"the source {what} {before}, the follow-up {after}", unit="m"
                )
        rows = round(self.within_s / source.period_s)
        distance_m = apart_m(effects.carried.places(source.places_m), followup.places_m, self.by, rows)
        ends = f"source {source.trace.time_s[-1]:.1f} s, follow-up {followup.trace.time_s[-1]:.1f} s long"
        if distance_m == float("inf"):
            return Judgement(Outcome.VIOLATED, reason=f"{ends}, more than {self.within_s:g} s apart", unit="m")
        return at_most(distance_m, self.tolerance_m, "m", f"{self.by}, {ends}")
