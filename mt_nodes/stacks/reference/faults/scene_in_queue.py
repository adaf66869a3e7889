# SPDX-License-Identifier: Apache-2.0
"""A queue before the driver."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverScene, DriverSteps


@dataclass(frozen=True)
class SceneInQueue(DriverFault):
    """Who is followed is who was seen some clouds ago: what was seen waits in a queue that never empties.

    Until it is full nobody is there. At the sensor's rate that is a little late; where fewer clouds come, the target is
    as many clouds old and many more seconds.
    """

    clouds: int = param(2, low=1, high=100, help="how many clouds old it is")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Decide by the oldest in the queue."""
        queue: deque[DriverScene] = deque(maxlen=self.clouds + 1)

        def look(scene: DriverScene) -> DriverScene:
            queue.append(steps.look(scene))
            oldest = queue[0]
            there = np.full(len(oldest.extents_m), len(queue) > self.clouds)
            return replace(oldest, obstacles=oldest.obstacles.take(there), extents_m=oldest.extents_m[there])

        return replace(steps, look=look)
