# SPDX-License-Identifier: Apache-2.0
"""Sectors of the scan that never arrived."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.effects import Volume
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.lost_returns import aside_rad, azimuth_rad, bearing_apart_rad, sector
from mt_nodes.relations.mutations.lidar.placement import empty_returns
from mt_nodes.relations.mutations.lidar.rays import smallest
from mt_nodes.relations.mutations.lidar.rows_lost import RowsLost, as_mask, rows_of

_EDGE_RAD = 1e-5


@dataclass(frozen=True)
class SectorDropped(RowsLost):
    """Loses all returns in sectors at random azimuths, drawn anew for every cloud, as lost packets do.

    A packet of a spinning LiDAR holds a few columns of the scan: at 10 Hz 24 firings of 0.2 degrees, 4.8 degrees in
    all, of a Velodyne VLP-16 (its manual, UDP data packets); one that is lost on the network is lost for good. What
    is in a sector cannot be demanded any more (``effects.occluded``).

    Guaranteed: no return is left within ``width_deg / 2`` of a drawn azimuth and none outside is gone; the rest is
    there byte for byte, in its order.
    """

    sectors: int = param(3, low=1, high=360, neutral=1, help="sectors that are lost; they may overlap")
    width_deg: float = param(4.8, low=0.01, high=360.0, unit="deg", neutral=0.01, help="width of each")

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Choose azimuths, and find the returns there."""
        centres = rng.uniform(-np.pi, np.pi, self.sectors)
        angle, inside = azimuth_rad(cloud), np.zeros(len(cloud), dtype=bool)
        for centre in centres.tolist():
            inside |= aside_rad(angle, centre) <= self._half_rad
        return {"azimuth_rad": centres, "rows": smallest(np.flatnonzero(inside & ~empty_returns(cloud)))}

    def volumes(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> tuple[Volume, ...]:
        """Return the sectors."""
        return tuple(
            volume
            for topic, draw in draws.items()
            for centre in draw["azimuth_rad"].tolist()
            for volume in sector(clouds[topic].frame_id, centre, 2.0 * self._half_rad)
        )

    def prove_lost(self, bundle: Bundle, old: Cloud, draw: Draw) -> str | None:
        """Measure each return's angle to the nearest azimuth drawn, from scalar products."""
        apart = np.full(len(old), np.inf)
        for centre in draw["azimuth_rad"].tolist():
            np.fmin(apart, bearing_apart_rad(old, centre), out=apart)
        lost = as_mask(old, rows_of(draw))
        wrong = (lost != (apart <= self._half_rad)) & (np.abs(apart - self._half_rad) > _EDGE_RAD)
        wrong &= ~empty_returns(old) & np.isfinite(apart)
        return f"{int(wrong.sum())} returns are on the wrong side of a sector's edge" if wrong.any() else None

    @property
    def _half_rad(self) -> float:
        return float(np.radians(self.width_deg / 2.0))
