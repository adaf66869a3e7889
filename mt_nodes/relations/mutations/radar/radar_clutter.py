# SPDX-License-Identifier: Apache-2.0
"""Detections of nobody: false alarms, and clutter of the ground and of guard rails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.radar import Radar, cartesian
from mt_nodes.data.radar_motion import directions
from mt_nodes.data.regions import Region, RegionGiven, load_region
from mt_nodes.data.transforms import move
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.placement import to_region
from mt_nodes.relations.mutations.radar.each_radar import (
    DetectionsAdded,
    added_draw,
    added_part,
    as_radar,
    motion_of,
    near,
)

#: Places drawn for each one needed, before the space outside the region counts as too small.
_TRIES = 200
_NEAREST_M = 2.0
#: Spread of the range rate of clutter that stands still: leaves and wet asphalt move a little (assumed).
_STIR_MPS = 0.1


@dataclass(frozen=True)
class RadarClutter(RegionGiven, DetectionsAdded):
    """Adds false detections outside a region: noise peaks, or clutter of the ground and of guard rails.

    A detector with a constant false alarm rate reports noise in a resolution cell with the same probability wherever
    the cell is, so that false alarms are Poisson distributed and uniform over range and azimuth (M. A. Richards,
    *Fundamentals of Radar Signal Processing*, 2nd ed., 2014, chapter 6). ``noise`` has any range rate between those of
    the message; ``standing`` has that of things that stand still, by the sensor's motion, which the standing
    detections of the message tell (Kellner et al., ITSC 2013). Strengths are drawn from those of the message.

    Guaranteed: every old detection remains, byte for byte; as many as drawn are new, each outside region and margin and
    within the sensor's field, and clutter that stands has the range rate of the sensor's motion.
    """

    detections: int = param(100, low=1, high=10_000, neutral=1, help="false detections of each message, or their mean")
    poisson: bool = param(False, help="their number fluctuates by Poisson's distribution")
    moves: str = param("noise", choices=("noise", "standing"), help="any range rate, or that of the ground")
    region: Region = param("front_40m", convert=load_region, help="what they stay out of")
    margin_m: float = param(
        1.0, low=0.0, high=100.0, unit="m", aspect="place", help="margin around the region, without any"
    )
    max_range_m: float = param(100.0, low=5.0, high=500.0, unit="m", aspect="fixed", help="the sensor's range")

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Choose places, range rates and strengths."""
        radar = as_radar(cloud)
        count = max(1, int(rng.poisson(self.detections))) if self.poisson else self.detections
        place = self._places(rng, bundle, radar, count)
        like = rng.integers(len(radar), size=count)
        if self.moves == "standing":
            ray = np.column_stack([np.cos(place[1]), np.sin(place[1])]) * np.cos(place[2])[:, None]
            stir = np.clip(rng.normal(0.0, _STIR_MPS, count), -3 * _STIR_MPS, 3 * _STIR_MPS)
            doppler = -ray @ motion_of(radar).velocity_mps + stir
        else:
            doppler = rng.uniform(radar.doppler_mps.min(), radar.doppler_mps.max(), count)
        strength = radar.strength_db[rng.integers(len(radar), size=count)]
        return added_draw(place, doppler, strength, like)

    def _places(
        self, rng: np.random.Generator, bundle: Bundle, radar: Radar, count: int
    ) -> tuple[Floats, Floats, Floats]:
        region, matrix = to_region(bundle, radar, self.region)
        _, azimuth, elevation = radar.polar
        low = [_NEAREST_M, azimuth.min(), elevation.min()]
        high = [self.max_range_m, azimuth.max(), elevation.max()]
        found, total = [np.empty((3, 0))], 0
        for _ in range(_TRIES):
            tried = rng.uniform(low, high, (count, 3)).T
            away = region.signed_distance(move(matrix, cartesian(*tried))[:, :2])
            found.append(tried[:, away > self.margin_m + 1e-3])
            total += found[-1].shape[1]
            if total >= count:
                break
        else:
            raise NotApplicable(f"{radar.topic} sees hardly anything outside region '{self.region.name}'")
        chosen = np.concatenate(found, axis=1)[:, :count]
        return chosen[0], chosen[1], chosen[2]

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Measure each new detection's distance to the region, by its outline's geometry."""
        before = as_radar(old)
        added = added_part(before, as_radar(new), len(draw["range_m"]))
        if isinstance(added, str):
            return added
        region, matrix = to_region(bundle, old, self.region)
        away = shapely.distance(region.geometry, shapely.points(move(matrix, added.xyz)[:, :2]))
        if not (away >= self.margin_m).all():
            return f"a detection is {away.min():.3f} m from region '{self.region.name}', expected {self.margin_m:g} m"
        if not (np.linalg.norm(added.xyz, axis=1) <= self.max_range_m * 1.0001).all():
            return "a detection is beyond the sensor's range"
        seen, aside = before.polar[1], added.polar[1]
        if not ((aside >= seen.min() - 1e-4) & (aside <= seen.max() + 1e-4)).all():
            return "a detection is out of the sensor's field"
        if self.moves == "noise":
            known, rate = before.doppler_mps, added.doppler_mps
            within = (rate >= known.min() - 1e-2) & (rate <= known.max() + 1e-2)
            return None if within.all() else "a range rate is beyond those of the message"
        still = -directions(added) @ motion_of(before).velocity_mps
        return None if near(added.doppler_mps, still, 3 * _STIR_MPS + 1e-2) else "standing clutter moves"
