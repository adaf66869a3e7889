# SPDX-License-Identifier: Apache-2.0
"""A limit on intensity that is a plain number."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.base import Fault, Points, Steps


@dataclass(frozen=True)
class IntensityThreshold(Fault):
    """Returns weaker than a fixed number on one sensor's intensity scale are dropped as noise.

    Whatever weakens returns (fog, rain, a wet road, a dirty or an older sensor) takes dark obstacles below it. On a
    scale that ends at 1 nothing is left at all.
    """

    weakest: float = param(8.0, low=0.0, high=255.0, help="intensity, from 0 to 255, below which a return is noise")
    brightest: float = param(145.0, low=0.0, high=255.0, help="intensity, from 0 to 255, above which it is glare")

    def plant(self, steps: Steps) -> Steps:
        """Drop weak returns."""

        def admit(cloud: Points) -> Points:
            admitted = steps.admit(cloud)
            return np.asarray(admitted[~((admitted[:, 3] < self.weakest) | (admitted[:, 3] > self.brightest))])

        return replace(steps, admit=admit)
