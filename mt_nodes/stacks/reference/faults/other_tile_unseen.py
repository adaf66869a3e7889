# SPDX-License-Identifier: Apache-2.0
"""A map in tiles."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.planner_base import PlannerFault, PlannerSteps, Situation


@dataclass(frozen=True)
class OtherTileUnseen(PlannerFault):
    """Objects are looked up by the tile of the map on which the vehicle is; those on the next one are not found.

    Somebody behind a border is seen when the vehicle has crossed it: the same scene some metres on is another one.
    """

    tile_m: float = param(40.0, low=5.0, high=1000.0, unit="m", help="side of a tile")

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Drop whoever is on another tile."""

        def look(situation: Situation) -> Situation:
            seen = steps.look(situation)
            x, y = seen.objects.center_m[:, :2].T
            here = seen.odometry
            c, s = np.cos(here.yaw_rad), np.sin(here.yaw_rad)
            tiles = np.floor(np.column_stack([here.x_m + c * x - s * y, here.y_m + s * x + c * y]) / self.tile_m)
            own = np.floor(np.array([here.x_m, here.y_m]) / self.tile_m)
            return replace(seen, objects=seen.objects.take((tiles == own).all(axis=1)))

        return replace(steps, look=look)
