# SPDX-License-Identifier: Apache-2.0
"""A wet or covered road as cameras see it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Singles
from mt_nodes.base.errors import NoEffect
from mt_nodes.data.images.codecs import Picture, Pixels
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.joint.every_sensor import EverySensor, surroundings
from mt_nodes.relations.mutations.joint.road_covers import Cover, grain_at, share_at
from mt_nodes.relations.mutations.joint.weather_light import WeatherLight, fresnel, mirrored
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.guided_upsampling import follow_edges
from mt_nodes.world.camera.light import light_of, quantile
from mt_nodes.world.camera.measures import Mask
from mt_nodes.world.camera.relight import BRIGHTNESS, coarse_light, covered, grey, words_of
from mt_nodes.world.camera.surroundings import Surroundings

Words = npt.NDArray[np.uint16]
#: Least share of visible ground.
_LEAST_SHARE = 0.01
#: Mean albedo of asphalt after five years (Lawrence Berkeley National Laboratory, Heat Island Group: 0.12).
_ROAD_ALBEDO = 0.12
#: Ground brighter than this factor times this quantile of it is a lane marking, and no measure of the incident light.
_LIT, _LINE = 0.75, 1.15
#: Light of what lies in the sun, before it is compressed, at most; and the light under vehicles relative to it, from
#: which on a cover shows, and shows wholly (assumed).
_EXPOSED, _UNDER = 2.2, (0.01, 0.05)
#: Tracks of wheels: their place aside and half their width (assumed).
_TRACK_M, _TRACK_WIDE_M = 0.8, 0.25
#: Farther ground is not resolved.
_FAR_M = 80.0
#: Grain fades at this pixel width on the road.
_GRAIN_SEEN_M = 0.08


class RoadInPictures(EverySensor):
    """Base of mutations that change how the ground in sight looks in pictures."""

    radar_reason = "a flat road, dry, wet or covered, throws a radar's wave away from it (assumed)"

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Nothing is random.

        Raises NotApplicable: depth or the camera's pose is unknown. NoEffect: the picture shows no ground.
        """
        share = float(surroundings(view).ground.mean())
        if share < _LEAST_SHARE:
            raise NoEffect(f"{view.image.topic}: {share:.1%} of it shows the ground, expected {_LEAST_SHARE:.0%}")
        return {}

    def affected(self, view: View, draw: Draw) -> Mask:
        """Ground, and half a cell around it."""
        around = surroundings(view)
        cells = cv2.dilate(around.ground.astype(np.uint8), np.ones((3, 3), np.uint8))
        return np.ascontiguousarray(around.depth.in_picture(cells, view.picture.size, smooth=False))


class WetRoadInPictures(RoadInPictures):
    """Darkens the visible ground, with blurred reflections of what stands on it.

    Ground cells mirror the picture about the foot of the object beyond them, weighted by Fresnel's reflectance at n =
    1.33; the mirrored picture is the camera's, not what the road would see from below.
    """

    @property
    @abstractmethod
    def film(self) -> float:
        """Share of the ground that a film of water covers."""

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Darken the ground, and add what it mirrors."""
        light = WeatherLight(view)
        light.wet_road(self.film)
        where = self.affected(view, draw)
        return np.asarray(cv2.copyTo(light.pixels(), where, view.picture.pixels.copy()))

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Check that the ground right ahead gets darker."""
        around = surroundings(old)
        near = around.ground & (around.rays[..., 2] < -0.35)
        full = np.ascontiguousarray(around.depth.in_picture(near.astype(np.uint8), old.picture.size, smooth=False))
        if not full.any():
            return None
        before, after = measures.brightness(old.picture, full), measures.brightness(new.picture, full)
        if after < before or before < 0.02:
            return None
        return f"the ground right ahead went from a brightness of {before:.3f} to {after:.3f}, it was to darken"


class CoveredRoadInPictures(RoadInPictures):
    """Shows the visible ground in the colour of its cover.

    The incident light is the ground's light over a mean albedo of asphalt, without lane markings, so that shadows stay.
    Values above full scale are compressed, as by a camera that adapts its exposure.
    """

    @property
    @abstractmethod
    def lying(self) -> Cover:
        """The cover."""

    @property
    @abstractmethod
    def amount(self) -> float:
        """Covered share of the ground."""

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Blend the ground with its cover."""
        around, step = surroundings(view), surroundings(view).depth.step_px
        first = max(0, int(np.flatnonzero(around.ground.any(axis=1))[0]) - 1)
        part = view.picture.with_pixels(np.ascontiguousarray(view.picture.pixels[first * step :]))
        coarse = 2 - step % 2  # what lies there has nothing finer
        size = tuple(-(-side // coarse) for side in part.size)
        share, tone = self._lain(view, around, first, step // coarse, (size[0], size[1]))
        colours = [np.float32(1.0) - cv2.exp(tone * np.float32(-a)) for a in self.lying.albedo]
        if self.lying.index > 1.0:
            self._mirror(view, around, colours, first, step // coarse)
        shown = _stretched(words_of(np.asarray(cv2.merge(colours))), part.size)
        seen = cv2.multiply(
            _stretched(words_of(share), part.size), _ground_pixels(around.ground[first:], step, part), scale=1 / 65535
        )
        new = view.picture.pixels.copy()
        new[first * step :] = covered(part, np.asarray(seen), shown)
        return new

    def _lain(
        self, view: View, around: Surroundings, first: int, step_px: int, size: tuple[int, int]
    ) -> tuple[Singles, Singles]:
        """Return the covered share and the light (h, w) of ground of a ``size`` from the ``first`` row of cells on."""
        falling, seen = _falling(view, around, max(self.lying.albedo))
        x, y, far, light, seen = (_enlarged(m[first:], step_px, size) for m in (*_places(around), falling, seen))
        share = share_at(x, y, self.amount) * seen
        tone = np.ones(size, np.float32)
        for finer in self.lying.finer:
            own = grain_at(np.float32(finer) * x, np.float32(finer) * y)
            own *= np.float32(self.lying.grain) / (np.float32(1.0) + np.square(far * np.float32(finer / _GRAIN_SEEN_M)))
            tone += own
        if self.lying.pressed:
            off = np.abs(np.abs(y) - np.float32(_TRACK_M)) * np.float32(1.0 / _TRACK_WIDE_M)
            tone *= np.float32(1.0) - np.float32(self.lying.pressed) * np.exp(-np.square(np.square(off)))
        return share, np.maximum(tone * light, np.float32(0.0))

    def _mirror(self, view: View, around: Surroundings, colours: list[Singles], first: int, step_px: int) -> None:
        """Blend the mirror image of what stands beyond into colours (h, w), by Fresnel's law; in place."""
        light = coarse_light(view.picture, around.shape, around.depth.step_px)
        reflection = cv2.blur(mirrored(light, around.ground), (3, 9))[first:]
        reflected = fresnel(-around.rays[first:, :, 2], self.lying.index).astype(np.float32)
        size = colours[0].shape[0], colours[0].shape[1]
        weight = _enlarged(reflected, step_px, size)
        for place, channel in enumerate(cv2.split(reflection * reflected[..., None])):
            colours[place] *= np.float32(1.0) - weight
            colours[place] += _enlarged(channel, step_px, size)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Check that the ground right ahead gets closer to the cover's colour."""
        around = surroundings(old)
        cells = around.ground & (around.rays[..., 2] < -0.1)
        where = np.ascontiguousarray(around.depth.in_picture(cells.astype(np.uint8), old.picture.size, smooth=False))
        if not where.any():
            return None
        before, after = (light_of(measures.colour(view.picture, where)) for view in (old, new))
        lit = float(_falling(old, around, max(self.lying.albedo))[0][cells].mean())
        own = 1.0 - np.exp(-lit * np.array(self.lying.albedo))
        if old.picture.order == "mono":
            own = np.full(3, float(own @ BRIGHTNESS))
        was, is_now = (float(np.abs(colour - own).sum()) for colour in (before, after))
        if is_now < was or was < 0.05:
            return None
        return f"the ground ahead was {was:.3f} of light off the colour of what lies on it, and is {is_now:.3f}"


def _places(around: Surroundings) -> tuple[Singles, Singles, Singles]:
    """Return x, y (h, w) of the level ground that cells show, and the length of a pixel on the road."""
    down = np.maximum(-around.rays[..., 2], 1e-6)
    height = max(float(around.camera_m[2]), 0.1)
    range_m = np.minimum(height / down, _FAR_M)
    x = around.camera_m[0] + around.rays[..., 0] * range_m
    y = around.camera_m[1] + around.rays[..., 1] * range_m
    per_cell = np.abs(np.gradient(x, axis=0)) if len(x) > 1 else np.full_like(x, 1.0)
    wide = np.where(range_m < _FAR_M, per_cell / around.depth.step_px, 10.0)
    return x.astype(np.float32), y.astype(np.float32), wide.astype(np.float32)


def _falling(view: View, around: Surroundings, albedo: float = 1.0) -> tuple[Singles, Singles]:
    """Return the light (h, w) that falls on the ground's cells, and how much (h, w) of what lies there is seen.

    The light is relative to full scale, without lane markings, slightly smoothed, and at an exposure for what lies in
    the sun, of an ``albedo``. Under vehicles, where hardly any light falls, nothing fell either.
    """
    light = grey(coarse_light(view.picture, around.shape, around.depth.step_px))
    lit = np.float32(quantile(light[around.ground], _LIT))
    soft = np.asarray(cv2.blur(np.minimum(light, _LINE * lit), (3, 3)))
    seen = np.clip((soft / lit - np.float32(_UNDER[0])) * np.float32(1.0 / (_UNDER[1] - _UNDER[0])), 0.0, 1.0)
    exposed = min(1.0 / _ROAD_ALBEDO, _EXPOSED / max(float(lit) * albedo, 1e-3))
    return soft * np.float32(exposed), cv2.blur(seen, (3, 3))


def _ground_pixels(ground: npt.NDArray[np.bool_], step_px: int, picture: Picture) -> Words:
    """Return how much of each pixel is ground, in 65,535ths: along the edges of the picture within its cells (h, w)."""
    cells = ground.astype(np.float32)
    shares = _enlarged(words_of(cells), step_px, picture.size)
    follow_edges(shares, cells, picture, step_px, 0.5)
    near = _enlarged(
        cv2.dilate(ground.astype(np.uint8), np.ones((3, 3), np.uint8)) * np.uint8(255), step_px, picture.size
    )
    return np.asarray(cv2.copyTo(shares, cv2.compare(near, 255, cv2.CMP_EQ)))


def _stretched(values: Words, size: tuple[int, int]) -> Words:
    """Return values (h, w, …) of every second pixel, or of each, for every pixel of a picture of ``size``."""
    if values.shape[:2] == size:
        return values
    return np.ascontiguousarray(cv2.resize(values, (0, 0), fx=2, fy=2)[: size[0], : size[1]])


def _enlarged(cells: npt.NDArray[Any], step_px: int, size: tuple[int, int]) -> npt.NDArray[Any]:
    """Return values of cells (h, w) for every pixel of a picture of ``size``, interpolated."""
    rows, columns = (n * step_px for n in cells.shape)
    return np.ascontiguousarray(cv2.resize(np.ascontiguousarray(cells), (columns, rows))[: size[0], : size[1]])
