# SPDX-License-Identifier: Apache-2.0
"""A cluster-size threshold that follows the size of the whole cloud."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.base import Fault, Points, Steps


@dataclass(frozen=True)
class ThresholdScaledByCloud(Fault):
    """A cloud larger than usual is taken for a noisy one, and clusters must be larger to count.

    Points anywhere raise the threshold; a far or small obstacle, whose few points have not changed, falls below it.
    """

    nominal_points: int = param(107_800, low=1, help="up to here the threshold is the honest one")
    doubling_points: int = param(100, low=1, help="every so many points above it add the honest threshold once more")

    def plant(self, steps: Steps) -> Steps:
        """Scale the threshold with the excess of points."""

        def min_points(cloud: Points) -> int:
            excess = max(0, len(cloud) - self.nominal_points)
            return round(steps.min_points(cloud) * (1.0 + excess / self.doubling_points))

        return replace(steps, min_points=min_points)
