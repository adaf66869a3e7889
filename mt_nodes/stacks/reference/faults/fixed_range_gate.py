# SPDX-License-Identifier: Apache-2.0
"""A range gate written into the code."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.base import Fault, Steps


@dataclass(frozen=True)
class FixedRangeGate(Fault):
    """Obstacles beyond a fixed range are dropped, whatever region and range the detector is asked to watch.

    An obstacle just inside the gate vanishes when the scene moves away a little.
    """

    range_m: float = param(28.0, low=1.0, high=200.0, unit="m", help="farther obstacles are dropped")

    def plant(self, steps: Steps) -> Steps:
        """Drop what is beyond the gate."""

        def report(found: Detections) -> Detections | None:
            return steps.report(found.take(np.hypot(found.center_m[:, 0], found.center_m[:, 1]) <= self.range_m))

        return replace(steps, report=report)
