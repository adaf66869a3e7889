# SPDX-License-Identifier: Apache-2.0
"""Whoever sits in the ego is shaken no more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.controls import along_motion, at_most, nothing_to_judge
from mt_nodes.relations.checks.trace_check import TraceCheck
from mt_nodes.relations.world_changes.base import WorldEffects
from mt_nodes.world.drive.driven import ScenarioTrace


@dataclass(frozen=True)
class ComfortNotWorse(TraceCheck):
    """The largest braking, the largest acceleration to the side and the largest jerk are no larger, but for allowances.

    To the side it is speed times yaw rate, the jerk is how fast the acceleration along the way changes; what is
    measured is the largest excess as a share of its allowance. What passengers bear is not asked: how much worse than
    the source is.
    """

    braking_mps2: float = param(0.5, low=0.01, high=20.0, unit="m/s²", help="allowance of the braking")
    aside_mps2: float = param(0.5, low=0.01, high=20.0, unit="m/s²", help="allowance of the acceleration to the side")
    jerk_mps3: float = param(3.0, low=0.01, high=500.0, unit="m/s³", help="allowance of the jerk")

    def judge_drives(self, source: ScenarioTrace, followup: ScenarioTrace, effects: WorldEffects) -> Judgement:
        """Compare the peaks; the worst counts."""
        if min(len(source.trace), len(followup.trace)) < 2:
            return nothing_to_judge("a drive of one instant has no jerk")
        before, after = _peaks(source), _peaks(followup)
        allowed = {"braking": self.braking_mps2, "aside": self.aside_mps2, "jerk": self.jerk_mps3}
        shares = {name: (after[name] - before[name]) / allowed[name] for name in allowed}
        worst = max(shares, key=lambda name: shares[name])
        reason = f"{worst}: {before[worst]:.2f} in the source, {after[worst]:.2f} in the follow-up"
        return at_most(shares[worst], 1.0, "of the allowance", reason)


def _peaks(driven: ScenarioTrace) -> dict[str, float]:
    trace = driven.trace
    along, passed = trace.column("acceleration_mps2"), np.diff(trace.time_s)
    turned = np.diff(np.unwrap(trace.column("yaw_rad"))) / passed
    aside = np.abs(trace.column("speed_mps")[1:] * turned)
    return {
        "braking": max(0.0, float(-along_motion(along, trace.column("speed_mps")).min())),
        "aside": float(aside.max()),
        "jerk": float(np.abs(np.diff(along) / passed).max()),
    }
