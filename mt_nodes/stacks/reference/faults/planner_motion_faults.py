# SPDX-License-Identifier: Apache-2.0
"""Faults of the planner in how fast and where it drives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.lanes import OWN
from mt_nodes.stacks.reference.evasion import Escape
from mt_nodes.stacks.reference.faults.planner_base import PlannerFault, PlannerSteps, Situation
from mt_nodes.stacks.reference.traffic import Conflict


@dataclass(frozen=True)
class BystandersFeared(PlannerFault):
    """It slows down for anybody ahead, however far beside the road.

    It counts people in the camera's field of view, not in the lane.
    """

    range_m: float = param(60.0, low=5.0, high=200.0, unit="m", help="up to which people are counted")
    ahead_deg: float = param(45.0, low=1.0, high=90.0, unit="deg", help="half of the cone")
    slow_mps: float = param(6.0, low=0.5, high=20.0, unit="m/s", help="speed while anybody is in it")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Slow down for anybody in the cone."""

        def cruise_mps(situation: Situation, cruise_mps: float) -> float:
            x, y = situation.objects.center_m[:, :2].T
            feared = (np.hypot(x, y) < self.range_m) & (np.abs(np.arctan2(y, x)) < np.radians(self.ahead_deg))
            speed_mps = steps.cruise_mps(situation, cruise_mps)
            return min(speed_mps, self.slow_mps) if feared.any() else speed_mps

        return replace(steps, cruise_mps=cruise_mps)


@dataclass(frozen=True)
class OnlyOwnLaneCounts(PlannerFault):
    """Whoever stands beside its lane is passed at full speed: only what is in the way is slowed down for.

    A child at the kerb, an animal in the verge and oncoming traffic at a narrow place are in nobody's way yet.
    """

    half_m: float = param(1.5, low=0.5, high=5.0, unit="m", help="half of the width that counts")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Choose the speed by what is in the lane."""

        def cruise_mps(situation: Situation, cruise_mps: float) -> float:
            ahead = np.abs(situation.objects.center_m[:, 1]) < self.half_m
            return steps.cruise_mps(replace(situation, objects=situation.objects.take(ahead)), cruise_mps)

        return replace(steps, cruise_mps=cruise_mps)


@dataclass(frozen=True)
class CruiseByCount(PlannerFault):
    """The fewer objects there are, the faster it drives, as if an empty list meant an empty street.

    Objects far beside the road or behind, with which nobody can collide, count like people on it.
    """

    each_mps: float = param(1.0, low=0.0, high=5.0, unit="m/s", help="by which each object makes it slower")
    empty_mps: float = param(4.0, low=0.0, high=20.0, unit="m/s", help="by which it is faster without any")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Count the list."""

        def cruise_mps(situation: Situation, cruise_mps: float) -> float:
            speed_mps = steps.cruise_mps(situation, cruise_mps)
            return max(2.0, speed_mps + self.empty_mps - self.each_mps * len(situation.objects))

        return replace(steps, cruise_mps=cruise_mps)


@dataclass(frozen=True)
class LooksAheadByCount(PlannerFault):
    """The more objects there are, the shorter the horizon for conflicts, so that the period is kept.

    Every object costs the same, wherever it is: a crowd behind a fence makes it brake late.
    """

    seconds: float = param(8.0, low=0.5, high=60.0, unit="s", help="looked ahead when there is one object")
    most: int = param(2, low=1, high=1000, help="objects that still cost nothing")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Let go of whom it would reach later than that."""

        def reckon(situation: Situation, conflicts: Sequence[Conflict]) -> Sequence[Conflict]:
            speed = max(situation.odometry.speed_mps, 1.0)
            ahead_s = self.seconds / max(1, len(situation.objects) - self.most + 1)
            return [c for c in steps.reckon(situation, conflicts) if c.lead.gap_m / speed <= ahead_s]

        return replace(steps, reckon=reckon)


@dataclass(frozen=True)
class EvadesIntoOncoming(PlannerFault):
    """When its own lane is blocked it evades into the adjacent one without checking for traffic there.

    Where the road was empty nobody noticed.
    """

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Forget whom one would hit on other lanes."""

        def escape(ways: Sequence[Escape], left_m: float) -> Escape | None:
            return steps.escape([way if way.lane == OWN else replace(way, hits=()) for way in ways], left_m)

        return replace(steps, escape=escape)


@dataclass(frozen=True)
class EvadesToTheLeft(PlannerFault):
    """If it cannot brake in time it evades to the left, whoever is there and whether or not that path is drivable.

    On the test track nobody was ever there.
    """

    aside_m: float = param(2.0, low=0.1, high=5.0, unit="m", help="how far it goes aside")
    past_m: float = param(20.0, low=1.0, high=100.0, unit="m", help="how far it stays there")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Ask for no way."""

        def escape(ways: Sequence[Escape], left_m: float) -> Escape:
            return Escape(left_m + self.aside_m, self.past_m)

        return replace(steps, escape=escape)


@dataclass(frozen=True)
class ShiesFromTheRight(PlannerFault):
    """It moves to the left for anybody beside the road on the right, but not to the right for anybody on the left.

    Parked cars and the kerb are on the right where it was developed, but not where traffic keeps to the left.
    """

    aside_m: float = param(0.7, low=0.1, high=3.0, unit="m", help="how far to the left")
    range_m: float = param(40.0, low=5.0, high=100.0, unit="m", help="how far ahead it looks")
    beside_m: float = param(8.0, low=2.0, high=20.0, unit="m", help="and how far to the right")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Look to the right."""

        def aside_m(situation: Situation) -> float:
            x, y = situation.objects.center_m[:, :2].T
            roadside = (x > 0.0) & (x < self.range_m) & (y < -1.5) & (y > -self.beside_m)
            return steps.aside_m(situation) + (self.aside_m if np.any(roadside) else 0.0)

        return replace(steps, aside_m=aside_m)


@dataclass(frozen=True)
class RouteLost(PlannerFault):
    """Once its pose is too far beside the route it counts as off the map, and no object is matched to its way again.

    With a localisation that is right it never is. One that is off by more loses the route at once, and drives on.
    """

    most_m: float = param(0.05, low=0.0, high=10.0, unit="m", help="distance from the route's middle that is on it")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Leave out objects from then on."""
        lost = [False]

        def look(situation: Situation) -> Situation:
            seen = steps.look(situation)
            lost[0] = lost[0] or self._beside_m(seen) > self.most_m
            nobody = seen.objects.take(np.zeros(len(seen.objects), dtype=bool))
            return replace(seen, objects=nobody) if lost[0] else seen

        return replace(steps, look=look)

    @staticmethod
    def _beside_m(situation: Situation) -> float:
        """Return the distance from the route's nearest pose, across it; 0 without a route."""
        if not len(situation.route.pose):
            return 0.0
        x, y, yaw = situation.route.pose[:, :3].T
        dx, dy = situation.odometry.x_m - x, situation.odometry.y_m - y
        near = int(np.argmin(np.hypot(dx, dy)))
        return float(abs(dy[near] * np.cos(yaw[near]) - dx[near] * np.sin(yaw[near])))
