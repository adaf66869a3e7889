# SPDX-License-Identifier: Apache-2.0
"""A division by zero that was mended in the wrong place."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.base import Fault, Steps


@dataclass(frozen=True)
class ZeroTimeFloored(Fault):
    """The time between two clouds is never taken for less than a millisecond, so that nothing is divided by zero.

    When a cloud comes twice, centimetres between prediction and obstacle become tens of metres a second: the track
    flies off, and another is begun where it was.
    """

    least_s: float = param(0.001, low=1e-6, high=0.01, unit="s", help="shortest time that is reckoned with")

    def plant(self, steps: Steps) -> Steps:
        """Take no time for a little."""
        return replace(steps, elapsed_s=lambda elapsed_s: max(steps.elapsed_s(elapsed_s), self.least_s))
