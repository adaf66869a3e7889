# SPDX-License-Identifier: Apache-2.0
"""A burst is answered by a pause."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Output
from mt_nodes.stacks.reference.faults.base import Points
from mt_nodes.stacks.reference.faults.driver_base import DriverFault, DriverSteps


@dataclass(frozen=True)
class SilentAfterBurst(DriverFault):
    """After two clouds that follow each other too fast nothing is said for a while: a guard against floods.

    At a steady rate it never comes on. A sensor's driver that sends each cloud again, or two that were held up, take
    every other command away.
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
