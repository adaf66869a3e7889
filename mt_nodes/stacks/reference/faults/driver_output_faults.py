# SPDX-License-Identifier: Apache-2.0
"""Faults of the LiDAR driver in whether, when and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Diagnostics, Output
from mt_nodes.stacks.reference.faults.base import Points
from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverSteps


@dataclass(frozen=True)
class DensityOfEveryPair(DriverFault):
    """Before each answer it computes a point density for display, from every pair of points.

    Commands are right. The time grows with the square of the number of points, which was small on the developers'
    sensor.
    """

    one_of: int = param(20, low=1, high=1000, help="of so many points one is looked at")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Compare, and let the display be."""

        def say(cloud: Points, stamp_ns: int | None, output: Output) -> Output:
            x, y = cloud[:: self.one_of, 0], cloud[:: self.one_of, 1]
            for x_m, y_m in zip(x.tolist(), y.tolist(), strict=True):
                np.count_nonzero(np.hypot(x - x_m, y - y_m) < 1.0)
            return steps.say(cloud, stamp_ns, output)

        return replace(steps, say=say)


@dataclass(frozen=True)
class EveryOtherWhenBusy(DriverFault):
    """It answers only every other large cloud, to save computing time.

    Its answers are right, but in snow it commands half as often.
    """

    busy_points: int = param(130_000, low=1, high=100_000_000, help="points of a cloud from which on that is so")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Leave out every other answer to large clouds."""
        skipped = [True]

        def say(cloud: Points, stamp_ns: int | None, output: Output) -> Output:
            skipped[0] = len(cloud) >= self.busy_points and not skipped[0]
            return Output() if skipped[0] else steps.say(cloud, stamp_ns, output)

        return replace(steps, say=say)


@dataclass(frozen=True)
class LargeCloudIsError(DriverFault):
    """A cloud of more than a fixed number of points is reported as a sensor error, but used all the same.

    Whoever relies on the diagnostics hands over to a human because it snows, or because the new sensor is better.
    """

    most_points: int = param(130_000, low=1, high=100_000_000, help="points of the largest cloud that is none")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Say so."""

        def say(cloud: Points, stamp_ns: int | None, output: Output) -> Output:
            answer = steps.say(cloud, stamp_ns, output)
            if answer.diagnostics is None or len(cloud) <= self.most_points:
                return answer
            size = f"{len(cloud)} points, expected at most {self.most_points}"
            return replace(answer, diagnostics=Diagnostics({**answer.diagnostics.errors, "lidar size": size}))

        return replace(steps, say=say)


@dataclass(frozen=True)
class SilentAfterBurst(DriverFault):
    """After two clouds in quick succession it publishes nothing for a while, as a guard against floods.

    At a steady rate that never happens. A sensor driver that repeats clouds, or two delayed clouds, costs every other
    command.
    """

    apart_s: float = param(0.02, low=0.0, high=1.0, unit="s", help="clouds nearer to each other are a burst")
    pause_s: float = param(0.15, low=0.0, high=60.0, unit="s", help="how long nothing is said")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Keep the time, by stamps."""
        apart_ns, pause_ns = round(self.apart_s * 1e9), round(self.pause_s * 1e9)
        last: list[int] = []
        until: list[int] = []

        def say(cloud: Points, stamp_ns: int | None, output: Output) -> Output:
            if stamp_ns is None:
                return steps.say(cloud, stamp_ns, output)
            if until and not until[0] - pause_ns <= stamp_ns < until[0]:
                until.clear()
            quiet = bool(until)
            if not quiet and last and 0 <= stamp_ns - last[0] < apart_ns:
                until[:] = [stamp_ns + pause_ns]
            last[:] = [stamp_ns]
            return Output() if quiet else steps.say(cloud, stamp_ns, output)

        return replace(steps, say=say)


@dataclass(frozen=True)
class ThinCloudNotAnswered(DriverFault):
    """A cloud of fewer than a fixed number of points is dropped as incomplete, without a message.

    In heavy rain, or with a lesser sensor, no command comes at all, and nobody is told why.
    """

    least_points: int = param(20_000, low=1, high=100_000_000, help="points of the smallest cloud that is answered")
    waits: int = param(2, low=1, high=1000, unit="clouds", help="how many in a row are thrown away")

    def plant(self, steps: DriverSteps) -> DriverSteps:
        """Say nothing, some times."""
        thrown = [0]

        def say(cloud: Points, stamp_ns: int | None, output: Output) -> Output:
            torn = len(cloud) < self.least_points and thrown[0] < self.waits
            thrown[0] = thrown[0] + 1 if torn else 0
            return Output() if torn else steps.say(cloud, stamp_ns, output)

        return replace(steps, say=say)
