# SPDX-License-Identifier: Apache-2.0
"""A height limit taken from the whole cloud's distribution of z."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.base import Fault, Points, Steps


@dataclass(frozen=True)
class ZRangeFromCloud(Fault):
    """The z-range that the whole cloud spans is cut into layers; what stays within the lowest counts as ground.

    The span is taken between quantiles "to be robust". Few returns are really high, so a few hundred high points
    anywhere move the upper quantile and thicken the layers: children and low cars no longer reach the second one.
    """

    quantile: float = param(0.001, low=0.0, high=0.49, help="share of points ignored at each end")
    layers: int = param(4, low=1, high=256, help="layers that the span is cut into")

    def plant(self, steps: Steps) -> Steps:
        """Derive the lowest height of an obstacle from the cloud."""

        def min_height_m(cloud: Points) -> float:
            if not len(cloud):
                return steps.min_height_m(cloud)
            bottom, top = np.quantile(cloud[:, 2], (self.quantile, 1.0 - self.quantile))
            return float(top - bottom) / self.layers

        return replace(steps, min_height_m=min_height_m)
