# SPDX-License-Identifier: Apache-2.0
"""The lane of half a minute ago."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverScene, DriverSteps
from mt_nodes.stacks.reference.lane_room import Room


@dataclass(frozen=True)
class RoomAveragedTooLong(DriverFault):
    """How far the lane is free is averaged over hundreds of clouds, from a free lane on, so that nothing flickers.

    On a straight street it drives smoothly in the middle. Where the lane lies elsewhere it goes on straight for many
    seconds.
    """

    clouds: float = param(300.0, low=1.0, high=1e6, help="how many clouds the average reaches back")
    free_m: float = param(1.9, low=0.5, high=5.0, unit="m", help="room to either side that it begins with")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Average once more."""
        average = [self.free_m, self.free_m]

        def room(scene: DriverScene) -> Room:
            for side, seen_m in enumerate(steps.room(scene)):
                average[side] += (seen_m - average[side]) / self.clouds
            return average[0], average[1]

        return replace(steps, room=room)
