# SPDX-License-Identifier: Apache-2.0
"""Obstacles relative to the lane: who is in it, and how much of it is free on both sides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.car_following import Lead

Extents = npt.NDArray[np.float64]
"""(M, 4) nearest x, farthest x, rightmost y, leftmost y in metres; x ahead along the lane, y left of its middle."""
Room = tuple[float, float]
"""How far the lane is free to the right and to the left of its middle, in metres, both positive."""


@dataclass(frozen=True)
class Corridor:
    """The lane ahead, of constant curvature, as a map would provide it.

    Attributes:
        curvature_1pm: positive to the left.
        half_width_m: who is so near to the middle is in the way. free_half_m: more room than that is not used.
        front_m: the vehicle's front ahead of base_link.
        near_m, far_m: what stands beside the lane counts wholly up to the one, and not at all from the other on.
    """

    curvature_1pm: float
    half_width_m: float
    free_half_m: float
    front_m: float
    near_m: float
    far_m: float

    def extents(self, obstacles: Detections) -> Extents:
        """Return the extents along the lane of obstacles (M) in a road frame.

        A box at an angle counts as the ellipse in it: its corners are empty, since one sees two sides of a vehicle.
        """
        x, y = obstacles.center_m[:, 0], obstacles.center_m[:, 1]
        c, s = np.cos(obstacles.yaw_rad), np.sin(obstacles.yaw_rad)
        length, width = obstacles.size_m[:, 0] / 2.0, obstacles.size_m[:, 1] / 2.0
        ahead, aside = np.hypot(c * length, s * width), np.hypot(s * length, c * width)
        left = y - self.curvature_1pm * x**2 / 2.0
        return np.column_stack([x - ahead, x + ahead, left - aside, left + aside])

    def lead(self, obstacles: Detections, extents_m: Extents) -> Lead | None:
        """Return the nearest obstacle in the path, None if the road is free."""
        near, far, right, left = extents_m.T
        rows = np.flatnonzero((right < self.half_width_m) & (left > -self.half_width_m) & (far > self.front_m))
        if not len(rows):
            return None
        row = int(rows[np.argmin(near[rows])])
        closing = float(np.nan_to_num(-obstacles.velocity_mps[row, 0]))
        return Lead(max(float(near[row]) - self.front_m, 0.0), closing, row)

    def room(self, extents_m: Extents) -> Room:
        """Return the free width of the lane on both sides, limited by obstacles beside it.

        What is farther ahead counts less, and so does what is passed already: nothing jumps as it comes and goes.
        """
        near, far, right, left = extents_m.T
        counts = np.interp((near + far) / 2.0, (0.0, self.near_m / 2.0, self.near_m, self.far_m), (0.0, 1.0, 1.0, 0.0))
        taken = counts * np.maximum(self.free_half_m - np.maximum(right, -left), 0.0)
        to_right, to_left = left <= -self.half_width_m, right >= self.half_width_m
        return (
            self.free_half_m - float(taken[to_right].max(initial=0.0)),
            self.free_half_m - float(taken[to_left].max(initial=0.0)),
        )
