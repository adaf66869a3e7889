# SPDX-License-Identifier: Apache-2.0
"""What every fault planted in the planner is: a defect in one of its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from mt_nodes.data.lanes import Lanes, SignalStates
from mt_nodes.data.messages import Odometry
from mt_nodes.data.outputs import Control, Detections, Path
from mt_nodes.stacks.reference.caution import Sighting
from mt_nodes.stacks.reference.evasion import Escape
from mt_nodes.stacks.reference.faults.base import Fault
from mt_nodes.stacks.reference.least_harm import Harm
from mt_nodes.stacks.reference.traffic import Conflict


@dataclass(frozen=True, eq=False)
class Situation:
    """What the planner decides by: objects in the frame of the vehicle, their velocities over the ground; the rest in
    that of the route. ``sees``: by its camera, if it has one.
    """

    objects: Detections
    odometry: Odometry
    route: Path
    signals: SignalStates
    lanes: Lanes = field(default_factory=lambda: Lanes.make("", None))
    sees: Sighting = field(default_factory=Sighting)


@dataclass(frozen=True)
class PlannerSteps:
    """The steps in which planners have gone wrong.

    Attributes:
        look: takes a situation to the one that is decided by; the honest step believes what it is told.
        cruise_mps: takes a situation and the speed on a free road to the speed that is driven there.
        aside_m: tells how far to the left of the lane's middle one drives; honestly in the middle, 0.
        reckon: takes a situation and the conflicts in it to those that are reckoned with; the honest step takes all.
        escape: takes ways past somebody and where the vehicle is, in metres left of the middle, to the one that is
            taken, None for none; the honest step takes the nearest on which nobody is hit.
        harm: takes those whom one would hit on a way to what is compared among ways where somebody is hit on each, the
            first number first, less being better; the honest step is
            :func:`~mt_nodes.stacks.reference.least_harm.harm_of`.
        memory: takes a new memory to the one that a planner begins with; the honest step begins with that.
        say: takes a situation and a command to the one that is given.
    """

    look: Callable[[Situation], Situation]
    cruise_mps: Callable[[Situation, float], float]
    aside_m: Callable[[Situation], float]
    reckon: Callable[[Situation, Sequence[Conflict]], Sequence[Conflict]]
    escape: Callable[[Sequence[Escape], float], Escape | None]
    harm: Callable[[Detections], Harm]
    memory: Callable[[Any], Any]
    say: Callable[[Situation, Control], Control]


class PlannerFault(Fault):
    """A defect of the planner: ``plant`` takes and returns :class:`PlannerSteps`."""

    stack: ClassVar[str] = "planner"
