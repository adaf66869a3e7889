# SPDX-License-Identifier: Apache-2.0
"""Steering onto a path, and the line driven until then."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.data.outputs import Path
from mt_nodes.stacks.reference.traffic import EgoPose
from mt_nodes.stacks.reference.way import LanePath

_PATH_M, _PATH_STEP_M = 30.0, 1.0
_DECIMALS = 6


@dataclass(frozen=True)
class Pursuit:
    """Pure pursuit: the arc from the rear axle, tangential to the vehicle, that meets a point of the path ahead.

    Its curvature is 2 y / l² for a point at distance l, y to the left (R. C. Coulter, Implementation of the Pure
    Pursuit Path Tracking Algorithm, Carnegie Mellon, 1992).
    ``seconds``, ``least_m``, ``most_m``: how far ahead the point lies: as driving time, and within these bounds.
    ``across_mps2``: most acceleration across the road, v² times curvature.
    """

    seconds: float
    least_m: float
    most_m: float
    across_mps2: float

    def ahead_m(self, speed_mps: float) -> float:
        """Return the look-ahead distance."""
        return float(np.clip(self.seconds * speed_mps, self.least_m, self.most_m))

    def curvature_1pm(self, way: LanePath, ego: EgoPose, aside_m: float) -> float:
        """Return the curvature, positive to the left, onto the path or a line ``aside_m`` to its left."""
        station, _ = way.place(np.array([[ego.x_m, ego.y_m]]))
        aim = way.at(station + self.ahead_m(ego.speed_mps), aside_m)
        ((x, y),) = ego.seen_from(aim).tolist()
        most = self.across_mps2 / max(ego.speed_mps, 1.0) ** 2
        return float(np.clip(2.0 * y / max(x * x + y * y, 1.0), -most, most))

    def path(self, way: LanePath, ego: EgoPose, aside_m: float) -> Path:
        """Return the line from the vehicle's position to ``aside_m`` left of the path, in ``base_link``."""
        station, left = way.place(np.array([[ego.x_m, ego.y_m]]))
        ahead = np.arange(0.0, _PATH_M + _PATH_STEP_M / 2.0, _PATH_STEP_M)
        share = np.clip(ahead / self.ahead_m(ego.speed_mps), 0.0, 1.0)
        swing = share * share * (3.0 - 2.0 * share)
        xy = ego.seen_from(way.at(station + ahead, left + (aside_m - left) * swing))
        steps = np.diff(xy, axis=0, append=2.0 * xy[-1:] - xy[-2:-1])
        return Path.make(
            "base_link", None, np.column_stack([xy, np.arctan2(steps[:, 1], steps[:, 0])]).round(_DECIMALS)
        )
