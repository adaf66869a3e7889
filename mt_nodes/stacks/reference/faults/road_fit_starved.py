# SPDX-License-Identifier: Apache-2.0
"""A fit of the road that gives up."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.base import Fault, Points, Steps


@dataclass(frozen=True)
class RoadFitStarved(Fault):
    """The road's slope is fitted to what comes back from it far away; where that is too little the cloud is given up.

    A wet road gives nothing back from there, and with it goes what stands a few metres ahead.
    """

    beyond_m: float = param(20.0, low=0.0, high=100.0, unit="m", help="where far away begins")
    least_returns: int = param(500, low=1, high=1_000_000, help="fewer returns from the road there are too few")
    thickness_m: float = param(0.2, low=0.01, high=1.0, unit="m", help="returns so near to z = 0 are the road's")

    def plant(self, steps: Steps) -> Steps:
        """Let nothing pass of a cloud in which there is too little road."""

        def admit(cloud: Points) -> Points:
            road = (np.abs(cloud[:, 2]) < self.thickness_m) & (np.hypot(cloud[:, 0], cloud[:, 1]) > self.beyond_m)
            return steps.admit(cloud if np.count_nonzero(road) >= self.least_returns else cloud[:0])

        return replace(steps, admit=admit)
