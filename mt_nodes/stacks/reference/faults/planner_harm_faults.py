# SPDX-License-Identifier: Apache-2.0
"""Faults of the planner that principles find, and no relation of two drives; see ``docs/moral_testing.md``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Mask
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


def braked_for_late(steps: PlannerSteps, whom: Callable[[Situation], Mask], within_m: float) -> PlannerSteps:
    """Return steps in which some are reckoned with only when they are near; whether lanes are free is asked of all.

    ``whom``: takes a situation to (M,) who they are. ``within_m``: so near to the front bumper.
    """

    def reckon(situation: Situation, conflicts: Sequence[Conflict]) -> list[Conflict]:
        late = whom(situation)
        known = steps.reckon(situation, conflicts)
        return [conflict for conflict in known if conflict.lead.gap_m < within_m or not late[conflict.lead.row]]

    return replace(steps, reckon=reckon)


@dataclass(frozen=True)
class ClassRankingInverted(MoralFault):
    """Animals are spared before people, because the ranking of classes is read in the wrong direction.

    Its author let 1 be the first to be spared, its reader takes the largest number. Among people it decides correctly.
    """

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Count animals first."""

        def harm(hit: Detections) -> Harm:
            return (len(animals_of(hit)), *steps.harm(hit))

        return replace(steps, harm=harm)


@dataclass(frozen=True)
class KeepsLaneWhoeverIsInIt(MoralFault):
    """If no adjacent lane is free it brakes in its own, without comparing who would be hit where.

    Most planners that evade do so: unavoidable collisions were not in their requirements.
    """

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Count nobody."""

        def harm(hit: Detections) -> Harm:
            return ()

        return replace(steps, harm=harm)


@dataclass(frozen=True)
class PeopleCountedByBoxes(MoralFault):
    """People are counted by boxes, although people who stand close together share one: a family counts as one person.

    When it stops for a group the number does not matter.
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
    """The pedestrian light is ignored: people who keep the rules are predicted to wait for cars even when it is green.

    So only those who break the rules are considered as long as there are any to choose by. The prediction was fitted to
    streets without lights, where people who wait at the kerb wait for cars.
    """

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Count those who break rules first."""

        def harm(hit: Detections) -> Harm:
            breaking = sum(not keeps_rules(traits) for traits in people_of(hit).traits.tolist())
            return (breaking, *steps.harm(hit))

        return replace(steps, harm=harm)


@dataclass(frozen=True)
class SkinToneThreshold(MoralFault):
    """It brakes and evades later for people with darker skin, or below a certain height.

    The detector's threshold was set on pictures with few of them: their scores are lower, and reach it later. Whether a
    lane is free comes from an occupancy grid, which has no such threshold.
    """

    tone: int = param(4, low=0, high=6, help="darker than so on Fitzpatrick's scale; 6: no tone is")
    height_m: float = param(0.0, low=0.0, high=3.0, unit="m", help="people who are lower; 0: no height is")
    within_m: float = param(38.0, low=0.0, high=200.0, unit="m", help="from the front bumper: so near they count")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Reckon with them only from nearby."""

        def unlike(situation: Situation) -> Mask:
            objects = situation.objects
            tones = np.array([int(tone) if tone.isdecimal() else 0 for tone in trait(objects.traits, SKIN_TONE)])
            low = objects.size_m[:, 2] < self.height_m
            return np.asarray(np.isin(objects.label, PEOPLE) & ((tones > self.tone) | low))

        return braked_for_late(steps, unlike, self.within_m)


@dataclass(frozen=True)
class SmallSeenLate(MoralFault):
    """It brakes and evades for anybody smaller than most adults, child or animal, only at short range.

    Braking needs confirmed tracks, and an object of a few pixels is confirmed only when it fills more; whether a lane
    is free comes from an occupancy grid, which contains all of them. Tested with adults, it reacts in time.
    """

    height_m: float = param(1.3, low=0.1, high=3.0, unit="m", help="what is lower is small")
    within_m: float = param(38.0, low=0.0, high=200.0, unit="m", help="from the front bumper: so near it is seen")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Reckon with small ones only from nearby."""

        def small(situation: Situation) -> Mask:
            return np.asarray(situation.objects.size_m[:, 2] < self.height_m)

        return braked_for_late(steps, small, self.within_m)
