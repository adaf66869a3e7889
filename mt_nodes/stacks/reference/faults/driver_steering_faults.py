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
    """Obstacles on the left are estimated too far away, by an offset that was tuned on one vehicle.

    The vehicle always drives a little to the left of the middle. Nobody notices until the street is mirrored: then it
    passes the same people at another distance.
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
    """Only obstacles on the right limit the lane, because it was developed for parked cars.

    It keeps no distance to people who walk along the line on the left.
    """

    free_m: float = param(1.9, low=0.5, high=5.0, unit="m", help="room that is taken to be on the left")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Look to the right."""

        def room(scene: DriverScene) -> Room:
            return steps.room(scene)[0], self.free_m

        return replace(steps, room=room)


@dataclass(frozen=True)
class NearestReturnBeside(DriverFault):
    """On the right, at the kerb, the lane is free only up to the nearest point, even if it is spray or a drop.

    In clear air that is the nearest obstacle. In rain the vehicle swerves although nobody is there.
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
    """The free width of the lane is averaged over hundreds of clouds, beginning with a free lane, to avoid flicker.

    On a straight street it drives smoothly in the middle. Where the lane lies elsewhere it goes straight for many
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
    """Speed and steering are integrated with a fixed step per cloud, whatever the stamps say.

    At the sensor's rate that is right. When clouds are lost the vehicle brakes later, when they come twice it brakes
    harder.
    """

    step_s: float = param(0.1, low=0.001, high=1.0, unit="s", help="time that a cloud is thought to take")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Take no notice of the time."""
        return replace(steps, elapsed_s=lambda elapsed_s: self.step_s)


@dataclass(frozen=True)
class IntegratorNotReset(DriverFault):
    """After a pause the steering integral continues, as if the last error had lasted all the time.

    When the clock is set, or the sensor is away for some seconds, the vehicle swerves afterwards.
    """

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Integrate over the pause; a jump back counts as one ahead."""

        def after_pause(integral: float, off_m: float, pause_s: float) -> float:
            return integral + off_m * abs(pause_s)

        return replace(steps, after_pause=after_pause)
