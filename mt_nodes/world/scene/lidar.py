# SPDX-License-Identifier: Apache-2.0
"""Models of spinning LiDARs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Singles


@dataclass(frozen=True)
class LidarModel:
    """A LiDAR that fires all beams at every azimuth, turning clockwise from straight ahead.

    Attributes:
        elevations_rad: one angle a beam, positive upward; ring number = place in this tuple.
        azimuths: columns a revolution.
        range_min_m, range_max_m: returns outside are not reported.
        range_sigma_m: standard deviation of the range noise, along the ray.
        dropout: share of returns lost at random.
        sensitivity: reflectivity times cosine of incidence that is just seen at ``range_max_m``; at range R the
            limit is ``sensitivity * (R / range_max_m)**2``.
        period_s: duration of one revolution.
    """

    elevations_rad: tuple[float, ...]
    azimuths: int
    range_min_m: float
    range_max_m: float
    range_sigma_m: float
    dropout: float
    sensitivity: float = 0.02
    period_s: float = 0.1

    @cached_property
    def directions(self) -> Floats:
        """Unit vectors (azimuths * beams, 3) in the sensor frame, column after column as the sensor fires."""
        azimuth = -2.0 * np.pi * np.arange(self.azimuths)[:, None] / self.azimuths
        elevation = np.array(self.elevations_rad)[None, :]
        x, y = np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth)
        return np.stack([x, y, np.broadcast_to(np.sin(elevation), x.shape)], axis=-1).reshape(-1, 3)

    @cached_property
    def rings(self) -> npt.NDArray[np.uint16]:
        """Ring number (azimuths * beams,) of each direction."""
        return np.tile(np.arange(len(self.elevations_rad), dtype=np.uint16), self.azimuths)

    @cached_property
    def times_s(self) -> Singles:
        """Firing time (azimuths * beams,) of each direction, from the start of the revolution."""
        columns = np.arange(self.azimuths, dtype=np.float32) * np.float32(self.period_s / self.azimuths)
        return np.repeat(columns, len(self.elevations_rad))


def hdl_64e() -> LidarModel:
    """Return a 64-beam model after the factory calibration of the Velodyne HDL-64E S2, at 10 Hz.

    Upper block of 32 beams from +2.02° to −8.52°, lower block of 32 from −8.95° to −24.71°; individual
    deviations of beams are left out.
    """
    degrees = np.concatenate([np.linspace(2.02, -8.52, 32), np.linspace(-8.95, -24.71, 32)])
    return LidarModel(tuple(np.radians(degrees).tolist()), 1800, 0.9, 120.0, 0.02, 0.06)
