# SPDX-License-Identifier: Apache-2.0
"""Dirt on the sensor's window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.effects import Volume
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.intensity_scale import full_scale
from mt_nodes.relations.mutations.lidar.lost_returns import (
    Floats,
    LostReturns,
    Mask,
    azimuth_rad,
    bearing_offset_rad,
    cloud_offset_rad,
    sector,
)
from mt_nodes.relations.mutations.lidar.placement import finite_range
from mt_nodes.relations.mutations.lidar.rays import ranges_m

#: A target of this reflectivity is just detected at the sensor's full range (V. Kilic et al., LISA, 2021).
_REFERENCE_REFLECTIVITY = 0.9


@dataclass(frozen=True)
class SectorBlocked(LostReturns):
    """Loses returns in a sector of azimuth, as behind dirt, a sticker or a drop on the sensor's window.

    With ``attenuation`` 1 all of them. With less, a share a of the light is lost on the way out and again on the way
    back, so that intensities fall by (1 − a)², and a return is lost when (1 − a)² ρ < 0.9 (R / R_max)²: the received
    power goes with ρ / R², and a target of 90 % is just seen at R_max (noise floor of LISA: V. Kilic et al., Lidar
    Light Scattering Augmentation, 2021). ρ is the intensity over its full scale. Guaranteed: outside the sector, no
    byte changes; inside, exactly the returns below the floor are lost. Effects: the sector is occluded.
    """

    centre_deg: float = param(
        0.0, low=-180.0, high=180.0, unit="deg", aspect="place", help="azimuth of the sector's middle"
    )
    width_deg: float = param(20.0, low=0.5, high=360.0, unit="deg", neutral=0.5, help="width of the sector")
    attenuation: float = param(1.0, low=0.01, high=1.0, neutral=0.01, help="share of the light that is lost on one way")
    max_range_m: float = param(
        120.0, low=1.0, high=500.0, unit="m", aspect="fixed", help="the sensor's range, for partial attenuation"
    )

    def lost(self, cloud: Cloud, draw: Draw) -> Mask:
        """Compare angles and powers in single precision."""
        inside = self._inside(cloud)
        if self.attenuation < 1.0:
            rows = np.flatnonzero(inside)
            x, y, z = (cloud.points[name][rows].astype(np.float32) for name in "xyz")
            floor = _REFERENCE_REFLECTIVITY * (x * x + y * y + z * z) / self.max_range_m**2
            inside[rows] = self._passing * self._reflectivity(cloud, rows) < floor
        return inside

    def excess(self, cloud: Cloud, draw: Draw) -> Floats:
        """Radians inside the sector, or metres beyond the range of just detected returns, whichever is less."""
        excess = np.radians(self.width_deg / 2.0) - cloud_offset_rad(cloud, np.radians(self.centre_deg))
        if self.attenuation < 1.0:
            seen_m = self.max_range_m * np.sqrt(self._passing * self._reflectivity(cloud, slice(None)) / 0.9)
            excess = np.minimum(excess, ranges_m(cloud, slice(None)) - seen_m)
        return np.asarray(excess)

    def weakened(self, cloud: Cloud) -> Cloud:
        """Scale the intensities of the sector."""
        name = cloud.intensity_field
        if self.attenuation == 1.0 or name is None:
            return cloud
        raw, rows = cloud.raw.copy(), np.flatnonzero(self._inside(cloud))
        field = raw.view(cloud.points.dtype)[name]
        field[rows] = field[rows] * self._passing
        return cloud.with_raw(raw, height=cloud.height)

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Prove the loss, and that the sector's intensities fell by the law, rounded down at most."""
        broken = super().prove_cloud(bundle, old, new, draw)
        name = old.intensity_field
        if broken is not None or self.attenuation == 1.0 or name is None:
            return broken
        before, after = (float(cloud.points[name].astype(np.float64).sum()) for cloud in (old, self.weakened(old)))
        inside = cloud_offset_rad(old, np.radians(self.centre_deg)) <= np.radians(self.width_deg / 2.0)
        fall = (1.0 - self._passing) * float(old.points[name][inside].astype(np.float64).sum())
        rounding = float(inside.sum()) if old.points.dtype[name].kind in "iu" else 1e-3 * (abs(before) + 1.0)
        return None if abs(before - after - fall) <= rounding else "the sector's intensities fell by another share"

    def hidden(self, cloud: Cloud) -> tuple[Volume, ...]:
        """The sector."""
        return tuple(sector(cloud.frame_id, np.radians(self.centre_deg), np.radians(self.width_deg)))

    @property
    def _passing(self) -> float:
        return (1.0 - self.attenuation) ** 2

    def _inside(self, cloud: Cloud) -> Mask:
        return np.asarray(
            bearing_offset_rad(azimuth_rad(cloud), np.radians(self.centre_deg)) <= np.radians(self.width_deg / 2)
        )

    def _reflectivity(self, cloud: Cloud, rows: np.ndarray[tuple[int], np.dtype[np.int64]] | slice) -> Floats:
        name = cloud.intensity_field
        found = None if name is None else finite_range(cloud.points[name])
        if name is None or found is None:
            raise NotApplicable(f"{cloud.topic} has no intensities, which partial attenuation needs")
        scale = full_scale(*found, cloud.points.dtype[name], cloud.topic)
        return np.asarray(cloud.points[name][rows].astype(np.float64) / scale)
