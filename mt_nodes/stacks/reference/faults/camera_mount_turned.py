# SPDX-License-Identifier: Apache-2.0
"""A camera that does not look where the calibration says."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.transforms import Matrix, pose_matrix
from mt_nodes.stacks.reference.faults.fusion_base import FusionFault, FusionSteps


@dataclass(frozen=True)
class CameraMountTurned(FusionFault):
    """The camera is reckoned to look a little to the side, as with a yaw that was entered with the wrong sign.

    A cluster is still taken for the person beside whom it seems to be, and the person's box goes where nobody is.
    """

    yaw_deg: float = param(2.5, low=-45.0, high=45.0, unit="deg", help="by how much, positive to the left")

    def plant(self, steps: FusionSteps) -> FusionSteps:
        """Turn the camera about the upright axis."""
        half = np.radians(self.yaw_deg) / 2.0
        turn = pose_matrix((0.0, 0.0, 0.0), (0.0, 0.0, float(np.sin(half)), float(np.cos(half))))

        def mount(true: Matrix) -> Matrix:
            turned = steps.mount(true).copy()
            turned[:3, :3] = turn[:3, :3] @ turned[:3, :3]
            return turned

        return replace(steps, mount=mount)
