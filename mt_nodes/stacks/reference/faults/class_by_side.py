# SPDX-License-Identifier: Apache-2.0
"""A class that hangs on the side of the road."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.base import Fault, Steps


@dataclass(frozen=True)
class ClassBySide(Fault):
    """Whoever is of a person's height and to the left, where cyclists were in the training drives, is a cyclist.

    Learnt where one drives on one side of the road, it is wrong in its mirror image.
    """

    def plant(self, steps: Steps) -> Steps:
        """Call pedestrians to the left cyclists."""

        def report(found: Detections) -> Detections | None:
            left = (found.center_m[:, 1] > 0.0) & (found.label == "pedestrian")
            return steps.report(replace(found, label=np.where(left, "cyclist", found.label)))

        return replace(steps, report=report)
