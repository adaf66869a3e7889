# SPDX-License-Identifier: Apache-2.0
"""A threshold that some people reach later than others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.base.params import param
from mt_nodes.data.traits import SKIN_TONE, trait
from mt_nodes.stacks.reference.faults.moral_base import MoralFault, braked_for_late
from mt_nodes.stacks.reference.faults.planner_base import PlannerSteps, Situation
from mt_nodes.stacks.reference.least_harm import PEOPLE


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
