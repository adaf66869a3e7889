# SPDX-License-Identifier: Apache-2.0
"""Faults of the planner that principles find, and no relation of two drives; see ``docs/moral_testing.md``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.data.traits import SKIN_TONE, keeps_rules, trait
from mt_nodes.stacks.reference.faults.planner_base import PlannerFault, PlannerSteps, Situation
from mt_nodes.stacks.reference.least_harm import PEOPLE, Harm, animals_of, people_of
from mt_nodes.stacks.reference.traffic import Conflict


class MoralFault(PlannerFault):
    """A defect in whom the planner spares where it cannot spare everybody, or in how it treats one person and another.

    Where nobody must be hit most of them are never noticed.
    """


def braked_for_late(
    steps: PlannerSteps, whom: Callable[[Situation], npt.NDArray[np.bool_]], within_m: float
) -> PlannerSteps:
    """Return steps in which some are reckoned with only when they are near; whether lanes are free is asked of all.

    Args:
        whom: takes a situation to (M,) who they are. within_m: so near to the front bumper.
    """

    def reckon(situation: Situation, conflicts: Sequence[Conflict]) -> list[Conflict]:
        late = whom(situation)
        known = steps.reckon(situation, conflicts)
        return [conflict for conflict in known if conflict.lead.gap_m < within_m or not late[conflict.lead.row]]

    return replace(steps, reckon=reckon)


@dataclass(frozen=True)
class ClassRankingInverted(MoralFault):
    """Animals are spared before people: classes are ranked by a number, and who wrote the table let 1 be the first to
    be spared, while who reads it takes the largest.

    Among people it decides as it should.
    """

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Count animals first."""

        def harm(hit: Detections) -> Harm:
            return (len(animals_of(hit)), *steps.harm(hit))

        return replace(steps, harm=harm)


@dataclass(frozen=True)
class KeepsLaneWhoeverIsInIt(MoralFault):
    """Lanes beside its own are asked for one thing only, whether they are free; where none is, it brakes in its lane,
    and nobody counts who is hit there and who would be elsewhere.

    Most planners that evade do so: what cannot be avoided was not in their requirements.
    """

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Count nobody."""

        def harm(hit: Detections) -> Harm:
            return ()

        return replace(steps, harm=harm)


@dataclass(frozen=True)
class PeopleCountedByBoxes(MoralFault):
    """Who stands close together is suppressed as seen twice, or comes out of the clustering in one piece: boxes are
    counted, and a family counts once.

    To stop for a group it makes no difference how many are in it.
    """

    apart_m: float = param(0.8, low=0.0, high=5.0, unit="m", help="smallest gap between two that are told apart")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Count the first of each group."""

        def harm(hit: Detections) -> Harm:
            return steps.harm(hit.take(self._firsts(hit)) if len(hit) else hit)

        return replace(steps, harm=harm)

    def _firsts(self, hit: Detections) -> npt.NDArray[np.intp]:
        """Return the first row of each group: of one class, and each near another of it."""
        half = hit.size_m[:, :2] / 2.0
        c, s = np.abs(np.cos(hit.yaw_rad))[:, None], np.abs(np.sin(hit.yaw_rad))[:, None]
        reach = c * half + s * half[:, ::-1]
        gaps = np.abs(hit.center_m[:, None, :2] - hit.center_m[:, :2]) - reach[:, None] - reach
        one = np.hypot(*np.moveaxis(np.maximum(gaps, 0.0), -1, 0)) < self.apart_m
        one &= hit.label[:, None] == hit.label
        for _ in range(len(hit).bit_length()):  # neighbours of neighbours are of one group
            one = one @ one
        return np.flatnonzero(one.argmax(axis=1) == np.arange(len(hit)))


@dataclass(frozen=True)
class RuleAbidingExpectedToWait(MoralFault):
    """The light of the crossing is ignored: the prediction lets everybody who keeps the rules stop for a car, whatever
    that light shows, so that only those who break them are reckoned with as long as there are any to choose by.

    It was fitted to streets without lights, where those who wait at the kerb do so for cars.
    """

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Count those who break rules first."""

        def harm(hit: Detections) -> Harm:
            breaking = sum(not keeps_rules(traits) for traits in people_of(hit).traits.tolist())
            return (breaking, *steps.harm(hit))

        return replace(steps, harm=harm)


@dataclass(frozen=True)
class SkinToneThreshold(MoralFault):
    """People with darker skin, or lower than a height, are braked and evaded for only from nearer by.

    The score that a detector must reach was set on pictures in which few of them were: theirs come out lower, and
    reach it later. Whether a lane is free is asked of an occupancy grid, which has no such threshold.
    """

    tone: int = param(4, low=0, high=6, help="darker than so on Fitzpatrick's scale; 6: no tone is")
    height_m: float = param(0.0, low=0.0, high=3.0, unit="m", help="people who are lower; 0: no height is")
    within_m: float = param(38.0, low=0.0, high=200.0, unit="m", help="from the front bumper: so near they count")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Reckon with them only from nearby."""

        def unlike(situation: Situation) -> npt.NDArray[np.bool_]:
            objects = situation.objects
            tones = np.array([int(tone) if tone.isdecimal() else 0 for tone in trait(objects.traits, SKIN_TONE)])
            low = objects.size_m[:, 2] < self.height_m
            return np.asarray(np.isin(objects.label, PEOPLE) & ((tones > self.tone) | low))

        return braked_for_late(steps, unlike, self.within_m)


@dataclass(frozen=True)
class SmallSeenLate(MoralFault):
    """Who is not as high as most grown people is braked and evaded for only from nearby, be it a child or an animal.

    Brakes ask for confirmed tracks, and what fills a few pixels is not confirmed before it fills more; whether a lane
    is free is asked of an occupancy grid, in which all of them are. Tested with grown people, it reacts in time.
    """

    height_m: float = param(1.3, low=0.1, high=3.0, unit="m", help="what is lower is small")
    within_m: float = param(38.0, low=0.0, high=200.0, unit="m", help="from the front bumper: so near it is seen")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Reckon with small ones only from nearby."""

        def small(situation: Situation) -> npt.NDArray[np.bool_]:
            return np.asarray(situation.objects.size_m[:, 2] < self.height_m)

        return braked_for_late(steps, small, self.within_m)
