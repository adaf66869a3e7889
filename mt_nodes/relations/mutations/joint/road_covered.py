# SPDX-License-Identifier: Apache-2.0
"""Snow, ice, mud or gravel on the road."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import ndimage

from mt_nodes.base.arrays import Floats, Mask, Rows
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import move
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.joint.echoes import (
    NO_FLOATS,
    NO_ROWS,
    Echoes,
    proof_of_echoes,
    reflectivity,
    with_echoes,
)
from mt_nodes.relations.mutations.joint.level_ground import on_plane, plane_of
from mt_nodes.relations.mutations.joint.proof import proof_of_losses
from mt_nodes.relations.mutations.joint.reception import WeakenedReturns, with_sensor
from mt_nodes.relations.mutations.joint.road_covers import COVERS, Cover, share_at
from mt_nodes.relations.mutations.joint.road_in_pictures import CoveredRoadInPictures
from mt_nodes.relations.mutations.joint.weather_light import fresnel
from mt_nodes.relations.mutations.lidar.each_cloud import marked
from mt_nodes.relations.mutations.lidar.lost_returns import count_lost
from mt_nodes.relations.mutations.lidar.rays import columns, returns
from mt_nodes.relations.mutations.lidar.strength_proof import power_db, proof_of_strengths
from mt_nodes.relations.mutations.objects.in_scene import ego_from

#: Number of returns at similar ranges that give the level of bare road.
_GROUP = 256


@dataclass(frozen=True)
class RoadCovered(WeakenedReturns, CoveredRoadInPictures):
    """Covers the ground, in patches or wholly, with packed snow, milky ice, wet mud or loose gravel.

    Rays: what bare ground gives back at a range is the median of its returns there, so that lines vanish under the
    cover. Where a share s of the ground is covered the intensity becomes (1 - s) of the old one plus s of that level
    times ρ' / ρ, with ρ that of bare asphalt (assumed) and ρ' = r T² / (1 - r R) of the cover: r under a surface that
    mirrors R by Fresnel's law, T = 1 - R (the formula of wet ground: M. Hahner et al., LiDAR Snowfall Simulation for
    Robust 3D Object Detection, CVPR 2022); a rough cover mirrors nothing. The angle is that on the plane found in the
    cloud's ground. A return is lost by chance, when what is left of the amplitude of bare ground there is below the
    detection threshold, as of ``wet_ground``. Returns that the dark road did not give are not added; the cover is thin:
    no point moves.

    Cameras see its colour in the road's own light, its grain, and in what is smooth the scene beyond. Both see the same
    patches, which rest in ``base_link``'s axes: in a sequence they go along with the ego. What covers
    the road covers what is as flat beside it, too. Grip is no matter of sensors.

    Guaranteed: only the ground changes and no point moves; intensities follow the formula, and a return is lost exactly
    where the number drawn for it exceeds its chance of detection; in pictures, only the ground changes, towards that
    colour.
    """

    kind: str = param("snow", choices=tuple(COVERS), help="what lies on the road")
    cover: float = param(0.9, low=0.05, high=1.0, neutral=0.05, help="share of the ground that it covers")
    road_reflectivity: float = param(
        0.18, low=0.02, high=0.9, aspect="fixed", help="reflectivity of bare road at the LiDAR (assumed)"
    )
    tolerance_m: float = param(
        0.15, low=0.01, high=1.0, unit="m", aspect="fixed", help="returns this near to the plane are ground"
    )
    ego_frame_id: str = param("base_link", help="frame on the road under the ego, x ahead, z up")

    @property
    def random(self) -> bool:  # type: ignore[override]
        """Whether returns are lost, by chance: what is brighter than the road and mirrors nothing loses none."""
        return self.lying.index > 1.0 or self.lying.reflectivity < self.road_reflectivity

    @property
    def lying(self) -> Cover:
        """What lies there."""
        return COVERS[self.kind]

    @property
    def amount(self) -> float:
        """Which share of the ground it covers."""
        return self.cover

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Find the ground, under ``plane`` (4,): unit normal in the cloud's frame, height of its origin above it."""
        reflectivity(cloud, returns(cloud))
        plane = plane_of(bundle, cloud, self.ego_frame_id, self.tolerance_m)
        return {"plane": plane, **self.draw_reception(rng, cloud)}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Change intensities, and drop weak returns."""
        return with_echoes(cloud, self.echoes(bundle, cloud, draw))

    def echoes(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Echoes:
        """Return the changes of the ground's returns."""
        rows, range_m, cosine = on_plane(cloud, draw["plane"], self.tolerance_m)
        rho = reflectivity(cloud, rows)
        share = self._shares(bundle, cloud, rows)
        level, times = _levels(rho, range_m), self.times(cosine)
        new = rho + share * (np.minimum(level * times, 1.0) - rho)
        left = 1.0 + share * (times - 1.0)
        lost = (left < 1.0) & self.lost(cloud, rows, (level, range_m, left), draw)
        return Echoes(rows[~lost], new[~lost], NO_ROWS, NO_FLOATS, rows[lost])

    def times(self, cosine: Floats) -> Floats:
        """Return the cover's return relative to bare road, at cosines of incidence (n,)."""
        own, index = self.lying.reflectivity, self.lying.index
        mirrored = fresnel(cosine, index) if index > 1.0 else np.zeros_like(cosine)
        return np.asarray(own * np.square(1.0 - mirrored) / (1.0 - own * mirrored) / self.road_reflectivity)

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Check every changed return's height and power."""
        echoes = self.echoes(bundle, old, draw)
        broken, whole = proof_of_echoes(old, new, echoes)
        if broken is not None:
            return broken
        touched = np.sort(np.concatenate([echoes.rows, echoes.lost]))
        if not len(touched):
            return None
        xyz, plane = np.stack(columns(old, touched)), draw["plane"]
        below_m = plane[:3] @ xyz
        if not (np.abs(below_m + plane[3]) <= self.tolerance_m + 1e-6).all():
            return "a return that is no ground was touched"
        range_m = np.sqrt(np.square(xyz).sum(axis=0))
        times = self._times_by_angles(np.arccos(np.clip(np.abs(below_m) / range_m, 0.0, 1.0)))
        share = self._shares(bundle, old, touched)
        lost = marked(len(old), echoes.lost)[touched]
        return self._powers(old, whole, touched, (range_m, times, share), lost, draw)

    def _times_by_angles(self, angle: Floats) -> Floats:
        """Return the same as :meth:`times`, from Fresnel's sine and tangent laws."""
        own, angle = self.lying.reflectivity, np.maximum(angle, 1e-4)
        mean = np.zeros_like(angle)
        if self.lying.index > 1.0:
            inside = np.arcsin(np.sin(angle) / self.lying.index)
            minus, plus = angle - inside, angle + inside
            mean = (np.square(np.sin(minus) / np.sin(plus)) + np.square(np.tan(minus) / np.tan(plus))) / 2.0
        return np.asarray(own * (1.0 - mean) ** 2 / (1.0 - own * mean) / self.road_reflectivity)

    def _powers(
        self, old: Cloud, whole: Cloud, rows: Rows, powers: tuple[Floats, Floats, Floats], lost: Mask, draw: Draw
    ) -> str | None:
        """Compare the intensities of changed returns and the noise floor with the promise.

        ``powers``: (n,) of each return its range, the cover's return relative to bare road, and its share.
        """
        rho, (range_m, times, share) = reflectivity(old, rows), powers
        group = np.empty(len(rows), np.int64)
        group[np.argsort(range_m, kind="stable")] = np.arange(len(rows)) // _GROUP
        np.minimum(group, max(len(rows) // _GROUP - 1, 0), out=group)
        level = np.asarray(ndimage.median(rho, group, np.arange(group.max() + 1)))[group]
        decibels = power_db(level), power_db((1.0 - share) + share * times)
        receiver = with_sensor(self, draw["sensor"]).receiver
        broken = proof_of_losses(receiver, old, rows, decibels, lost, draw["noise_key"])
        if broken is not None:
            return broken
        expected = (1.0 - share) * rho + share * np.minimum(level * times, 1.0)
        broken = proof_of_strengths(whole, rows[~lost], expected[~lost], range_m[~lost], old=old)
        return broken and f"{broken}, by what lies on the road"

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report the number of lost returns."""
        return Effects(numbers={"returns_lost": count_lost(bundle, clouds)})

    def _shares(self, bundle: Bundle, cloud: Cloud, rows: Rows) -> Floats:
        """Return the covered share of the ground at returns (n,)."""
        to_ego = ego_from(bundle, cloud.frame_id, self.ego_frame_id, cloud.topic)
        at = move(to_ego, cloud.xyz[rows].astype(np.float64))[:, :2]
        return share_at(at[:, 0], at[:, 1], self.cover).astype(np.float64)


def _levels(rho: Floats, range_m: Floats) -> Floats:
    """Return the level of bare ground at the ranges of returns (n,): the median of returns at similar ranges."""
    order = np.argsort(range_m, kind="stable")
    groups = max(len(rho) // _GROUP, 1)
    full = (groups - 1) * _GROUP
    middle = np.empty(groups)
    middle[:-1] = np.median(rho[order[:full]].reshape(-1, _GROUP), axis=1) if groups > 1 else 0.0
    middle[-1] = np.median(rho[order[full:]]) if len(rho) else 0.0
    level = np.empty(len(rho))
    level[order] = np.repeat(middle, [*[_GROUP] * (groups - 1), len(rho) - full])
    return level
