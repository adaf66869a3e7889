# SPDX-License-Identifier: Apache-2.0
"""Dirt on the sensor's window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.effects import Volume
from mt_nodes.data.intensity.echo_fields import write_values
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.each_cloud import proof_of_change
from mt_nodes.relations.mutations.lidar.lost_returns import (
    LostReturns,
    azimuth_rad,
    bearing_offset_rad,
    cloud_offset_rad,
    sector,
)
from mt_nodes.relations.mutations.lidar.placement import empty_returns
from mt_nodes.relations.mutations.lidar.rays import At, ranges_m
from mt_nodes.relations.mutations.lidar.strength_proof import off_strength

#: A target of this reflectivity is just detected at the sensor's full range (V. Kilic et al., LISA, 2021).
_REFERENCE_REFLECTIVITY = 0.9


@dataclass(frozen=True)
class SectorBlocked(LostReturns):
    """Loses returns in a sector of azimuth, as behind dirt, a sticker or a drop on the sensor's window.

    With ``attenuation`` 1 all of them. With less, a share a of the light is lost on the way out and again on the way
    back, so that intensities fall by (1 − a)², and a return is lost when (1 − a)² ρ < 0.9 (R / R_max)²: the received
    power goes with ρ / R², and a target of 90 % is just seen at R_max (noise floor of LISA: V. Kilic et al., Lidar
    Light Scattering Augmentation, 2021). ρ is what the intensity says (:mod:`mt_nodes.data.intensity`).
    Guaranteed: outside the sector, no byte changes; inside, exactly the returns below the floor are lost. Effects: the
    sector is occluded.
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
        if self.attenuation == 1.0 or not cloud.echo_names:
            return cloud
        raw, rows = cloud.raw.copy(), np.flatnonzero(self._inside(cloud))
        share, range_m = np.full(len(rows), np.float32(self._passing)), ranges_m(cloud, rows)
        write_values(raw.view(cloud.points.dtype), rows, cloud.echoes.weakened(cloud.points, rows, share, range_m))
        return cloud.with_raw(raw, height=cloud.height)

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Prove the loss, and that the sector's intensities, and they alone, fell by the law."""
        broken = super().prove_cloud(bundle, old, new, draw)
        if broken is not None or self.attenuation == 1.0 or not old.echo_names:
            return broken
        weak = self.weakened(old)
        inside = cloud_offset_rad(old, np.radians(self.centre_deg)) <= np.radians(self.width_deg / 2.0) - self.tolerance
        rows = np.flatnonzero(inside & ~empty_returns(old))
        range_m, fall_db = ranges_m(old, rows), 20.0 * np.log10(1.0 - self.attenuation)
        for field in old.echoes.fields:
            expected = field.convention.decibels(old.points[field.name][rows], range_m) + fall_db
            if off_strength(field, weak.points, rows, expected, range_m).any():
                return f"the sector's values of '{field.name}' fell by another share"
        return proof_of_change(old, weak, np.flatnonzero(self._inside(old)), old.echo_names)

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

    def _reflectivity(self, cloud: Cloud, at: At) -> Floats:
        if not cloud.echo_names:
            raise NotApplicable(f"{cloud.topic} has no intensities, which partial attenuation needs")
        return np.asarray(cloud.echoes.reflectivity(cloud.points, at, ranges_m(cloud, at)), np.float64)
