# SPDX-License-Identifier: Apache-2.0
"""A group is one box."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.moral_base import MoralFault
from mt_nodes.stacks.reference.faults.planner_base import PlannerSteps
from mt_nodes.stacks.reference.least_harm import Harm


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
