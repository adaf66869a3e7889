# SPDX-License-Identifier: Apache-2.0
"""A grid whose index is masked where it should be checked."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.base import Fault, Points, Steps


@dataclass(frozen=True)
class GridIndexWrap(Fault):
    """Cell indices are masked to the grid's power-of-two size instead of being checked against it.

    What lies beyond the grid comes in again at the opposite edge, before the region filter. A far point that falls
    on an obstacle's column above its head makes it taller than any road user: it is rejected as structure.
    Inside the grid nothing changes.
    """

    cell_m: float = param(0.25, low=0.01, high=10.0, unit="m", help="side of a cell")
    cells: tuple[int, int] = param((512, 128), low=2, help="cells along x and y, powers of two")
    origin_m: tuple[float, float] = param((-24.0, -16.0), unit="m", help="corner of the grid with the lowest x, y")

    def plant(self, steps: Steps) -> Steps:
        """Fold far points into the grid."""
        period = np.array(self.cells) * self.cell_m

        def admit(cloud: Points) -> Points:
            folded = steps.admit(cloud).copy()
            folded[:, :2] -= np.floor((folded[:, :2] - self.origin_m) / period) * period
            return folded

        return replace(steps, admit=admit)
