# SPDX-License-Identifier: Apache-2.0
"""A threshold for one side of the road."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.base import Fault, Steps


@dataclass(frozen=True)
class RightSideThreshold(Fault):
    """Obstacles to the right must be surer than those to the left, against clutter at the kerb where one drives right.

    In a mirror the same street has obstacles there that vanish.
    """

    least_score: float = param(0.8, low=0.0, high=1.0, help="score from which an obstacle to the right is published")

    def plant(self, steps: Steps) -> Steps:
        """Drop unsure obstacles to the right."""

        def report(found: Detections) -> Detections | None:
            to_the_right = found.center_m[:, 1] < 0.0
            return steps.report(found.take(~(to_the_right & (found.score < self.least_score))))

        return replace(steps, report=report)
