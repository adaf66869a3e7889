# SPDX-License-Identifier: Apache-2.0
"""A confidence that grows while evidence shrinks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.base import Fault, Steps


@dataclass(frozen=True)
class SurerWithLess(Fault):
    """Confidence is how well a box fits its points, and the fewer there are the better it fits.

    Nobody is lost by that. When returns are lost, the stack gets surer of what it hardly sees.
    """

    half_sure: float = param(10.0, low=0.1, high=1000.0, help="honest thresholds of points that halve the confidence")

    def plant(self, steps: Steps) -> Steps:
        """Let the score fall with the number of points, which is read from the honest score."""

        def report(found: Detections) -> Detections | None:
            thresholds = 2.0 * found.score / (1.0 - found.score)
            return steps.report(replace(found, score=1.0 / (1.0 + thresholds / self.half_sure)))

        return replace(steps, report=report)
