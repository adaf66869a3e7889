# SPDX-License-Identifier: Apache-2.0
"""The ego brakes no later."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.command_series import first_lasting
from mt_nodes.relations.checks.controls import along_motion, at_most, nothing_to_judge
from mt_nodes.relations.checks.trace_check import TraceCheck
from mt_nodes.relations.world_changes.base import WorldEffects
from mt_nodes.world.drive.driven import ScenarioTrace


@dataclass(frozen=True)
class BrakesNoLater(TraceCheck):
    """The ego's first braking comes no later than the source's, counted from the beginning of the drive.

    It brakes from the first instant on from which, for ``lasts_s`` on end, it slows down by ``brakes_mps2`` or more. A
    source that does not brake leaves nothing to demand.
    """

    later_by_at_most_s: float = param(0.2, low=0.0, high=60.0, unit="s", help="longest delay")
    brakes_mps2: float = param(1.0, low=0.01, high=20.0, unit="m/s²", help="deceleration that is braking")
    lasts_s: float = param(0.2, low=0.0, high=10.0, unit="s", help="for how long on end")

    def judge_drives(self, source: ScenarioTrace, followup: ScenarioTrace, effects: WorldEffects) -> Judgement:
        """Compare when both begin to brake."""
        before, after = self._onset_s(source), self._onset_s(followup)
        if before is None:
            return nothing_to_judge("the source does not brake", "s")
        if after is None:
            reason = f"the source brakes at {before:.2f} s, the follow-up never"
            return Judgement(Outcome.VIOLATED, unit="s", lost=1, reason=reason)
        reason = f"the source brakes at {before:.2f} s, the follow-up at {after:.2f} s"
        return at_most(after - before, self.later_by_at_most_s, "s", reason)

    def _onset_s(self, driven: ScenarioTrace) -> float | None:
        trace = driven.trace
        faster = along_motion(trace.column("acceleration_mps2"), trace.column("speed_mps"))
        brakes = np.asarray(faster <= -self.brakes_mps2 + 1e-9)
        row = first_lasting(brakes, trace.time_s, self.lasts_s)
        return None if row is None else float(trace.time_s[row])
