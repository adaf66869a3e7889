# SPDX-License-Identifier: Apache-2.0
"""A result that is never cleared."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.base import Fault, Steps


@dataclass(frozen=True)
class StaleResult(Fault):
    """The list of obstacles is replaced only when there is something to put into it.

    When nothing is found, what was found last is published again, with a new stamp.
    """

    def plant(self, steps: Steps) -> Steps:
        """Publish the last result when there is none."""

        last: list[Detections] = []

        def report(found: Detections) -> Detections | None:
            if len(found):
                last[:] = [found]
            return steps.report(replace(last[0], stamp_ns=found.stamp_ns) if last else found)

        return replace(steps, report=report)
