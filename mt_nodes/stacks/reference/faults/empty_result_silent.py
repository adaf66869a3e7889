# SPDX-License-Identifier: Apache-2.0
"""Nothing found, nothing said."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.base import Fault, Steps


@dataclass(frozen=True)
class EmptyResultSilent(Fault):
    """An empty list is not published.

    Whoever listens cannot tell a free road from a detector that died.
    """

    def plant(self, steps: Steps) -> Steps:
        """Publish nothing when there is nothing."""

        def report(found: Detections) -> Detections | None:
            return steps.report(found) if len(found) else None

        return replace(steps, report=report)
