# SPDX-License-Identifier: Apache-2.0
"""A smaller field of view."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.effects import Volume
from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.lost_returns import (
    Floats,
    LostReturns,
    Mask,
    aside_rad,
    azimuth_rad,
    bearing_apart_rad,
    sector,
)
from mt_nodes.relations.mutations.lidar.rays import ranges_m


@dataclass(frozen=True)
class FieldOfViewLimited(LostReturns):
    """Loses every return outside an azimuth window and between an upper and a lower elevation.

    As with a sensor behind a grille or a bumper, or one of a smaller field of view. Angles are the sensor's own:
    azimuth atan2(y, x), elevation atan2(z, √(x² + y²)). Guaranteed: no return outside the window is left and none
    inside it is touched. Effects: the sectors outside the azimuth window are occluded; what the elevations cut off is
    not said.
    """

    centre_deg: float = param(
        0.0, low=-180.0, high=180.0, unit="deg", aspect="place", help="azimuth of the window's middle"
    )
    width_deg: float = param(
        120.0, low=1.0, high=360.0, unit="deg", neutral=360.0, help="width of the window; 360: all around"
    )
    lowest_deg: float = param(
        -90.0, low=-90.0, high=90.0, unit="deg", neutral=-90.0, help="lowest elevation that is seen"
    )
    highest_deg: float = param(
        90.0, low=-90.0, high=90.0, unit="deg", neutral=90.0, help="highest elevation that is seen"
    )

    def __post_init__(self) -> None:
        if self.lowest_deg >= self.highest_deg:
            raise UsageError(f"got lowest_deg {self.lowest_deg:g}, expected it below highest_deg {self.highest_deg:g}")

    def lost(self, cloud: Cloud, draw: Draw) -> Mask:
        """Compare angles of single precision."""
        lost = np.zeros(len(cloud), dtype=bool)
        if self.width_deg < 360.0:
            lost |= aside_rad(azimuth_rad(cloud), np.radians(self.centre_deg)) > np.radians(self.width_deg / 2.0)
        if self.lowest_deg > -90.0 or self.highest_deg < 90.0:
            x, y, z = (np.ascontiguousarray(cloud.points[name], dtype=np.float32) for name in "xyz")
            elevation = np.arctan2(z, np.sqrt(x * x + y * y))
            lost |= (elevation < np.radians(self.lowest_deg)) | (elevation > np.radians(self.highest_deg))
        return lost

    def excess(self, cloud: Cloud, draw: Draw) -> Floats:
        """Radians outside the window, from scalar products."""
        excess = np.full(len(cloud), -np.inf)
        if self.lowest_deg > -90.0 or self.highest_deg < 90.0:
            with np.errstate(invalid="ignore", divide="ignore"):
                elevation = np.arcsin(cloud.points["z"].astype(np.float64) / ranges_m(cloud, slice(None)))
            excess = np.maximum(np.radians(self.lowest_deg) - elevation, elevation - np.radians(self.highest_deg))
        if self.width_deg < 360.0:
            aside = bearing_apart_rad(cloud, np.radians(self.centre_deg))
            np.maximum(excess, aside - np.radians(self.width_deg / 2.0), out=excess)
        return np.asarray(excess)

    def hidden(self, cloud: Cloud) -> tuple[Volume, ...]:
        """The rest of the circle."""
        rest = np.radians(360.0 - self.width_deg)
        return tuple(sector(cloud.frame_id, np.radians(self.centre_deg) + np.pi, rest)) if rest > 0.0 else ()
