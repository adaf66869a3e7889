# SPDX-License-Identifier: Apache-2.0
"""Less room on one side."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverScene, DriverSteps
from mt_nodes.stacks.reference.lane_room import Room


@dataclass(frozen=True)
class CloserOnTheLeft(DriverFault):
    """What stands on the left is thought to be farther away than it is: an offset that was tuned on one vehicle.

    The vehicle drives a little to the left of the middle, always, and nobody notices until the street is its own mirror
    image: then the same people are passed on the other side at another distance.
    """

    offset_m: float = param(0.6, low=0.0, high=5.0, unit="m", help="by how much")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Move what limits the lane on the left."""

        def room(scene: DriverScene) -> Room:
            right, left = steps.room(scene)
            return right, left + self.offset_m

        return replace(steps, room=room)
