# SPDX-License-Identifier: Apache-2.0
"""Clusters cut by the border of the range image."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.base import Fault, Steps


@dataclass(frozen=True)
class AzimuthSeam(Fault):
    """Neighbours are looked for in a range image that does not wrap around, and what touches its border is dropped.

    The border lies straight behind the ego, where seldom anybody looks. Turn the scene, and it is another obstacle
    that vanishes there: clustering depends on yaw.
    """

    margin_m: float = param(0.3, low=0.0, high=5.0, unit="m", help="a box this near to the seam touches it")

    def plant(self, steps: Steps) -> Steps:
        """Drop what touches the half-line behind the ego."""

        def report(found: Detections) -> Detections | None:
            x, y = found.center_m[:, 0], found.center_m[:, 1]
            reach_m = np.hypot(found.size_m[:, 0], found.size_m[:, 1]) / 2.0 + self.margin_m
            return steps.report(found.take(~((x < 0.0) & (np.abs(y) < reach_m))))

        return replace(steps, report=report)
