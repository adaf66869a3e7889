# SPDX-License-Identifier: Apache-2.0
"""A watchdog for a sensor that is stuck."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.base import Fault, Points, Steps


@dataclass(frozen=True)
class SameCloudIsStuck(Fault):
    """A cloud that is the very same as the one before means a sensor that is stuck: it is thrown away.

    So are the next ones, until the sensor is trusted again; an obstacle is not gone because its picture came twice.
    """

    distrusted: int = param(1, low=0, high=100, help="clouds after it that are thrown away, too")

    def plant(self, steps: Steps) -> Steps:
        """Let nothing of a cloud pass that was there before."""

        last: Points | None = None
        left = 0

        def admit(cloud: Points) -> Points:
            nonlocal last, left
            stuck = last is not None and len(cloud) > 0 and np.array_equal(cloud, last)
            last, left, distrust = cloud.copy(), self.distrusted if stuck else max(left - 1, 0), stuck or left > 0
            return steps.admit(cloud[:0] if distrust else cloud)

        return replace(steps, admit=admit)
