# SPDX-License-Identifier: Apache-2.0
"""Beams numbered as they come, and a table for 64 of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.base import Fault, Points, Steps
from mt_nodes.world.scene.lidar import hdl_64e


@dataclass(frozen=True)
class HardCodedRingCount(Fault):
    """Beams are numbered from the top as they are met, and a table for 64 beams tells the elevation of each.

    With all 64 beams that is right. One beam less, and whatever lies below it is lifted by a beam; with every other
    beam the road rises to the horizon.
    """

    lidar_height_m: float = param(1.73, low=0.0, high=10.0, unit="m", help="the sensor's height above base_link")

    def plant(self, steps: Steps) -> Steps:
        """Lift points to where the table has the beam that they are taken for."""
        table = np.array(hdl_64e().elevations_rad)
        between = -(table[1:] + table[:-1]) / 2.0

        def admit(cloud: Points) -> Points:
            admitted = steps.admit(cloud).copy()
            ground_m = np.hypot(admitted[:, 0], admitted[:, 1])
            beam = np.searchsorted(between, -np.arctan2(admitted[:, 2] - self.lidar_height_m, ground_m))
            met = np.bincount(beam, minlength=len(table)) > 0
            taken_for = np.cumsum(met) - 1
            # Exactly nothing is added to a point whose beam is taken for what it is.
            admitted[:, 2] += ground_m * (np.tan(table[taken_for]) - np.tan(table))[beam]
            return admitted

        return replace(steps, admit=admit)
