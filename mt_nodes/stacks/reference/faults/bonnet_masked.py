# SPDX-License-Identifier: Apache-2.0
"""A mask of another vehicle."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.camera_base import CameraFault, CameraSteps, Pixels


@dataclass(frozen=True)
class BonnetMasked(CameraFault):
    """The lower part of each picture is blanked, where the bonnet was in the vehicle that it was made for.

    Whoever is near stands in it, and people without legs are none.
    """

    share: float = param(0.35, low=0.0, high=0.5, help="of the picture's height")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Blank it where people are looked for; the lane's lines are looked for elsewhere, with no mask."""

        def grey(rgb: Pixels) -> Pixels:
            seen = steps.grey(rgb).copy()
            seen[round(len(seen) * (1.0 - self.share)) :] = 0
            return seen

        return replace(steps, grey=grey)
