# SPDX-License-Identifier: Apache-2.0
"""Laser attacks on a LiDAR, within what published attackers achieved: false returns, and a sector made to vanish."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects, Volume
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import Matrix, UnknownTransform, move
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.drawn_returns import rows_of
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud, proof_of_removal, without
from mt_nodes.relations.mutations.lidar.lost_returns import azimuth_rad, bearing_offset_rad, cloud_offset_rad, sector
from mt_nodes.relations.mutations.lidar.placement import empty_returns, intensities
from mt_nodes.relations.mutations.lidar.rays import (
    columns,
    proof_on_beam,
    ranges_m,
    refuse_whole_numbers,
    returns,
    rounding_m,
    rows_of_share,
    smallest,
    with_ranges,
)

#: A false pulse replaces a return only if it is clearly nearer.
_NEARER = 0.95
#: The rear of a car: half its width, and the heights of its lower and upper edge above the road, in metres.
_HALF_WIDTH_M, _LOW_M, _HIGH_M = 0.9, 0.3, 1.5
#: Spread of the attacker's timing along a beam, in metres, cut at three standard deviations (assumed: 0.2 ns).
_SIGMA_M, _CUT = 0.03, 3.0
_EDGE_RAD, _EDGE_M = 1e-5, 1e-3


@dataclass(frozen=True)
class PointsSpoofed(EachCloud):
    """Adds the sparse rear of a near car by false pulses, as an attacker with a laser beside the road does.

    A pulse that an attacker fires into the receiver when one at that range would come back is taken for an echo; of two
    echoes the stronger one counts, which is the attacker's, so that it replaces the beam's own return. Y. Cao et al.,
    "Adversarial Sensor Attack on LiDAR-based Perception in Autonomous Driving" (CCS 2019) control some 60 points in
    8 degrees of azimuth reliably; J. Sun et al., "Towards Robust LiDAR-based Perception in Autonomous Driving" (USENIX
    Security 2020) assume 200 points within 10 degrees, and place the few points of a distant or occluded car 5 to 8 m
    ahead: those are the upper limits here. The points lie on an upright face 1.8 m wide, from 0.3 to 1.5 m above the
    road, across the bearing; which of its beams are hit is left to chance. One sensor is attacked, the first of the
    bundle. A beam without a return is not attacked: an unorganised cloud does not hold it. Intensities are those of
    the frame, or the full scale, which a laser nearby reaches (assumed).

    Guaranteed: the requested number of returns come nearer, on their beams, onto that face and within the sector;
    everything else is unchanged. Effects: the face is added, and the sector behind it occluded.
    """

    points: int = param(60, low=1, high=200, neutral=1, help="false returns, at most what attackers achieved")
    width_deg: float = param(
        8.0, low=0.5, high=10.0, unit="deg", aspect="fixed", help="azimuth that the attacker holds"
    )
    bearing_deg: tuple[float, float] = param(
        (-20.0, 20.0), low=-180.0, high=180.0, unit="deg", aspect="place", help="where it is; positive: left"
    )
    range_m: tuple[float, float] = param(
        (5.0, 8.0), low=2.0, high=60.0, unit="m", aspect="place", help="nearest and farthest distance of the face"
    )
    intensity: str = param("frame", choices=("frame", "full_scale"), help="uniform over the frame's own, or saturated")
    ego_frame_id: str = param("base_link", help="frame on the road under the ego, z up")

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Choose a bearing, a distance and the beams that are hit."""
        if cloud is not bundle.clouds[0]:
            return {"rows": np.empty(0, np.uint8)}
        refuse_whole_numbers(cloud)
        returns(cloud)
        bearing, far = (float(rng.uniform(min(limits), max(limits))) for limits in (self.bearing_deg, self.range_m))
        rows = self._beams(cloud, self._to_ego(bundle, cloud), np.radians(bearing), far)
        if len(rows) < self.points:
            raise NotApplicable(
                f"{len(rows)} beams of {cloud.topic} cross the face at {far:.1f} m and {bearing:.0f}° before their own "
                f"returns, {self.points} are needed"
            )
        chosen = np.sort(rng.choice(rows, self.points, replace=False, shuffle=False))
        late = np.clip(rng.standard_normal(self.points), -_CUT, _CUT) * _SIGMA_M
        drawn: Draw = {
            "rows": smallest(chosen),
            "bearing_rad": float(np.radians(bearing)),
            "distance_m": far,
            "late_m": late.astype(np.float32),
        }
        intensity = intensities(rng, self.points, cloud, self.intensity == "full_scale")
        return drawn if intensity is None else {**drawn, "intensity": intensity}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Move the returns to the face."""
        rows = rows_of(draw)
        if not len(rows):
            return cloud
        own, face = _along(cloud, rows, draw["bearing_rad"], draw["distance_m"])
        new = with_ranges(cloud, rows, own, face + draw["late_m"])
        if "intensity" in draw:
            new.points[cloud.intensity_field][rows] = draw["intensity"]  # the cloud is a fresh copy
        return new

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Check number, sector, beams, and the distance of each false return from the face's plane and edges."""
        rows = rows_of(draw)
        if old is not bundle.clouds[0]:
            return None if new is old else "a second sensor was attacked, too"
        if len(np.unique(rows)) != self.points:
            return f"{len(np.unique(rows))} returns were replaced, expected {self.points}"
        broken = proof_on_beam(old, new, rows, (old.intensity_field,))
        return broken or self._on_the_face(bundle, old, new, draw)

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report the face, what it hides, and the false returns."""
        cloud = bundle.clouds[0]
        draw = draws[cloud.topic]
        added = clouds[cloud.topic].xyz[rows_of(draw)].astype(np.float64)
        bearing, far = draw["bearing_rad"], draw["distance_m"]
        centre = (far * np.cos(bearing), far * np.sin(bearing), float(added[:, 2].mean()))
        size = (2.0 * _CUT * _SIGMA_M, 2.0 * _HALF_WIDTH_M, _HIGH_M - _LOW_M)
        face = Volume(cloud.frame_id, (float(centre[0]), float(centre[1]), centre[2]), size, bearing, "spoofed")
        behind = tuple(sector(cloud.frame_id, bearing, np.radians(self.width_deg), near_m=0.9 * far))
        numbers = {"returns_replaced": float(len(added))}
        return Effects(added=(face,), occluded=behind, numbers=numbers, added_points={cloud.topic: added})

    def _beams(self, cloud: Cloud, to_ego: Matrix, bearing: float, far_m: float) -> Rows:
        """Return the rows (n,) of returns whose beams cross the face clearly before."""
        aside = bearing_offset_rad(azimuth_rad(cloud), bearing)
        rows = np.flatnonzero((aside <= np.radians(self.width_deg / 2.0) - _EDGE_RAD) & ~empty_returns(cloud))
        own, face = _along(cloud, rows, bearing, far_m)
        rows, share = rows[face < _NEARER * own], (face / own)[face < _NEARER * own]
        hit = np.stack(columns(cloud, rows), axis=1) * share[:, None]
        across = np.abs(hit[:, 1] * np.cos(bearing) - hit[:, 0] * np.sin(bearing))
        height = move(to_ego, hit)[:, 2]
        inside = (across <= _HALF_WIDTH_M) & (height >= _LOW_M) & (height <= _HIGH_M)
        return np.asarray(rows[inside])

    def _on_the_face(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Measure the new returns in the ego's frame, with the face's plane as a scalar product."""
        rows, bearing = rows_of(draw), float(draw["bearing_rad"])
        places, ahead = new.xyz[rows].astype(np.float64), np.array([np.cos(bearing), np.sin(bearing), 0.0])
        slack = _EDGE_M + rounding_m(old, ranges_m(new, rows))
        late = _CUT * _SIGMA_M + slack
        wrong = np.abs(places @ ahead - draw["distance_m"]) > late
        wrong |= np.linalg.norm(np.cross(ahead, places)[:, 2:], axis=1) > _HALF_WIDTH_M + late
        height = move(self._to_ego(bundle, old), places)[:, 2]
        wrong |= (height < _LOW_M - late) | (height > _HIGH_M + late)
        wrong |= cloud_offset_rad(old, bearing)[rows] > np.radians(self.width_deg / 2.0)
        wrong |= ranges_m(new, rows) > _NEARER * ranges_m(old, rows) + late
        return f"{int(wrong.sum())} of {len(rows)} false returns are not on the face" if wrong.any() else None

    def _to_ego(self, bundle: Bundle, cloud: Cloud) -> Matrix:
        try:
            return bundle.transforms.lookup(self.ego_frame_id, cloud.frame_id)
        except UnknownTransform as error:
            raise UsageError(f"{cloud.topic}: {error}") from error


def _along(cloud: Cloud, rows: Rows, bearing: float, far_m: float) -> tuple[Floats, Floats]:
    """Return the ranges (n,) of returns, and those (n,) at which their beams cross a plane across a bearing."""
    x, y, z = columns(cloud, rows)
    own = np.sqrt(x * x + y * y + z * z)
    ahead = x * np.cos(bearing) + y * np.sin(bearing)
    return own, np.divide(far_m * own, ahead, out=np.full(len(own), np.inf), where=ahead > 0.0)


@dataclass(frozen=True)
class SectorSpoofed(EachCloud):
    """Makes a sector of azimuth vanish by false pulses within the sensor's least range, the physical removal attack.

    Y. Cao et al., "You Can't See Me: Physical Removal Attacks on LiDAR-based Autonomous Vehicles Driving Frameworks"
    (USENIX Security 2023): pulses that come back at once are taken for echoes nearer than the sensor's least range,
    commonly 0.5 m, and replace the beams' own; the sensor reports nothing there (``reported: none``), or reports them
    and the stack discards them as its own vehicle (``near``). They removed up to 45 degrees of azimuth, which is the
    upper limit here. One sensor is attacked, the first of the bundle.

    Guaranteed: the requested share of the sector's returns is gone, or within ``least_m`` on their beams; everything
    else is unchanged. Effects: the sector is occluded.
    """

    width_deg: float = param(30.0, low=0.5, high=45.0, unit="deg", neutral=0.5, help="azimuth that vanishes")
    centre_deg: float = param(
        0.0, low=-180.0, high=180.0, unit="deg", aspect="place", help="azimuth of the sector's middle"
    )
    share: float = param(1.0, low=0.001, high=1.0, neutral=0.001, help="share of its returns that are replaced")
    reported: str = param("none", choices=("none", "near"), help="whether the sensor reports returns so near")
    least_m: float = param(0.5, low=0.05, high=5.0, unit="m", aspect="fixed", help="the sensor's least range")

    @property
    def random(self) -> bool:  # type: ignore[override]
        """Which returns are replaced, or their ranges, are left to chance."""
        return self.share < 1.0 or self.reported == "near"

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Choose the returns that are replaced, and the ranges of the false ones."""
        if cloud is not bundle.clouds[0]:
            return {"rows": np.empty(0, np.uint8)}
        inside = bearing_offset_rad(azimuth_rad(cloud), self._centre) <= self._half - _EDGE_RAD
        rows = np.flatnonzero(inside & ~empty_returns(cloud))
        if self.reported == "near":
            refuse_whole_numbers(cloud)
            rows = rows[ranges_m(cloud, rows) > self.least_m]
        if not len(rows):
            raise NotApplicable(f"{cloud.topic} has no return within {self.width_deg:g}° of {self.centre_deg:g}°")
        chosen = rows_of_share(rng, rows, self.share)
        if self.reported == "none":
            return {"rows": chosen}
        return {"rows": chosen, "share": rng.uniform(0.1, 1.0, len(chosen)).astype(np.float32)}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Remove the returns, or move them to the sensor."""
        rows = rows_of(draw)
        if not len(rows):
            return cloud
        if self.reported == "none":
            return without(cloud, rows)
        return with_ranges(cloud, rows, ranges_m(cloud, rows), draw["share"].astype(np.float64) * self.least_m)

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Count the returns of the sector, by scalar products, and compare the rest."""
        rows = rows_of(draw)
        if old is not bundle.clouds[0]:
            return None if new is old else "a second sensor was attacked, too"
        broken = proof_of_removal(old, new, rows) if self.reported == "none" else proof_on_beam(old, new, rows)
        if broken is not None:
            return broken
        aside = cloud_offset_rad(old, self._centre)
        if (aside[rows] > self._half).any():
            return "a return outside of the sector was replaced"
        known = ~empty_returns(old)
        if self.reported == "near":
            known &= ranges_m(old, slice(None)) > self.least_m
            far = ranges_m(new, rows)
            if (far > self.least_m * (1.0 + 1e-5)).any() or (np.abs(far / self.least_m - draw["share"]) > 1e-5).any():
                return f"a false return is beyond {self.least_m:g} m, or not where it was drawn"
        # A return right at the edge counts as inside or not: rounding decides.
        surely, at_most = (int((known & (aside <= self._half - edge)).sum()) for edge in (2.0 * _EDGE_RAD, 0.0))
        low, high = (max(1, round(self.share * count)) for count in (surely, at_most))
        return None if low <= len(rows) <= high else f"{len(rows)} returns were replaced, expected {low} to {high}"

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report the sector."""
        cloud = bundle.clouds[0]
        hidden = tuple(sector(cloud.frame_id, self._centre, np.radians(self.width_deg)))
        return Effects(occluded=hidden, numbers={"returns_replaced": float(len(draws[cloud.topic]["rows"]))})

    @property
    def _centre(self) -> float:
        return float(np.radians(self.centre_deg))

    @property
    def _half(self) -> float:
        return float(np.radians(self.width_deg / 2.0))
