# SPDX-License-Identifier: Apache-2.0
"""A list of obstacles with a last place."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.base import Fault, Steps


@dataclass(frozen=True)
class ObstacleListFull(Fault):
    """The message has room for so many obstacles; of more, the least sure are left out without a word.

    Another obstacle, wherever it appears, pushes one out that was there.
    """

    places: int = param(10, low=1, high=10_000, help="obstacles that the list holds")

    def plant(self, steps: Steps) -> Steps:
        """Keep the surest, in the order in which they were found."""

        def report(found: Detections) -> Detections | None:
            surest = np.argsort(-found.score, kind="stable")[: self.places]
            return steps.report(found.take(np.sort(surest)))

        return replace(steps, report=report)
