# SPDX-License-Identifier: Apache-2.0
"""A heading that lost its sign."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.base import Fault, Steps


@dataclass(frozen=True)
class YawUnsigned(Fault):
    """The angle between a box and the road is published without its sign.

    Boxes that stand askew to one side are right, and those to the other are mirrored: nobody is lost, and in a mirror
    every one of them stands wrong.
    """

    def plant(self, steps: Steps) -> Steps:
        """Publish the absolute yaw."""

        def report(found: Detections) -> Detections | None:
            return steps.report(replace(found, yaw_rad=np.abs(found.yaw_rad)))

        return replace(steps, report=report)
