# SPDX-License-Identifier: Apache-2.0
"""Faults of the LiDAR driver in how far its lane is free, and in the integrals by which it steers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

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


@dataclass(frozen=True)
class CloudsCounted(DriverFault):
    """Speed and steering go on by a fixed step a cloud, whatever the stamps say.

    At the sensor's rate that is right. Where clouds are lost the vehicle brakes later, where they come twice harder.
    """

    step_s: float = param(0.1, low=0.001, high=1.0, unit="s", help="time that a cloud is thought to take")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Take no notice of the time."""
        return replace(steps, elapsed_s=lambda elapsed_s: self.step_s)


@dataclass(frozen=True)
class IntegratorNotReset(DriverFault):
    """After a pause the steering's integral goes on: the last error is taken to have lasted all the time.

    A clock that is set, or a sensor that was away for some seconds, and the vehicle swerves when it is back.
    """

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Integrate over the pause; a jump back counts as one ahead."""

        def after_pause(integral: float, off_m: float, pause_s: float) -> float:
            return integral + off_m * abs(pause_s)

        return replace(steps, after_pause=after_pause)
