# SPDX-License-Identifier: Apache-2.0
"""Room up to whatever returns first."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverScene, DriverSteps
from mt_nodes.stacks.reference.lane_room import Room


@dataclass(frozen=True)
class NearestReturnBeside(DriverFault):
    """On the right, where the kerb is, the lane is free up to the nearest point, be it of spray or of a drop.

    Where the air is clear that is the same as up to the nearest obstacle. In rain the vehicle swerves for nobody.
    """

    half_width_m: float = param(
        1.0, low=0.1, high=5.0, unit="m", help="what is nearer to straight ahead is in the lane"
    )
    ahead_m: tuple[float, float] = param((3.0, 9.0), low=0.0, high=100.0, unit="m", help="stretch that is looked at")
    keep_m: float = param(0.5, low=0.0, high=5.0, unit="m", help="so far one keeps away from it")
    height_m: tuple[float, float] = param((0.3, 4.0), low=-5.0, high=10.0, unit="m", help="heights that count")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Let single points narrow the lane on the right."""

        def room(scene: DriverScene) -> Room:
            right, left = steps.room(scene)
            x, y, z = scene.cloud[:, 0], scene.cloud[:, 1], scene.cloud[:, 2]
            (near, far), (low, high) = self.ahead_m, self.height_m
            edge = -y[(x > near) & (x < far) & (z > low) & (z < high) & (y <= -self.half_width_m)]
            return min(right, float(edge.min(initial=np.inf)) - self.keep_m), left

        return replace(steps, room=room)
