# SPDX-License-Identifier: Apache-2.0
"""A low sun before a camera: disc, bloom, veil, ghosts, a brighter sky, and a shorter exposure."""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import NoEffect, NotApplicable
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import UnknownTransform
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.lens_flare import ghosts
from mt_nodes.relations.mutations.joint.every_sensor import EverySensor, surroundings
from mt_nodes.world.camera.relight import coarse_light, grey, relit
from mt_nodes.world.camera.sun_light import DISC_RAD, colour_of_sun, glare_spread, sky_around_sun
from mt_nodes.world.camera.surroundings import Surroundings

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
#: Light that turns a dark or a mid-grey sample of 8 bits into the next one.
_LEAST_LIGHT = 0.004
#: Light of the disc, in full scale: it is saturated whatever else is added.
_DISC = 4.0
#: Ghosts: their light relative to the veil at 0.1 rad, and how far beside the picture, in widths, the sun makes some
#: (assumed).
_GHOSTS, _BESIDE = 0.06, 0.25
#: Light of a clear sky at a right angle to the sun, in full scale.
_SKY = 0.12
#: Share of the additional mean light that the exposure makes up for, and the shortest exposure (both assumed).
_METERED, _SHORTEST = 0.5, 0.45
#: Angles from the sun between which the proof compares the mean light, in degrees, with how many cells at least.
_BANDS_DEG, _CELLS = (3.0, 6.0, 10.0, 15.0, 22.0, 32.0, 45.0, 65.0, 100.0), 150
_SLACK, _ROUNDING = 0.12, 0.012


class SunInPictures(EverySensor):
    """Adds the sun's light to pictures by the angle from it, as far as it is visible and lights the lens."""

    radar_reason = "a radar at 77 GHz receives no light of the sun"

    #: Light of the veil 0.1 rad beside the unhidden sun, in full scale; frame the sun stands still in.
    glare_light: float
    frame_id: str

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Turn the sun into ``base_link``, under ``sun`` (3,), and measure its ``visible`` share.

        Raises:
            NotApplicable: the camera's pose or the depth is unknown.
            NoEffect: the sun is hidden, or it lights the lens too little to be noticed.
        """
        around, sun = surroundings(view), self._sun(view, state)
        draw: Draw = {"sun": sun, "visible": self.visible(view.bundle, state)}
        if draw["visible"] * self.glare_light < _LEAST_LIGHT:
            raise NoEffect(f"{view.image.topic}: what stands before the sun hides all but {draw['visible']:.1%} of it")
        veil = self._veil(view, around, draw)
        if veil.max() < _LEAST_LIGHT:
            off_deg = np.degrees(np.arccos(np.clip(self._on_axis(view, sun), -1.0, 1.0)))
            raise NoEffect(
                f"{view.image.topic}: the sun stands {off_deg:.0f} degrees off the camera's axis; the lens scatters "
                f"{veil.max():.2%} of full scale into the picture, expected {_LEAST_LIGHT:.1%}"
            )
        return draw

    @abstractmethod
    def visible(self, bundle: Bundle, state: Any) -> float:
        """Return the share of the sun's light that reaches the sensors of a bundle, 0 to 1."""

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Prove clouds and images, and that all sensors see the same share of the sun."""
        shares = {value for name, value in draw.items() if name.endswith("|visible")}
        if len(shares) > 1 or not all(0.0 <= share <= 1.0 for share in shares):
            found = ", ".join(f"{share:.3f}" for share in sorted(shares))
            return f"the sensors see {found} of the sun, expected one share"
        return super().guarantee(source, followup, draw)

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Add veil, sky, ghosts and disc, then expose."""
        around = surroundings(view)
        added = self._veil(view, around, draw) + self._sky(around, draw)
        light = added[..., None] * self._colour(draw) + self._ghosts(view, around, draw)
        gain = np.float32(self._exposure(view, around, light))
        light *= gain
        light += self._disc(around, draw)[..., None]
        np.minimum(light, np.float32(_DISC), out=light)
        return relit(view.picture, np.full(around.shape, gain, np.float32), light, around.depth.step_px)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare the mean light by angle from the sun with the glare equation, integrated otherwise."""
        around = surroundings(old)
        before, after = (grey(coarse_light(v.picture, around.shape, around.depth.step_px)) for v in (old, new))
        gain = self._gain_of(old, around, draw)
        across = np.linalg.norm(np.cross(around.rays, draw["sun"]), axis=-1)
        off_deg = np.degrees(np.arctan2(across, around.rays @ draw["sun"]))
        scale = self.glare_light * float(draw["visible"]) * max(self._on_axis(old, draw["sun"]), 0.0) * gain
        scale *= float(grey(self._colour(draw)[None])[0]) / float(10.0 / 5.7296**3 + 5.0 / 5.7296**2)
        veil = scale * (10.0 / np.maximum(off_deg, 0.1) ** 3 + 5.0 / np.maximum(off_deg, 0.1) ** 2)
        whole = (after < 0.9) & (before < 0.9) & ~around.sky
        for low, high in pairwise(_BANDS_DEG):
            band = whole & (off_deg >= low) & (off_deg < high)
            if np.count_nonzero(band) < _CELLS:
                continue
            least = float((gain * before[band] + veil[band]).mean())
            most = least + _GHOSTS * self.glare_light * float(draw["visible"])
            if not least * (1.0 - _SLACK) - _ROUNDING <= float(after[band].mean()) <= most * (1.0 + _SLACK) + _ROUNDING:
                return (
                    f"{low:g} to {high:g} degrees off the sun the mean light is {after[band].mean():.3f}, expected "
                    f"{least:.3f} to {most:.3f}"
                )
        return None

    def _veil(self, view: View, around: Surroundings, draw: Draw) -> Singles:
        """Return the light (h, w) that the lens scatters: by the angle from the sun and the light on the lens."""
        on_lens = self.glare_light * float(draw["visible"]) * max(self._on_axis(view, draw["sun"]), 0.0)
        return np.asarray(np.float32(on_lens) * glare_spread(_angles(around, draw)), np.float32)

    def _sky(self, around: Surroundings, draw: Draw) -> Singles:
        """Return the additional light (h, w) of the sky around the sun."""
        brighter = np.maximum(sky_around_sun(_angles(around, draw)), np.float32(0.0)) * np.float32(
            draw["visible"] * _SKY
        )
        return np.asarray(np.where(around.sky, brighter, np.float32(0.0)), np.float32)

    def _disc(self, around: Surroundings, draw: Draw) -> Singles:
        """Return the light (h, w) of the disc where the sky shows it; a cell may hold a part of it."""
        cell_rad = float(np.arccos(np.clip((around.rays[0, 0] * around.rays[0, 1]).sum(), -1.0, 1.0)))
        share = np.clip(0.5 + (DISC_RAD - _angles(around, draw)) / np.float32(max(cell_rad, 1e-6)), 0.0, 1.0)
        return np.asarray(
            np.where(around.sky, share * np.float32(_DISC * float(draw["visible"] > 0.0)), 0.0), np.float32
        )

    def _ghosts(self, view: View, around: Surroundings, draw: Draw) -> Singles:
        """Return the light (h, w, 3) of the reflections between the surfaces of the lens; none from afar."""
        camera = view.camera()
        axes = np.asarray(view.bundle.transforms.lookup(view.image.frame_id, "base_link"))[:3, :3]
        place = camera.project((axes @ draw["sun"])[None])[0]
        if not np.isfinite(place).all():
            return np.zeros((*around.shape, 3), np.float32)
        size = np.array([camera.width, camera.height])
        beside = float(np.maximum(np.maximum(-place, place - size), 0.0).max()) / camera.width
        strength = _GHOSTS * self.glare_light * float(draw["visible"]) * max(0.0, 1.0 - beside / _BESIDE)
        if strength == 0.0:
            return np.zeros((*around.shape, 3), np.float32)
        step = around.depth.step_px
        return ghosts(place, camera.width, camera.height, around.shape, step) * np.float32(strength)

    def _exposure(self, view: View, around: Surroundings, light: Singles) -> float:
        """Return the exposure relative to before: a camera that meters the mean makes up for a part of the light."""
        before = grey(coarse_light(view.picture, around.shape, around.depth.step_px))
        after = np.minimum(before + grey(light), np.float32(1.0))
        ratio = float(before.mean()) / max(float(after.mean()), 1e-6)
        return float(np.clip(ratio**_METERED, _SHORTEST, 1.0))

    def _gain_of(self, view: View, around: Surroundings, draw: Draw) -> float:
        added = self._veil(view, around, draw) + self._sky(around, draw)
        return self._exposure(view, around, added[..., None] * self._colour(draw) + self._ghosts(view, around, draw))

    def _colour(self, draw: Draw) -> Singles:
        return np.array(colour_of_sun(float(np.arcsin(np.clip(draw["sun"][2], -1.0, 1.0)))), np.float32)

    def _on_axis(self, view: View, sun: Floats) -> float:
        """Return the cosine between the camera's axis and the sun: which share of its light falls onto the lens."""
        return float(np.asarray(view.bundle.transforms.lookup(view.image.frame_id, "base_link"))[2, :3] @ sun)

    def _sun(self, view: View, state: Any) -> Floats:
        try:
            return np.asarray(view.bundle.transforms.lookup("base_link", self.frame_id)[:3, :3] @ state)
        except UnknownTransform as error:
            raise NotApplicable(f"{view.image.topic}: where the sun stands is not known: {error}") from error


def _angles(around: Surroundings, draw: Draw) -> Singles:
    """Return the angle (h, w) of each cell from the sun; by the chord, which resolves small ones."""
    chord = np.square(around.rays - np.asarray(draw["sun"])).sum(axis=-1)
    return np.asarray(2.0 * np.arcsin(np.minimum(0.5 * np.sqrt(chord), 1.0)), np.float32)
