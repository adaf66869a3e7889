# SPDX-License-Identifier: Apache-2.0
"""A low sun in the sensor's field of view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats, Mask, Rows
from mt_nodes.base.errors import NoEffect, NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.joint.echoes import (
    Echoes,
    moved_points,
    proof_of_echoes,
    reflectivity,
    rows_at,
    with_echoes,
)
from mt_nodes.relations.mutations.joint.proof import proof_of_losses
from mt_nodes.relations.mutations.joint.reception import WeakenedReturns, with_sensor
from mt_nodes.relations.mutations.joint.sun_in_pictures import SunInPictures
from mt_nodes.relations.mutations.joint.sun_visibility import in_a_picture, visible_share
from mt_nodes.relations.mutations.lidar.each_cloud import marked
from mt_nodes.relations.mutations.lidar.lost_returns import count_lost
from mt_nodes.relations.mutations.lidar.rays import (
    blocks,
    columns,
    ranges_m,
    refuse_whole_numbers,
    returns,
    rounding_m,
    smallest,
)
from mt_nodes.relations.mutations.lidar.strength_proof import power_db, proof_of_strengths
from mt_nodes.relations.mutations.objects.in_scene import ego_from
from mt_nodes.world.camera.sun_light import air_mass

#: Beams farther from the sun than this many half angles get at most 1.5e-8 of its stray light: too little to lose a
#: return for any ``background``.
_REACH = 6.0
#: A false return counts only if it is clearly nearer than the beam's own echo.
_NEARER = 0.95
_PIECE = 8192
#: Azimuths to choose the sun's from: one at which it shines into a picture, and more than this share of it is visible.
_TRIES, _SHINES = 48, 0.5


@dataclass(frozen=True)
class SunGlare(WeakenedReturns, SunInPictures):
    """Puts a low sun into the sensors' field of view: weak returns near it are lost, and pictures get glare.

    One share of its light reaches all sensors: of disc and aureole (D. Buie et al., Solar Energy 74, 2003), what is not
    behind something, by the sky in pictures and the LiDAR's beams with and without a return, and what haze of
    ``haze_depth`` leaves, e^(−depth m) with the air mass m of F. Kasten and A. Young (Applied Optics 28, 1989). So it
    fades behind a house or a tree for all of them alike. A message that it does not reach stays, and says why.

    LiDAR: background light is shot noise: its standard deviation goes with the square root of its mean (Z. Liu et al.,
    Estimating random errors due to shot noise in backscatter lidar observations, Applied Optics 45(18), 2006). A beam
    at the angle ψ from the sun gets b(ψ) = ``background`` · share · exp(−ψ² / 2 ``half_angle_rad``²) of it, in units of
    the sensor's own noise (variance), so that its noise rises by √(1 + b), and the detection threshold with it: a
    receiver keeps its rate of false alarms. In units of the noise, 1 / √(1 + b) of a return's signal is left; it is
    lost by chance, where that is below the threshold in the noise
    (:class:`~mt_nodes.relations.mutations.joint.reception.WeakenedReturns`). A noise peak above the threshold may come
    at any time, so that false returns are uniform in range; a part ``false_share`` · share · exp(−ψ² / 2
    ``half_angle_rad``²) of the beams has one, with the intensity just seen at its range, and reports it when it comes
    before the beam's own return.

    Pictures: the lens scatters a veil by the CIE general disability glare equation (J. Vos, 2003; CIE 146:2002), which
    is bloom near the sun, also where the sun stands beside the picture, less the more obliquely it lights the lens; the
    sky gets brighter as that of the CIE clear sky does, from the sun's colour to blue; the disc is saturated, with the
    spikes of an aperture; weak ghosts, and an exposure that makes up for a part of the additional mean light, and
    follows it with a delay.

    Assumptions, for want of published curves: the Gaussian fall of the LiDAR's stray light with the angle, its
    strength, that lenses scatter as the eye does, metering, and that what a LiDAR's topmost beams hit is as high as a
    house where no picture shows it. Beams without a return stay silent. The sun stands still in ``frame_id`` for an
    episode. Guaranteed: all sensors see one share; nothing far from the sun changes in clouds; a return is lost exactly
    where the number drawn for it exceeds its chance of detection; each false return is on its beam, nearer than the
    return it replaces; in pictures, the light follows the equation by the angle from the sun.
    """

    azimuth_rad: float | None = param(
        None,
        low=-6.2832,
        high=6.2832,
        unit="rad",
        aspect="place",
        help="0 ahead, positive left; if unset, that of a return where it shines into a picture",
    )
    elevation_rad: float = param(
        0.2, low=-0.1, high=1.5708, unit="rad", aspect="place", help="of the sun above the horizon"
    )
    half_angle_rad: float = param(
        0.1, low=0.005, high=1.5708, unit="rad", neutral=0.005, help="stray light in a LiDAR: one standard deviation"
    )
    background: float = param(
        100.0, low=1.0, high=1e7, neutral=1.0, help="variance of the noise in the sun over that of the sensor's own"
    )
    false_share: float = param(
        0.02, low=0.0, high=1.0, neutral=0.0, help="share of the beams into the sun with a false return"
    )
    glare_light: float = param(
        1.0,
        low=0.05,
        high=20.0,
        neutral=0.05,
        help="light of the veil that a lens adds 0.1 rad beside the sun, in full scale",
    )
    haze_depth: float = param(
        0.0, low=0.0, high=2.0, aspect="fixed", help="optical depth of haze, straight up: takes light from both sensors"
    )
    circumsolar: float = param(
        0.05, low=0.01, high=0.4, aspect="fixed", help="share of the sun's light that haze puts around its disc"
    )
    min_range_m: float = param(
        1.0, low=0.1, high=50.0, unit="m", aspect="fixed", help="the sensor reports nothing nearer"
    )
    frame_id: str = param("base_link", help="frame the sun stands still in: a fixed one, or the ego's")

    def __post_init__(self) -> None:
        if self.min_range_m >= self.max_range_m:
            raise UsageError(f"min_range_m {self.min_range_m:g} is not below max_range_m {self.max_range_m:g}")

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> Any:
        """Choose where the sun stands: a unit vector (3,) in ``frame_id``.

        Raises NotApplicable: no return to choose an azimuth by.
        """
        if self.azimuth_rad is not None:
            return self._towards(self.azimuth_rad)
        if not bundle.known_clouds:
            raise NotApplicable(f"bundle {bundle.index} has no cloud to choose an azimuth by")
        cloud = bundle.known_clouds[0]
        rows = returns(cloud)
        ends = np.stack(columns(cloud, rows[rng.integers(len(rows), size=_TRIES)]))
        ahead, left, _ = self._to_frame(bundle, cloud) @ ends
        suns = [self._towards(azimuth) for azimuth in np.arctan2(left, ahead).tolist()]
        shining = [sun for sun in suns if self.visible(bundle, sun) > _SHINES] or suns
        return next((sun for sun in shining if in_a_picture(bundle, sun, self.frame_id)), shining[0])

    def visible(self, bundle: Bundle, state: Any) -> float:
        """Return the share of the sun's light that reaches the vehicle past what stands before it, and through haze."""
        clear = visible_share(bundle, state, self.frame_id, self.circumsolar)
        return clear * float(np.exp(-self.haze_depth * air_mass(self.elevation_rad)))

    def _towards(self, azimuth_rad: float) -> Floats:
        flat = np.cos(self.elevation_rad)
        return np.array([flat * np.cos(azimuth_rad), flat * np.sin(azimuth_rad), np.sin(self.elevation_rad)])

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Turn the sun into the cloud's frame, under ``sun`` (3,), and draw the false returns.

        Raises NoEffect: the sun is hidden, or no return is weak enough to be lost.
        """
        refuse_whole_numbers(cloud)
        sun, visible = self._to_frame(bundle, cloud).T @ state, self.visible(bundle, state)
        rows, own_m, light = self._lit(cloud, {"sun": sun, "visible": visible})
        reception = self.draw_reception(rng, cloud)
        # One number for every return of the cloud, near the sun or not: another sun's angle draws the same ones.
        chance, place = rng.random((2, len(cloud)), dtype=np.float32)[:, rows]
        range_m = self.min_range_m + (self.max_range_m - self.min_range_m) * place.astype(np.float64)
        false = (chance < self.false_share * light) & (range_m < _NEARER * own_m)
        if not false.any() and not self._weak(cloud, rows, own_m, light, reception).any():
            raise NoEffect(
                f"{cloud.topic}: {visible:.0%} of the sun's light is visible; of {len(rows)} returns within "
                f"{_REACH * self.half_angle_rad:.2g} rad of it none is weak enough to be lost, and no false one comes "
                "before them"
            )
        return {
            "sun": sun,
            "visible": visible,
            **reception,
            "rows": smallest(rows[false]),
            "range_m": range_m[false].astype(np.float32),
        }

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Drop returns, and replace others by false ones."""
        return with_echoes(cloud, self.echoes(cloud, draw))

    def echoes(self, cloud: Cloud, draw: Draw) -> Echoes:
        """Return the changes of the returns near the sun."""
        rows, own_m, light = self._lit(cloud, draw)
        moved, range_m = draw["rows"].astype(np.int64), draw["range_m"].astype(np.float64)
        raised = np.sqrt(1.0 + self.background * light[np.searchsorted(rows, moved)])
        receiver = with_sensor(self, draw["sensor"]).receiver
        threshold_reflectivity = np.minimum(receiver.threshold_reflectivity(range_m) * raised, 1.0)
        weak = rows[self._weak(cloud, rows, own_m, light, draw)]
        return Echoes(moved, threshold_reflectivity, moved, range_m, np.setdiff1d(weak, moved, assume_unique=True))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Check the angle to the sun, the power and the range of every lost or false return."""
        echoes = self.echoes(old, draw)
        broken, whole = proof_of_echoes(old, new, echoes)
        if broken is not None:
            return broken
        if (broken := self._check_floor(old, echoes, draw)) is not None:
            return broken
        light = self._light_by_angle(old, echoes.moved, draw)
        if not (light >= draw["visible"] * np.exp(-(_REACH**2) / 2.0) * 0.99).all():
            return "a false return is far from the sun"
        range_m = ranges_m(whole, draw["rows"])
        if not (np.abs(range_m - draw["range_m"]) <= rounding_m(old, range_m) + 1e-5).all():
            return "a false return is not where it was drawn"
        if ((range_m < self.min_range_m - 1e-3) | (range_m > self.max_range_m + 1e-3)).any():
            return f"a false return is not {self.min_range_m:g} to {self.max_range_m:g} m away"
        own = with_sensor(self, draw["sensor"])
        threshold = self.sensitivity * (np.maximum(range_m, own.focus_m) / own.max_range_m) ** 2
        threshold *= np.sqrt(1.0 + self.background * light)
        broken = proof_of_strengths(whole, echoes.moved, np.minimum(threshold, 1.0), range_m)
        return broken and f"{broken}, which is the one just seen at the range of a false return"

    def _check_floor(self, old: Cloud, echoes: Echoes, draw: Draw) -> str | None:
        """Compare every return with its chance in the raised noise; in blocks of some thousands, to save memory."""
        rows = returns(old)
        rows = rows[~marked(len(old), echoes.moved)[rows]]
        bright_db, lost = power_db(reflectivity(old, rows)), marked(len(old), echoes.lost)
        receiver = with_sensor(self, draw["sensor"]).receiver
        for start in range(0, len(rows), _PIECE):
            piece = rows[start : start + _PIECE]
            passing_db = -5.0 * np.log10(1.0 + self.background * self._light_by_angle(old, piece, draw))
            decibels = bright_db[start : start + _PIECE], passing_db
            broken = proof_of_losses(receiver, old, piece, decibels, lost[piece], draw["noise_key"])
            if broken is not None:
                return broken
        return None

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report the number of lost returns, and the places of false ones."""
        added = moved_points(bundle, draws)
        numbers = {"returns_lost": count_lost(bundle, clouds), "returns_false": float(sum(map(len, added.values())))}
        return Effects(numbers=numbers, added_points=added)

    def _to_frame(self, bundle: Bundle, cloud: Cloud) -> Floats:
        """Return the rotation (3, 3) from the cloud's frame to the one the sun stands still in."""
        return ego_from(bundle, cloud.frame_id, self.frame_id, cloud.topic)[:3, :3]

    def _lit(self, cloud: Cloud, draw: Draw) -> tuple[Rows, Floats, Floats]:
        """Return the rows (n,) of returns near the sun, their ranges, and the share of its light they get (n,)."""
        parts = [self._lit_part(rows_at(cloud, at), columns(cloud, at), draw["sun"]) for at in blocks(cloud)]
        rows, range_m, light = (np.concatenate(column) for column in zip(*parts, strict=True))
        return rows, range_m, light * draw["visible"]

    def _lit_part(self, rows: Rows, xyz: tuple[Floats, Floats, Floats], sun: Floats) -> tuple[Rows, Floats, Floats]:
        range_m = np.sqrt(sum(column * column for column in xyz))
        cosine = sum(column * along for column, along in zip(xyz, sun.tolist(), strict=True)) / range_m
        near = cosine > np.cos(min(_REACH * self.half_angle_rad, np.pi))
        angle = np.arccos(np.minimum(cosine[near], 1.0))
        return rows[near], range_m[near], np.exp(-0.5 * np.square(angle / self.half_angle_rad))

    def _weak(self, cloud: Cloud, rows: Rows, own_m: Floats, light: Floats, draw: Draw) -> Mask:
        """Return which returns (n,) are below the raised threshold, in the raised noise."""
        left = 1.0 / np.sqrt(1.0 + self.background * light)
        return self.lost(cloud, rows, (reflectivity(cloud, rows), own_m, left), draw)

    def _light_by_angle(self, cloud: Cloud, rows: Rows, draw: Draw) -> Floats:
        """Return the share of the sun's light (n,) that returns get, with the angle from both products."""
        x, y, z = columns(cloud, rows)
        a, b, c = draw["sun"].tolist()
        across = np.sqrt((y * c - z * b) ** 2 + (z * a - x * c) ** 2 + (x * b - y * a) ** 2)
        angle = np.arctan2(across, x * a + y * b + z * c)
        return np.asarray(draw["visible"] * np.exp(-(angle**2) / (2.0 * self.half_angle_rad**2)))
