# SPDX-License-Identifier: Apache-2.0
"""A low sun before a camera: disc, bloom, veil, ghosts, a brighter sky, and a shorter exposure."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import cv2
import numpy as np

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.base.errors import NoEffect, NotApplicable
from mt_nodes.data.images.codecs import Picture, Pixels
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import UnknownTransform
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.lens_flare import ghosts
from mt_nodes.relations.mutations.joint.every_sensor import EverySensor, surroundings
from mt_nodes.world.camera.diffuse_light import brightness, shading_of
from mt_nodes.world.camera.local_relight import relit_locally
from mt_nodes.world.camera.relight import coarse_light, grey, light_in, samples_of
from mt_nodes.world.camera.sun_light import DISC_RAD, colour_of_sun, glare_spread, sky_around_sun
from mt_nodes.world.camera.surroundings import Surroundings

#: Light that turns a dark or a mid-grey sample of 8 bits into the next one.
_LEAST_LIGHT = 0.004
#: Light of the disc, in full scale: it is saturated whatever else is added.
_DISC = 4.0
#: Ghosts: their light relative to the veil at 0.1 rad, and how far beside the picture, in widths, the sun makes some
#: (assumed).
_GHOSTS, _BESIDE = 0.06, 0.25
#: Light of a clear sky at a right angle to the sun, in full scale (assumed), its colour far from the sun, and the angle
#: by which the sun's colour fades (both assumed).
_SKY, _SKY_BLUE, _BLUE_RAD = 0.13, (0.62, 0.82, 1.0), 0.35
#: Sky with this light may be clipped.
_WHITE = 0.7
#: Spikes of an aperture with six blades: number of rays, light, reach and width in rad (assumed).
_BLADES, _SPIKES, _SPIKE_RAD, _SPIKE_WIDE_RAD = 6, 1.6, 0.16, 0.0013
#: Share of the additional mean light that the exposure makes up for, and the shortest exposure (both assumed).
_METERED, _SHORTEST = 0.6, 0.4
#: The exposure meters every so manieth cell of each row and column.
_EVERY = 3
#: Time in which the exposure approaches what is metered by a factor of e, and for which frames count (assumed).
_LAG_NS, _REMEMBERED_NS = 0.3e9, 1_000_000_000
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

        Raises NotApplicable: the camera's pose or the depth is unknown. NoEffect: the sun is hidden, or it lights the
        lens too little to be noticed.
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
        return {**draw, "exposure": self._lagging(view, state, self._metered(view, draw))}

    @property
    def draw_history(self) -> int:
        """Two: the exposure of a camera follows the light with a delay."""
        return 2

    def _lagging(self, view: View, state: Any, aim: float) -> float:
        """Return the exposure relative to the source's: it approaches what is metered by a factor of e in some time.

        At the first frame it is what is metered there.
        """
        past = []
        for bundle in view.bundle.earlier:
            image = next((i for i in bundle.images if i.topic == view.image.topic), None)
            if image is not None and 0 < view.image.stamp_ns - image.stamp_ns < _REMEMBERED_NS:
                then = View.of(bundle, image)
                with suppress(NotApplicable):
                    light: Draw = {"sun": self._sun(then, state), "visible": self.visible(bundle, state)}
                    past.append((image.stamp_ns, self._metered(then, light)))
        steps = [*past, (view.image.stamp_ns, aim)]
        exposure = steps[0][1]
        for (before_ns, _), (now_ns, metered) in pairwise(steps):
            exposure = metered + (exposure - metered) * float(np.exp((before_ns - now_ns) / _LAG_NS))
        return exposure

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
        """Light the sky, add veil and ghosts, expose, and add the disc with its spikes."""
        around = surroundings(view)
        shading, step = shading_of(view.picture, around), around.depth.step_px
        # Where the sky of the source is white, its light is unknown: it is that of a clear sky about the sun.
        white = np.float32(np.clip((shading.sky_light - _WHITE) / (1.0 - _WHITE), 0.0, 1.0))
        light = shading.light * (np.float32(1.0) - white * shading.sky)
        light += shading.sky * self._sky(around, draw)[:, None]
        light += self._lens_light(view, around, draw)[:, None]
        light *= np.float32(draw["exposure"])
        return self._with_disc(view, relit_locally(view.picture, shading.samples, light, step), draw)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare the mean light by angle from the sun with the glare equation, integrated otherwise."""
        around = surroundings(old)
        before, after = (grey(coarse_light(v.picture, around.shape, around.depth.step_px)) for v in (old, new))
        gain = float(draw["exposure"])
        if not _SHORTEST <= gain <= 1.0:
            return f"the exposure is {gain:.2f} of the source's, expected {_SHORTEST:g} to 1"
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

    def _lens_light(self, view: View, around: Surroundings, draw: Draw) -> Singles:
        """Return the light (3, h, w) that the lens adds: veil and ghosts."""
        veil = self._veil(view, around, draw) * self._colour(draw)[:, None, None]
        return np.asarray(veil + np.moveaxis(self._ghosts(view, around, draw), -1, 0))

    def _sky(self, around: Surroundings, draw: Draw) -> Singles:
        """Return the light (3, h, w) of a clear sky around the sun: of the sun's colour near it, blue beyond."""
        angle = _angles(around, draw)
        light = np.float32(_SKY) * (np.float32(1.0) + np.maximum(sky_around_sun(angle), np.float32(0.0)))
        light *= np.float32(draw["visible"])
        warm = np.exp(-angle / np.float32(_BLUE_RAD))
        near, far = (np.array(c, np.float32)[:, None, None] for c in (self._colour(draw), _SKY_BLUE))
        return np.asarray(light * (near * warm + far * (np.float32(1.0) - warm)), np.float32)

    def _with_disc(self, view: View, pixels: Pixels, draw: Draw) -> Pixels:
        """Return pixels with the disc where sky shows it, and the spikes that the aperture's edges draw around it."""
        place = self._place(view, draw)
        if place is None or draw["visible"] <= 0.0:
            return pixels
        per_rad = float(view.camera().k[0, 0])
        reach = _SPIKE_RAD * per_rad
        rows, columns = (
            slice(max(0, int(at - reach)), min(end, int(at + reach) + 1))
            for at, end in zip(place[::-1].tolist(), view.picture.size, strict=True)
        )
        if rows.start >= rows.stop or columns.start >= columns.stop:
            return pixels
        down, right = np.ogrid[rows, columns]
        down, right = ((m - at).astype(np.float32) for m, at in ((down, place[1]), (right, place[0])))
        away = np.sqrt(down * down + right * right)
        disc = np.clip(0.5 + np.float32(DISC_RAD * per_rad) - away, 0.0, 1.0)
        around = surroundings(view)
        disc *= around.depth.in_part(around.sky.astype(np.float32), (rows, columns))
        turn = np.float32(_BLADES / 2.0) * np.arctan2(down, right) + np.float32(0.4)
        narrow = np.exp(np.abs(np.sin(turn)) * away * np.float32(-1.0 / (_SPIKE_WIDE_RAD * per_rad)))
        fades = np.square(np.clip(1.0 - away / np.float32(reach), 0.0, 1.0))
        added = np.float32(_SPIKES * float(draw["visible"])) * narrow * fades + np.float32(_DISC) * disc
        return _brightened(view.picture, pixels, (rows, columns), [added * colour for colour in self._colour(draw)])

    def _place(self, view: View, draw: Draw) -> Floats | None:
        """Return where the sun is (2,), in pixels, None behind the camera."""
        axes = np.asarray(view.bundle.transforms.lookup(view.image.frame_id, "base_link"))[:3, :3]
        place = view.camera().project((axes @ draw["sun"])[None])[0]
        return place if np.isfinite(place).all() else None

    def _ghosts(self, view: View, around: Surroundings, draw: Draw) -> Singles:
        """Return the light (h, w, 3) of the reflections between the surfaces of the lens; none from afar."""
        camera, place = view.camera(), self._place(view, draw)
        if place is None:
            return np.zeros((*around.shape, 3), np.float32)
        size = np.array([camera.width, camera.height])
        beside = float(np.maximum(np.maximum(-place, place - size), 0.0).max()) / camera.width
        strength = _GHOSTS * self.glare_light * float(draw["visible"]) * max(0.0, 1.0 - beside / _BESIDE)
        if strength == 0.0:
            return np.zeros((*around.shape, 3), np.float32)
        step = around.depth.step_px
        return ghosts(place, camera.width, camera.height, around.shape, step) * np.float32(strength)

    def _metered(self, view: View, draw: Draw) -> float:
        """Return the exposure relative to the source's that a camera comes to in this light.

        It meters the mean, of every third cell each way, and makes up for a part of what is added.
        """
        around = surroundings(view)
        light = coarse_light(view.picture, around.shape, around.depth.step_px)
        around, before = around.thinned(_EVERY), grey(light[_EVERY // 2 :: _EVERY, _EVERY // 2 :: _EVERY])
        sky = np.where(around.sky, self._sky(around, draw), np.float32(0.0))
        after = np.minimum(before + brightness(self._lens_light(view, around, draw) + sky), np.float32(1.0))
        ratio = float(before.mean()) / max(float(after.mean()), 1e-6)
        return float(np.clip(ratio**_METERED, _SHORTEST, 1.0))

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


def _brightened(picture: Picture, pixels: Pixels, where: tuple[slice, slice], light: list[Singles]) -> Pixels:
    """Return new pixels of a picture with red, green and blue light (h, w) each added in a part; in place."""
    part = pixels[where]
    own = (
        brightness(np.stack(light))
        if picture.order == "mono"
        else cv2.merge(light[:: 1 if picture.order == "rgb" else -1])
    )
    part[...] = samples_of(np.minimum(light_in(part) + own, np.float32(1.0)), pixels.dtype)
    return pixels


def _angles(around: Surroundings, draw: Draw) -> Singles:
    """Return the angle (h, w) of each cell from the sun; by the chord, which resolves small ones; the last is kept."""
    sun = np.asarray(draw["sun"], np.float64)
    known = _known_angles.get(around)
    if known is None or known[0] != sun.tobytes():
        x, y, z = (np.square((around.rays[..., axis] - sun[axis]).astype(np.float32)) for axis in range(3))
        angles = np.float32(2.0) * np.arcsin(np.minimum(np.float32(0.5) * np.sqrt(x + y + z), np.float32(1.0)))
        known = _known_angles[around] = sun.tobytes(), angles
    return known[1]


_known_angles: WeakKeyDictionary[Surroundings, tuple[bytes, Singles]] = WeakKeyDictionary()
