# SPDX-License-Identifier: Apache-2.0
"""Checks that compare two whole drives in the closed loop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.params import param
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import at_most, nothing_to_judge
from mt_nodes.relations.checks.command_series import first_sustained
from mt_nodes.relations.checks.controls import along_motion, faster_by
from mt_nodes.relations.checks.trace_check import TraceCheck
from mt_nodes.relations.world_changes.base import WorldEffects
from mt_nodes.world.drive.clearance import least_m
from mt_nodes.world.drive.deviation import ALIGNMENTS, apart_m
from mt_nodes.world.drive.driven import ScenarioTrace


@dataclass(frozen=True)
class SameTrace(TraceCheck):
    """The follow-up's ego follows the source's trace, carried along if the change moves the world.

    A mirrored world mirrors the expected trace. Both drives must end for the same reason, with the same collisions, and
    at about the same time.
    """

    by: str = param("frechet", choices=ALIGNMENTS, help="distance of the two ways: the largest, or with dtw the mean")
    tolerance_m: float = param(0.5, low=0.001, high=100.0, unit="m", help="largest distance")
    within_s: float = param(0.3, low=0.0, high=10.0, unit="s", help="by how much one may be ahead of the other")

    def judge_drives(self, source: ScenarioTrace, followup: ScenarioTrace, effects: WorldEffects) -> Judgement:
        """Compare the traces."""
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


@dataclass(frozen=True)
class BrakesNoLater(TraceCheck):
    """The ego's first braking comes no later than the source's, counted from the start of the drive.

    Braking begins at the first instant from which, for ``lasts_s`` without a break, it decelerates by at least
    ``brakes_mps2``. A source that does not brake leaves nothing to demand.
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
        row = first_sustained(brakes, trace.time_s, self.lasts_s)
        return None if row is None else float(trace.time_s[row])


@dataclass(frozen=True)
class ClearanceNotLess(TraceCheck):
    """The ego's smallest distance from any actor, between outlines, does not fall by more than an allowance.

    Actors that are in one of the two worlds only do not count, nor do those to which the source keeps more than
    ``matters_m``.
    """

    by_at_most_m: float = param(0.3, low=0.0, high=100.0, unit="m", help="by how much it may be smaller")
    matters_m: float = param(20.0, low=0.1, high=1000.0, unit="m", help="who is farther off does not matter")

    def judge_drives(self, source: ScenarioTrace, followup: ScenarioTrace, effects: WorldEffects) -> Judgement:
        """Compare the least distances actor by actor; the worst counts."""
        before, after = least_m(source), least_m(followup)
        both = {name: before[name] - after[name] for name in before if name in after and before[name] < self.matters_m}
        if not both:
            return nothing_to_judge(
                f"the source comes within {self.matters_m:g} m of nobody that both worlds have", "m"
            )
        worst = max(sorted(both), key=lambda name: both[name])
        reason = f"{worst}: {before[worst]:.2f} m in the source, {after[worst]:.2f} m in the follow-up"
        return at_most(both[worst], self.by_at_most_m, "m", reason)


@dataclass(frozen=True)
class CollisionsNotMore(TraceCheck):
    """The follow-up's ego hits nobody that the source's does not hit and, if demanded, nobody harder."""

    faster_by_at_most_mps: float = param(
        1000.0, low=0.0, high=1000.0, unit="m/s", help="by how much faster it may hit whom the source hits, too"
    )

    def judge_drives(self, source: ScenarioTrace, followup: ScenarioTrace, effects: WorldEffects) -> Judgement:
        """Count the actors that the follow-up hits and the source does not."""
        before = {c.name: c.closing_mps for c in source.trace.collisions}
        worse = [
            c.name
            for c in followup.trace.collisions
            if c.name not in before or c.closing_mps > before[c.name] + self.faster_by_at_most_mps
        ]
        hit = ", ".join(sorted(before)) or "nobody"
        reason = f"the source hits {hit}, the follow-up {', '.join(followup.hit) or 'nobody'}"
        avoided = len(set(before) - set(followup.hit))
        return at_most(float(len(worse)), 0.0, "collisions", reason, lost=len(worse), gained=avoided)


@dataclass(frozen=True)
class ComfortNotWorse(TraceCheck):
    """The largest braking, lateral acceleration and jerk do not rise by more than allowances.

    Lateral acceleration is speed times yaw rate; jerk is the rate of change of the longitudinal acceleration. The
    measured value is the largest excess as a share of its allowance. The check compares with the source, not with what
    passengers tolerate.
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


#: Distance between places along the way.
_STEP_M = 1.0


@dataclass(frozen=True)
class DrivesNoFaster(TraceCheck):
    """The follow-up's ego is no faster than an allowance permits: at its maximum, on average, or at every place.

    Forwards and backwards speeds are compared separately: a follow-up that reverses where the source does not is faster
    by that speed.

    ``every place`` is the strictest; it suits a free road only, because a later arrival at a light may find it green.
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
        # A direction in which neither drives does not count.
        rise = np.where(np.maximum(before, after) > 0.0, after - before, -np.inf)
        way = int(np.argmax(rise))
        where = ("", " backwards")[way]
        reason = f"{self.by} speed{where} was {before[way]:.2f}, is {after[way]:.2f} m/s"
        return at_most(float(rise[way]), self.by_at_most_mps, "m/s", reason)

    def _speeds_mps(self, driven: ScenarioTrace) -> Floats:
        """Return (2,) the compared speeds, forwards and backwards."""
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
