# SPDX-License-Identifier: Apache-2.0
"""Nobody is expected on the left."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverScene, DriverSteps
from mt_nodes.stacks.reference.lane_room import Room


@dataclass(frozen=True)
class LeftTakenForFree(DriverFault):
    """Only what stands on the right limits the lane: parked cars were what it was made for.

    Whoever walks along the line on the left is passed at no greater distance.
    """

    free_m: float = param(1.9, low=0.5, high=5.0, unit="m", help="room that is taken to be on the left")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Look to the right."""

        def room(scene: DriverScene) -> Room:
            return steps.room(scene)[0], self.free_m

        return replace(steps, room=room)
