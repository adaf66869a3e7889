# SPDX-License-Identifier: Apache-2.0
"""Intensity measured against the brightest point of the cloud."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.base import Fault, Points, Steps


@dataclass(frozen=True)
class IntensityByCloudMax(Fault):
    """Intensity is divided by the whole cloud's maximum, then dim points are dropped as noise.

    One retro-reflector anywhere doubles the maximum, and dark obstacles (black paint, dark clothing) drop below the
    limit. Noise whose intensity stays within the frame's own range cannot show this.
    """

    dimmest: float = param(0.06, low=0.0, high=1.0, help="share of the maximum below which a point is noise")

    def plant(self, steps: Steps) -> Steps:
        """Drop what is dim beside the brightest point."""

        def admit(cloud: Points) -> Points:
            admitted = steps.admit(cloud)
            intensity = admitted[:, 3]
            brightest = np.fmax.reduce(intensity, initial=0.0)
            return np.asarray(admitted[~(intensity < self.dimmest * brightest)])

        return replace(steps, admit=admit)
