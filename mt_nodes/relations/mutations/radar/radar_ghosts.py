# SPDX-License-Identifier: Apache-2.0
"""Ghosts of multipath: mirror images behind a wall, and second traces at twice the range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.radar import Radar, polar
from mt_nodes.data.radar_motion import SensorMotion, directions
from mt_nodes.data.regions import Region, RegionGiven, load_region
from mt_nodes.data.transforms import UnknownTransform, move
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

#: Of the search for a wall: lines tried, distance of places on it, its half length, and least number of such places in
#: a LiDAR's cloud and among a radar's standing detections (assumed).
_TRIES, _FLAT_M, _REACH_M, _LEAST_POINTS, _LEAST_DETECTIONS = 64, 0.3, 15.0, 60, 8
#: Points of a cloud that are looked at, and between which heights over the radar.
_LOOKED_AT, _LOW_M, _HIGH_M = 2000, 0.2, 1.8
#: What is mirrored stands so far before the wall at least; images no nearer than this.
_BEFORE_M, _NEAREST_M = 1.0, 2.0
_INSTANT_S = 1e-3


@dataclass(frozen=True)
class RadarGhosts(RegionGiven, DetectionsAdded):
    """Adds ghost targets of multipath outside a region.

    ``mirror``: a flat wall, guard rail or lorry throws the wave on; the target q appears at its mirror image in the
    wall, weaker, with the range rate of the length of the path over the wall (A. Kraus, N. Scheiner, W. Ritter, K.
    Dietmayer, The Radar Ghost Dataset, IROS 2021: type 2, second bounce, double bounce). The wall is found in the
    LiDAR's cloud where there is one, else among the standing detections: an upright plane with many places on it.
    ``second_trace``: the echo is thrown back by the ego's own bumper and makes the way twice, so that the ghost has
    twice the range and twice the range rate. Only the radial part of a target's own speed is measured; the other part
    is taken as zero. A ghost is weaker by ``loss_db`` (two reflections; a material property, assumed).

    Guaranteed: every old detection remains, byte for byte; each ghost is outside region and margin, within the sensor's
    range, weaker than its target by the loss, and at its place and range rate by the length of the path.
    """

    path: str = param("mirror", choices=("mirror", "second_trace"), help="over a wall, or twice to the target")
    ghosts: int = param(10, low=1, high=1000, neutral=1, help="most ghosts in each message")
    loss_db: float = param(10.0, low=0.0, high=60.0, unit="dB", neutral=60.0, help="how much weaker a ghost is")
    region: Region = param("front_40m", convert=load_region, help="what they stay out of")
    margin_m: float = param(
        1.0, low=0.0, high=100.0, unit="m", aspect="place", help="margin around the region, without any"
    )
    max_range_m: float = param(100.0, low=5.0, high=500.0, unit="m", aspect="fixed", help="the sensor's range")

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Find a wall if needed, and choose the targets; ``like`` are their rows."""
        radar = as_radar(cloud)
        motion = motion_of(radar)
        wall = self._wall(rng, bundle, radar, motion) if self.path == "mirror" else np.zeros(4)
        place, rate, rows = self._images(radar, motion, wall)
        outside = self._outside(bundle, radar, place) & (place[0] <= self.max_range_m) & (place[0] >= _NEAREST_M)
        found = np.flatnonzero(outside)
        if not len(found):
            where = f"outside region '{self.region.name}' and within {self.max_range_m:g} m"
            raise NotApplicable(f"no target of {radar.topic} has a ghost {where}")
        chosen = np.sort(rng.choice(found, min(self.ghosts, len(found)), replace=False))
        strength = radar.strength_db[rows[chosen]] - self.loss_db
        drawn = added_draw((place[0][chosen], place[1][chosen], place[2][chosen]), rate[chosen], strength, rows[chosen])
        return {**drawn, "wall": wall}

    def _images(
        self, radar: Radar, motion: SensorMotion, wall: Floats
    ) -> tuple[tuple[Floats, Floats, Floats], Floats, Rows]:
        """Return place and range rate of each target's ghost, and the rows (n,) of the targets that have one."""
        range_m, azimuth, elevation = radar.polar
        if self.path == "second_trace":
            return (2.0 * range_m, azimuth, elevation), 2.0 * radar.doppler_mps, np.arange(len(radar))
        normal, away_m = wall[:2], wall[2]
        xyz, ray = radar.xyz, directions(radar)
        before_m = away_m - xyz[:, :2] @ normal
        image = xyz.copy()
        image[:, :2] += 2.0 * before_m[:, None] * normal
        along = np.array([-normal[1], normal[0]])
        crossing = image[:, :2] * (away_m / np.maximum(image[:, :2] @ normal, 1e-6))[:, None] @ along
        rows = np.flatnonzero((before_m > _BEFORE_M) & (np.abs(crossing - wall[3]) <= _REACH_M))
        own = (radar.doppler_mps + ray @ motion.velocity_mps)[:, None] * ray
        own[motion.standing] = 0.0
        mirrored = own - 2.0 * (own @ normal)[:, None] * normal
        place = polar(image)
        sight = np.column_stack([np.cos(place[1]), np.sin(place[1])]) * np.cos(place[2])[:, None]
        rate = ((mirrored - motion.velocity_mps) * sight).sum(axis=1)
        return (place[0][rows], place[1][rows], place[2][rows]), rate[rows], rows

    def _outside(self, bundle: Bundle, radar: Radar, place: tuple[Floats, Floats, Floats]) -> Any:
        region, matrix = to_region(bundle, radar, self.region)
        across = place[0] * np.cos(place[2])
        xyz = np.column_stack([across * np.cos(place[1]), across * np.sin(place[1]), place[0] * np.sin(place[2])])
        return region.signed_distance(move(matrix, xyz)[:, :2]) > self.margin_m + 1e-3

    def _wall(self, rng: np.random.Generator, bundle: Bundle, radar: Radar, motion: SensorMotion) -> Floats:
        """Return a wall (4,): its normal away from the sensor (x, y), its distance, where its middle is along it."""
        places, least = _surfaces(rng, bundle, radar)
        if not len(places):
            places, least = radar.xyz[motion.standing, :2], _LEAST_DETECTIONS
        best, count = np.zeros(4), 0
        for one, other in rng.integers(len(places), size=(_TRIES, 2)).tolist():
            step = places[other] - places[one]
            length = float(np.hypot(*step))
            if not 1.0 <= length <= _REACH_M:
                continue
            normal = np.array([-step[1], step[0]]) / length
            away = float(normal @ places[one])
            normal, away = (normal, away) if away > 0.0 else (-normal, -away)
            along = places @ np.array([-normal[1], normal[0]])
            middle = float(np.median(along[[one, other]]))
            on_it = (np.abs(places @ normal - away) <= _FLAT_M) & (np.abs(along - middle) <= _REACH_M)
            if int(on_it.sum()) > count and away > _BEFORE_M:
                best, count = np.array([*normal, away, middle]), int(on_it.sum())
        if count < least:
            raise NotApplicable(
                f"the best of {_TRIES} planes around {radar.topic} has {count} places on it, a wall {least}"
            )
        return best

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Measure each ghost's path and its change in a millisecond."""
        before, rows = as_radar(old), draw["like"].astype(np.int64)
        ghosts = added_part(before, as_radar(new), len(rows))
        if isinstance(ghosts, str):
            return ghosts
        region, matrix = to_region(bundle, old, self.region)
        away = shapely.distance(region.geometry, shapely.points(move(matrix, ghosts.xyz)[:, :2]))
        if not (away >= self.margin_m).all():
            return f"a ghost is {away.min():.3f} m from region '{self.region.name}', expected {self.margin_m:g} m"
        if before.strength_fields and not near(
            before.strength_db[rows] - ghosts.strength_db, self.loss_db, 1.01 if _whole(before) else 1e-2
        ):
            return f"a ghost is not {self.loss_db:g} dB weaker than its target"
        length, rate = self._paths(before, rows, draw["wall"])
        ghost_m = np.linalg.norm(ghosts.xyz, axis=1)
        if not near(ghost_m, length, 1e-3 * ghost_m + 1e-3) or ghost_m.max() > self.max_range_m * 1.0001:
            return "a ghost is not as far as its path is long"
        return None if near(ghosts.doppler_mps, rate, 0.02 + 1e-3 * np.abs(rate)) else "a ghost's range rate is wrong"

    def _paths(self, radar: Radar, rows: Rows, wall: Floats) -> tuple[Floats, Floats]:
        """Return half the length of each path there and back, and its rate, by moving sensor and target a little."""
        at, rate = radar.xyz[rows], radar.doppler_mps[rows]
        if self.path == "second_trace":
            direct = np.linalg.norm(at, axis=1)
            return 2.0 * direct, 2.0 * rate
        motion = motion_of(radar)
        ray = directions(radar)[rows]
        speed = (rate + ray @ motion.velocity_mps)[:, None] * ray
        speed[motion.standing[rows]] = 0.0
        later = at.copy()
        later[:, :2] += _INSTANT_S * (speed - motion.velocity_mps)
        normal = wall[:2]
        now_m = _over_wall(at, normal, float(wall[2]))
        later_m = _over_wall(later, normal, float(wall[2] - _INSTANT_S * motion.velocity_mps @ normal))
        return now_m, (later_m - now_m) / _INSTANT_S


def _surfaces(rng: np.random.Generator, bundle: Bundle, radar: Radar) -> tuple[Floats, int]:
    """Return places (n, 2) in the radar's frame of LiDAR points at the height of cars, and how many make a wall."""
    for cloud in bundle.known_clouds:
        try:
            matrix = bundle.transforms.lookup(radar.frame_id, cloud.frame_id)
        except UnknownTransform:
            continue
        some = rng.integers(len(cloud), size=8 * _LOOKED_AT) if len(cloud) else np.empty(0, np.int64)
        xyz = move(matrix, np.stack([cloud.points[n][some] for n in "xyz"], axis=1).astype(np.float64))
        with np.errstate(invalid="ignore"):
            high = (xyz[:, 2] > _LOW_M) & (xyz[:, 2] < _HIGH_M) & np.isfinite(xyz).all(axis=1)
        if high.sum() >= _LEAST_POINTS:
            return xyz[high][:_LOOKED_AT, :2], _LEAST_POINTS
    return np.empty((0, 2)), _LEAST_DETECTIONS


def _over_wall(target: Floats, normal: Floats, away_m: float) -> Floats:
    """Return the lengths (n,) of the paths from the sensor over a wall to targets (n, 3): |m| + |q − m|."""
    along = np.array([-normal[1], normal[0]])
    u, h = target[:, :2] @ along, away_m - target[:, :2] @ normal
    # The point of reflection divides the way along the wall as the distances from it do.
    m = u * away_m / (away_m + h)
    share = away_m / (away_m + h)
    up = target[:, 2]
    first = np.sqrt(m**2 + away_m**2 + (up * share) ** 2)
    return np.asarray(first + np.sqrt((u - m) ** 2 + h**2 + (up * (1.0 - share)) ** 2))


def _whole(radar: Radar) -> bool:
    return any(radar.points.dtype[name].kind in "iu" for name in radar.strength_fields)
