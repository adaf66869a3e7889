# SPDX-License-Identifier: Apache-2.0
"""A limit of height for what can drive."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.base import Fault, Steps


@dataclass(frozen=True)
class TallIsBuilding(Fault):
    """What is taller than the cars it was made for is taken for a building, and dropped.

    A van or a lorry in the place of a car is not seen.
    """

    tallest_m: float = param(2.0, low=0.5, high=10.0, unit="m", help="height from which an obstacle is dropped")

    def plant(self, steps: Steps) -> Steps:
        """Drop tall obstacles."""

        def report(found: Detections) -> Detections | None:
            return steps.report(found.take(found.size_m[:, 2] <= self.tallest_m))

        return replace(steps, report=report)
