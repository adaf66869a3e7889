# SPDX-License-Identifier: Apache-2.0
"""A cycle that stamps must keep to."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.base import Fault, Steps


@dataclass(frozen=True)
class StampSlot(Fault):
    """A cloud stamped late in a cycle of the clock is taken for one that missed it, and what was found is thrown away.

    A sensor in step with the clock never shows it; one that starts up half a cycle later shows nothing else.
    """

    cycle_s: float = param(0.1, low=0.001, high=10.0, unit="s", help="period of the cycle, which begins at stamp 0")
    open_share: float = param(0.15, low=0.0, high=1.0, help="share of a cycle in which a cloud is in time")

    def plant(self, steps: Steps) -> Steps:
        """Publish an empty list for a cloud that is late."""
        cycle_ns = round(self.cycle_s * 1e9)

        def report(found: Detections) -> Detections | None:
            late = found.stamp_ns is not None and found.stamp_ns % cycle_ns > self.open_share * cycle_ns
            return steps.report(Detections.none(found.frame_id, found.stamp_ns) if late else found)

        return replace(steps, report=report)
