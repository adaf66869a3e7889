# SPDX-License-Identifier: Apache-2.0
"""A mount that is added twice."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.base import Fault, Steps


@dataclass(frozen=True)
class MountOffsetTwice(Fault):
    """Points come in base_link, and are taken for points of the sensor's frame: its mount is added again.

    Every obstacle is published the same way off, so two runs agree. Turn the scene, and the offset does not turn with
    it: the mix-up of frames shows.
    """

    mount_m: tuple[float, float] = param((1.6, 0.0), unit="m", help="the sensor's place (x, y) in base_link")

    def plant(self, steps: Steps) -> Steps:
        """Shift what is published by the mount."""

        def report(found: Detections) -> Detections | None:
            shifted = replace(found, center_m=found.center_m + np.array([*self.mount_m, 0.0]))
            return steps.report(shifted)

        return replace(steps, report=report)
