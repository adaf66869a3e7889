# SPDX-License-Identifier: Apache-2.0
"""Light that is taken for a clear view."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.camera_base import CameraFault, CameraSteps, Pixels
from mt_nodes.world.camera.model import CameraModel


@dataclass(frozen=True)
class BrightIsClear(CameraFault):
    """How well it sees ahead is told from how bright the picture is: by day one sees far, at night one does not.

    Glare, flare and fog in daylight are bright, too, and it drives faster in them.
    """

    clear: float = param(160.0, low=1.0, high=255.0, help="mean brightness in clear sight, steps of 8 bits")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Ask for the brightness alone."""

        def sight(grey: Pixels, camera: CameraModel) -> float:
            return min(1.0, float(grey.mean()) / self.clear)

        return replace(steps, sight=sight)
