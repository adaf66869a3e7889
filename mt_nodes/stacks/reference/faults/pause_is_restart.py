# SPDX-License-Identifier: Apache-2.0
"""A pause that is taken for a restart."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.base import Fault, Steps


@dataclass(frozen=True)
class PauseIsRestart(Fault):
    """A pause between two stamps that is longer than usual is taken for a sensor that started anew and must settle.

    Nothing is published until so many clouds came. One lost frame is such a pause, one that comes too late, too.
    """

    longest_s: float = param(0.15, low=0.001, high=10.0, unit="s", help="a longer pause is a restart")
    settling: int = param(2, low=1, high=100, help="clouds after a pause of which nothing is published")

    def plant(self, steps: Steps) -> Steps:
        """Publish an empty list while the sensor is thought to settle."""
        longest_ns = round(self.longest_s * 1e9)
        last_ns: int | None = None
        left = 0

        def report(found: Detections) -> Detections | None:
            nonlocal last_ns, left
            if found.stamp_ns is None:
                return steps.report(found)
            paused = last_ns is not None and found.stamp_ns - last_ns > longest_ns
            last_ns, left = found.stamp_ns, self.settling if paused else max(left - 1, 0)
            return steps.report(Detections.none(found.frame_id, found.stamp_ns) if left else found)

        return replace(steps, report=report)
