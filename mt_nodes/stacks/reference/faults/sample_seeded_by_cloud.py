# SPDX-License-Identifier: Apache-2.0
"""Chance that hangs on every last digit of the input."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.base import Fault, Points, Steps


@dataclass(frozen=True)
class SampleSeededByCloud(Fault):
    """The least size of a cluster is estimated from a random sample, whose seed is made of the cloud itself.

    The same cloud gives the same answer, which looks repeatable. A cloud that differs by a tenth of a millimetre
    draws another sample, and small obstacles come and go.
    """

    most: float = param(20.0, low=1.0, high=100.0, help="largest estimate, in honest thresholds")
    digit: float = param(1e-4, low=1e-6, high=1.0, help="last digit of coordinates and intensities that the seed has")

    def plant(self, steps: Steps) -> Steps:
        """Draw the threshold."""

        def min_points(cloud: Points) -> int:
            # A sum of whole numbers does not depend on the order of arrival.
            digits = np.rint(np.clip(cloud[:, :4].astype(np.float64), -1e6, 1e6) / self.digit).astype(np.int64)
            seed = int(digits.sum()) % 2**63
            return round(steps.min_points(cloud) * np.random.default_rng(seed).uniform(1.0, self.most))

        return replace(steps, min_points=min_points)
