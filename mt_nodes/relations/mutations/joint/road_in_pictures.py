# SPDX-License-Identifier: Apache-2.0
"""A wet or covered road as cameras see it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import UNTOUCHED, View
from mt_nodes.relations.mutations.joint.every_sensor import EverySensor, surroundings
from mt_nodes.relations.mutations.joint.road_covers import Cover, grain_at, share_at
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.light import light_of
from mt_nodes.world.camera.measures import Mask
from mt_nodes.world.camera.relight import BRIGHTNESS, coarse_light, grey, relit
from mt_nodes.world.camera.surroundings import Surroundings

Singles = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
_WATER = 1.33
#: A film leaves a rough ground about half of its light: what it scatters back is in part turned back again by the
#: water's surface (J. Lekner, M. Dorf, "Why some things are darker when wet", Applied Optics 27, 1988).
_DARKENED = 0.5
#: Less ground than this in sight shows nothing.
_LEAST_SHARE = 0.01
#: Mean albedo of asphalt after five years (Lawrence Berkeley National Laboratory, Heat Island Group: 0.12).
_ROAD_ALBEDO = 0.12
#: Ground brighter than so many times this quantile of it is a line, and no measure of the light that falls on it.
_LIT, _LINE = 0.75, 1.15
#: Ground farther away has no places of its own.
_FAR_M = 80.0
#: Grain fades where a pixel is as wide as this.
_GRAIN_SEEN_M = 0.08


class RoadInPictures(EverySensor):
    """Base of mutations that change how the ground in sight looks in pictures."""

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """There is nothing to choose; a picture without ground stays.

        Raises:
            NotApplicable: how far away what it shows is, or where the camera is, is not known.
        """
        return {UNTOUCHED: True} if surroundings(view).ground.mean() < _LEAST_SHARE else {}

    def affected(self, view: View, draw: Draw) -> Mask:
        """Ground, and half a cell around it."""
        around = surroundings(view)
        cells = cv2.dilate(around.ground.astype(np.uint8), np.ones((3, 3), np.uint8))
        return np.ascontiguousarray(around.depth.in_picture(cells, view.picture.size, smooth=False))


class WetRoadInPictures(RoadInPictures):
    """Darkens the ground in sight and shows in it, blurred, what stands above it.

    Ground cells mirror the picture about the foot of what stands beyond them, weighted by Fresnel's reflectance at
    n = 1.33; objects' own picture is taken, not what the road would see from below (as flat as the picture allows).
    """

    @property
    @abstractmethod
    def film(self) -> float:
        """Share of the ground that a film of water covers."""

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Darken the ground, and add what it mirrors."""
        around = surroundings(view)
        ground = around.ground
        light = coarse_light(view.picture, ground.shape, around.depth.step_px)
        seen = cv2.blur(mirrored(light, ground), (3, 9))
        share = np.where(ground, self.film, 0.0)
        wet = (share * fresnel(-around.rays[..., 2])).astype(np.float32)
        gain = (1.0 - share * (1.0 - _DARKENED)).astype(np.float32) * (np.float32(1.0) - wet)
        return relit(view.picture, gain, wet[..., None] * seen, around.depth.step_px)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Look at the ground right before the vehicle: it is darker; and at all of it: it changed."""
        around = surroundings(old)
        near = around.ground & (around.rays[..., 2] < -0.35)
        full = np.ascontiguousarray(around.depth.in_picture(near.astype(np.uint8), old.picture.size, smooth=False))
        if not full.any():
            return None
        before, after = measures.brightness(old.picture, full), measures.brightness(new.picture, full)
        if after < before or before < 0.02:
            return None
        return f"the ground right ahead went from a brightness of {before:.3f} to {after:.3f}, it was to darken"


def fresnel(cosine: Floats, index: float = _WATER) -> Floats:
    """Return which share of unpolarised light a smooth surface, by default water, reflects at cosines of incidence."""
    c = np.clip(cosine, 1e-3, 1.0)
    t = np.sqrt(1.0 - (1.0 - c * c) / index**2)
    across, along = (c - index * t) / (c + index * t), (index * c - t) / (index * c + t)
    return np.asarray(0.5 * (across**2 + along**2))


def mirrored(light: Singles, ground: npt.NDArray[np.bool_]) -> Singles:
    """Return the light (h, w, 3) that each cell would have in a mirror set up at the next thing above it."""
    row = np.arange(len(ground))[:, None]
    foot = np.maximum.accumulate(np.where(ground, -1, row), axis=0)
    above = np.clip(2 * foot - row + 1, 0, len(ground) - 1)
    return np.take_along_axis(light, above[..., None], axis=0)


class CoveredRoadInPictures(RoadInPictures):
    """Shows the ground in sight in the colour of what lies on it.

    The light that falls on the ground is what it sends over a mean albedo of asphalt, lines left out, so that shadows
    stay. What would be brighter than full scale is compressed, as a camera that exposes for it would.
    """

    @property
    @abstractmethod
    def lying(self) -> Cover:
        """What lies there."""

    @property
    @abstractmethod
    def amount(self) -> float:
        """Which share of the ground it covers."""

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Mix the ground with what lies on it."""
        around, step = surroundings(view), surroundings(view).depth.step_px
        first = max(0, int(np.flatnonzero(around.ground.any(axis=1))[0]) - 1)
        part = view.picture.with_pixels(np.ascontiguousarray(view.picture.pixels[first * step :]))
        x, y, far = (_enlarged(m[first:], step, part.size) for m in _places(around))
        share = share_at(x, y, self.amount)
        share *= _enlarged(around.ground[first:].astype(np.float32), step, part.size)
        finer = np.float32(self.lying.finer)
        tone = grain_at(finer * x, finer * y)
        tone *= np.float32(self.lying.grain) / (np.float32(1.0) + np.square(far * finer / _GRAIN_SEEN_M))
        tone += np.float32(1.0)
        lit = _falling(view, around)
        tone *= _enlarged(lit[first:], step, part.size) * np.float32(1.0 / _ROAD_ALBEDO)
        np.maximum(tone, np.float32(0.0), out=tone)
        colours = [share * (np.float32(1.0) - cv2.exp(tone * np.float32(-a))) for a in self.lying.albedo]
        if self.lying.index > 1.0:
            self._mirror(view, around, colours, share, first)
        offset = np.asarray(cv2.merge(colours))
        changed = relit(part, np.float32(1.0) - share, offset, 1)
        untouched = share == 0.0
        new = view.picture.pixels.copy()
        seen = untouched if changed.ndim == 2 else untouched[..., None]
        new[first * step :] = np.where(seen, part.pixels, changed)
        return new

    def _mirror(self, view: View, around: Surroundings, colours: list[Singles], share: Singles, first: int) -> None:
        """Let what is smooth show, in place of its own colour, what stands beyond it, by Fresnel's law; in place."""
        step = around.depth.step_px
        light = coarse_light(view.picture, around.shape, step)
        seen = cv2.blur(mirrored(light, around.ground), (3, 9))[first:]
        reflected = fresnel(-around.rays[first:, :, 2], self.lying.index).astype(np.float32)
        size = share.shape
        weight = _enlarged(reflected, step, size)
        for place, channel in enumerate(cv2.split(seen * reflected[..., None])):
            colours[place] *= np.float32(1.0) - weight
            colours[place] += share * _enlarged(channel, step, size)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Look at the ground right ahead: its colour is nearer than it was to that of what lies there."""
        around = surroundings(old)
        cells = around.ground & (around.rays[..., 2] < -0.1)
        where = np.ascontiguousarray(around.depth.in_picture(cells.astype(np.uint8), old.picture.size, smooth=False))
        if not where.any():
            return None
        before, after = (light_of(measures.colour(view.picture, where)) for view in (old, new))
        lit = float(_falling(old, around)[cells].mean()) / _ROAD_ALBEDO
        own = 1.0 - np.exp(-lit * np.array(self.lying.albedo))
        if old.picture.order == "mono":
            own = np.full(3, float(own @ BRIGHTNESS))
        was, is_now = (float(np.abs(colour - own).sum()) for colour in (before, after))
        if is_now < was or was < 0.05:
            return None
        return f"the ground ahead was {was:.3f} of light off the colour of what lies on it, and is {is_now:.3f}"


def _places(around: Surroundings) -> tuple[Singles, Singles, Singles]:
    """Return x, y (h, w) of the level ground that cells look at, and how long a pixel is there on the road."""
    down = np.maximum(-around.rays[..., 2], 1e-6)
    height = max(float(around.camera_m[2]), 0.1)
    range_m = np.minimum(height / down, _FAR_M)
    x = around.camera_m[0] + around.rays[..., 0] * range_m
    y = around.camera_m[1] + around.rays[..., 1] * range_m
    per_cell = np.abs(np.gradient(x, axis=0)) if len(x) > 1 else np.full_like(x, 1.0)
    wide = np.where(range_m < _FAR_M, per_cell / around.depth.step_px, 10.0)
    return x.astype(np.float32), y.astype(np.float32), wide.astype(np.float32)


def _falling(view: View, around: Surroundings) -> Singles:
    """Return how much light (h, w) the ground's cells send, lines left out and a little smoothed."""
    light = grey(coarse_light(view.picture, around.shape, around.depth.step_px))
    most = _LINE * np.float32(np.quantile(light[around.ground], _LIT))
    return np.asarray(cv2.blur(np.minimum(light, most), (3, 3)))


def _enlarged(cells: npt.NDArray[Any], step_px: int, size: tuple[int, int]) -> Singles:
    """Return values of cells (h, w) for every pixel of a picture of ``size``, interpolated."""
    rows, columns = (n * step_px for n in cells.shape)
    whole = cv2.resize(np.ascontiguousarray(cells, np.float32), (columns, rows), interpolation=cv2.INTER_LINEAR)
    return np.ascontiguousarray(whole[: size[0], : size[1]])
