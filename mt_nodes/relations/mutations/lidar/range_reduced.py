# SPDX-License-Identifier: Apache-2.0
"""A shorter range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.effects import Volume
from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.lost_returns import Floats, LostReturns, Mask, sector


@dataclass(frozen=True)
class RangeReduced(LostReturns):
    """Loses every return beyond a distance from the sensor.

    As with a weaker laser, an ageing detector or a sensor of shorter range: what is left is what such a sensor reports,
    because the time of flight alone, 2 R / c, decides. Guaranteed: no return beyond ``max_range_m`` is left and none
    within it is touched. Effects: everything that far away is occluded.
    """

    max_range_m: float = param(60.0, low=1.0, high=300.0, unit="m", neutral=300.0, help="returns farther away are lost")

    tolerance: ClassVar[float] = 1e-4

    def lost(self, cloud: Cloud, draw: Draw) -> Mask:
        """Compare squares of single precision."""
        x, y, z = (np.ascontiguousarray(cloud.points[name], dtype=np.float32) for name in "xyz")
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(x * x + y * y + z * z > np.float32(self.max_range_m**2))

    def excess(self, cloud: Cloud, draw: Draw) -> Floats:
        """Metres beyond the range, from double precision."""
        x, y, z = (cloud.points[name].astype(np.float64) for name in "xyz")
        return np.asarray(np.hypot(np.hypot(x, y), z) - self.max_range_m)

    def hidden(self, cloud: Cloud) -> tuple[Volume, ...]:
        """A ring around the sensor, without end."""
        return tuple(sector(cloud.frame_id, 0.0, 2.0 * np.pi, near_m=self.max_range_m))
