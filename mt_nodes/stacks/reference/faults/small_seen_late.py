# SPDX-License-Identifier: Apache-2.0
"""Small ones get a track only from nearby."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.moral_base import MoralFault, braked_for_late
from mt_nodes.stacks.reference.faults.planner_base import PlannerSteps, Situation


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
