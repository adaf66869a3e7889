# SPDX-License-Identifier: Apache-2.0
"""A fixed buffer in front of the region filter."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.base import Fault, Steps


@dataclass(frozen=True)
class PointBufferCap(Fault):
    """Points beyond the capacity of an input buffer are dropped without a word.

    The buffer is filled in arrival order before the region filter, so points anywhere push the end of the
    revolution out of it: an obstacle in the last columns of the scan vanishes.
    """

    capacity: int = param(107_800, low=1, help="points that fit; the generated drive's largest frame has fewer")

    def plant(self, steps: Steps) -> Steps:
        """Cut the cloud off at the capacity."""
        return replace(steps, admit=lambda cloud: steps.admit(cloud)[: self.capacity])
