# SPDX-License-Identifier: Apache-2.0
"""Water on the road."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask, Rows, Singles
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.joint.attenuation import DARKEST, reflectivities
from mt_nodes.relations.mutations.joint.beam_parts import CloudPart
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
from mt_nodes.relations.mutations.joint.road_in_pictures import WetRoadInPictures
from mt_nodes.relations.mutations.lidar.each_cloud import marked
from mt_nodes.relations.mutations.lidar.lost_returns import count_lost
from mt_nodes.relations.mutations.lidar.rays import columns, returns
from mt_nodes.relations.mutations.lidar.strength_proof import power_db, proof_of_strengths

Reals = TypeVar("Reals", bound=npt.NDArray[Any])

_WATER = 1.33
#: Depth of the pavement's texture: a film of this thickness covers it (M. Hahner et al., CVPR 2022).
_TEXTURE_MM = 1.2
_PIECE = 8192
#: Returns this near to the plane of the ground are the road under rain.
ROAD_M = 0.15


@dataclass(frozen=True)
class WetGround(WeakenedReturns, WetRoadInPictures):
    """Weakens the ground's returns by a film of water, and loses those that fall below the noise floor.

    A film of depth w covers the share f = clip(w / 1.2 mm, 0, 1) of the pavement's texture. Where it does, light goes
    through the surface twice and in part to and fro beneath it, so that a ground of reflectivity ρ returns
    ρ T² / (1 − ρ R) instead of ρ, with Fresnel's R at n = 1.33, the mean of both polarisations, and T = 1 − R; what is
    reflected is thrown away from the sensor (M. Hahner et al., LiDAR Snowfall Simulation for Robust 3D Object
    Detection, CVPR 2022). Intensities fall by q = 1 − f + f T² / (1 − ρ R). ρ is the intensity over its full scale,
    0.05 at least; the angle of incidence is that on the plane found in the cloud's own ground, one plane for all of it.
    A return is lost by chance, when what is left of its amplitude, in the noise of the sensor's receiver, is below the
    detection threshold (:class:`~mt_nodes.relations.mutations.joint.reception.WeakenedReturns`). Mirror images below
    the road are left out: no published model of them was found.

    Guaranteed: only the ground changes and no point moves; intensities follow the formula, written in the angles of
    incidence and refraction; a return is lost exactly where the number drawn for it exceeds its chance of detection, by
    the tail of the amplitudes.
    """

    water_mm: float = param(1.0, low=0.001, high=10.0, unit="mm", neutral=0.001, help="depth of the water film")
    tolerance_m: float = param(
        0.15, low=0.01, high=1.0, unit="m", aspect="fixed", help="returns this near to the plane are ground"
    )
    ego_frame_id: str = param("base_link", help="frame on the road under the ego, x ahead, z up")

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Find the ground, under ``plane`` (4,): unit normal in the cloud's frame, height of its origin above it."""
        reflectivity(cloud, returns(cloud))
        plane = plane_of(bundle, cloud, self.ego_frame_id, self.tolerance_m)
        return {"plane": plane, **self.draw_reception(rng, cloud)}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Weaken returns, and drop weak ones."""
        return with_echoes(cloud, self.echoes(cloud, draw))

    def echoes(self, cloud: Cloud, draw: Draw) -> Echoes:
        """Return the changes of the ground's returns."""
        rows, range_m, cosine = on_plane(cloud, draw["plane"], self.tolerance_m)
        rho = reflectivity(cloud, rows)
        left = self.share_left(cosine, rho)
        lost = self.lost(cloud, rows, (rho, range_m, left), draw)
        return Echoes(rows[~lost], (left * rho)[~lost], NO_ROWS, NO_FLOATS, rows[lost])

    def share_left(self, cosine: Floats, rho: Floats) -> Floats:
        """Return the share (n,) of its dry power that ground returns at a cosine of incidence (n,)."""
        return share_left(cosine, rho, self.film)

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Check every return's height, angle and power."""
        echoes = self.echoes(old, draw)
        broken, whole = proof_of_echoes(old, new, echoes)
        if broken is not None:
            return broken
        touched = np.sort(np.concatenate([echoes.rows, echoes.lost]))
        rho, lost = reflectivity(old, touched), marked(len(old), echoes.lost)
        # In blocks of some thousands: in double precision all of them would take more memory than the cloud.
        for start in range(0, len(touched), _PIECE):
            rows, own = touched[start : start + _PIECE], rho[start : start + _PIECE]
            if (broken := self._as_promised(old, whole, rows, own, lost[rows], draw)) is not None:
                return broken
        return None

    def _as_promised(self, old: Cloud, whole: Cloud, rows: Rows, rho: Floats, lost: Mask, draw: Draw) -> str | None:
        """Check the height, angle and power of some changed returns (n,)."""
        plane, (x, y, z) = draw["plane"], columns(old, rows)
        below_m = x * plane[0] + y * plane[1] + z * plane[2]
        if not (np.abs(below_m + plane[3]) <= self.tolerance_m + 1e-6).all():
            return "a return that is no ground was touched"
        range_m = np.sqrt(x * x + y * y + z * z)
        left = share_left_by_angles(np.arccos(np.clip(np.abs(below_m) / range_m, 0.0, 1.0)), rho, self.film)
        receiver = with_sensor(self, draw["sensor"]).receiver
        broken = proof_of_losses(receiver, old, rows, (power_db(rho), power_db(left)), lost, draw["noise_key"])
        if broken is not None:
            return broken
        broken = proof_of_strengths(whole, rows[~lost], (left * rho)[~lost], range_m[~lost], old=old)
        return broken and f"{broken}, by Fresnel's formula"

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report the number of lost returns."""
        return Effects(numbers={"returns_lost": count_lost(bundle, clouds)})

    @property
    def film(self) -> float:
        """Share of the pavement's texture that the water fills."""
        return min(self.water_mm / _TEXTURE_MM, 1.0)


def share_left(cosine: Reals, rho: Reals, film: float) -> Reals:
    """Return the share (n,) of its dry power that ground returns under a film that covers this share of its texture.

    ``cosine``: (n,) of incidence. ``rho``: (n,) reflectivity of the dry ground.
    """
    refracted, parallel = np.sqrt(_WATER**2 - 1.0 + np.square(cosine)), _WATER**2 * cosine
    reflected = np.square((cosine - refracted) / (cosine + refracted))
    reflected = (reflected + np.square((parallel - refracted) / (parallel + refracted))) / 2.0
    wet = np.square(1.0 - reflected) / (1.0 - np.maximum(rho, DARKEST) * reflected)
    left: Reals = 1.0 - film * (1.0 - wet)
    return left


def share_left_by_angles(angle: Floats, rho: Floats, film: float) -> Floats:
    """Return the same as :func:`share_left` by the angle of incidence, from Fresnel's sine and tangent laws."""
    angle = np.maximum(angle, 1e-4)
    inside = np.arcsin(np.sin(angle) / _WATER)
    minus, plus = angle - inside, angle + inside
    both = np.square(np.sin(minus) / np.sin(plus)), np.square(np.tan(minus) / np.tan(plus))
    mean = (both[0] + both[1]) / 2.0
    wet = (1.0 - mean) ** 2 / (1.0 - np.clip(rho, DARKEST, 1.0) * mean)
    return np.asarray((1.0 - film) + film * wet)


def depths_of_film(cloud: Cloud, part: CloudPart, plane: Floats, film: float, unknown: float) -> tuple[Rows, Singles]:
    """Return which returns (k,) of a part are road, and the optical depth (k,) whose way out and back takes as much.

    ``plane``: (4,) of the road, see :func:`~mt_nodes.relations.mutations.joint.level_ground.plane_of`. ``film``: share
    of the road's texture under water. ``unknown``: reflectivity where the cloud tells none.
    """
    below_m = sum(column.astype(np.float64) * along for column, along in zip(part.xyz, plane.tolist(), strict=False))
    road = np.flatnonzero(np.abs(below_m + plane[3]) <= ROAD_M)
    range_m = part.range_m[road]
    cosine = np.minimum(np.abs(below_m[road]).astype(np.float32) / range_m, np.float32(1.0))
    rows = road + (part.at.start or 0) if isinstance(part.at, slice) else part.at[road]
    rho = reflectivities(cloud, rows, range_m, unknown)
    return road, np.log(share_left(cosine, rho, film)) * np.float32(-0.5)


def depths_by_angles(cloud: Cloud, rows: Rows, plane: Floats, film: float, unknown: float) -> Floats:
    """Return the same of some returns (n,), 0 for what is no road, by the angle of incidence on the plane."""
    # In single precision, as the mutation reads them: it decides what is road.
    xyz = np.stack(columns(cloud, rows)).astype(np.float32).astype(np.float64)
    height_m, range_m = plane[:3] @ xyz + plane[3], np.sqrt(np.square(xyz).sum(axis=0))
    road = np.flatnonzero(np.abs(height_m) <= ROAD_M)
    angle = np.arccos(np.clip((plane[3] - height_m[road]) / range_m[road], 0.0, 1.0))
    rho = reflectivities(cloud, rows[road], range_m[road].astype(np.float32), unknown)
    depth = np.zeros(len(rows))
    depth[road] = -0.5 * np.log(share_left_by_angles(angle, rho.astype(np.float64), film))
    return depth
