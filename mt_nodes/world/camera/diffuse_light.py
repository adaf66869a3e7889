# SPDX-License-Identifier: Apache-2.0
"""The light that falls on what a picture shows, without the sun: shadows on the ground fade, contrasts fall.

A picture is divided into a base, brightness without detail but with its edges, and the detail (F. Durand, J. Dorsey,
"Fast Bilateral Filtering for the Display of High-Dynamic-Range Images", SIGGRAPH 2002), here by the guided filter at
the resolution of cells, whose coefficients are enlarged (K. He, J. Sun, "Fast Guided Filter", 2015). Detail is taken
for reflectance, the base for light: of the ground nearly all of it, of other things, whose colours differ, a part.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from weakref import WeakKeyDictionary

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.data.images.codecs import Picture
from mt_nodes.world.camera.light import light_of
from mt_nodes.world.camera.relight import coarse_light, grey
from mt_nodes.world.camera.surroundings import Surroundings

Singles = npt.NDArray[np.float32]
#: Pictures wider than this are divided at a fraction of their resolution: shadows have soft edges.
_WIDEST_PX = 1250
#: Radius of the guided filter in cells, and the variance, in squared samples, up to which a pattern is detail:
#: of things, and of the ground, whose grain is finer.
_RADIUS_CELLS, _DETAIL, _GRAIN = 5, 0.003, 0.0004
#: Bright lines narrower than this many cells, such as lane markings, are detail whatever their contrast.
_LINE_CELLS = 5
#: Share of the base's contrast (of light, in logarithms) that diffuse light leaves: of the ground, of other things.
LEFT = (0.18, 0.7)
#: Bounds of the change of light: more would show the noise of dark shadows.
BOUNDS = (0.15, 3.5)
#: What has less than this share of the sky's light is none of it; from the second on it is wholly sky.
_SKY_FROM, _SKY_TO = 0.14, 0.72
#: Nothing lower than this over the horizon is sky, in radians; for clouds may not reach a far road.
_HORIZON = 0.005
#: Quantiles of the ground's light that stand for shadow and for sun, of so many cells at least.
_TELLING, _FEWEST = (0.15, 0.75), 200
_STEPS = 1024


@dataclass(frozen=True, eq=False)
class Shading:
    """Base and sky of a picture, at a fraction of its resolution.

    Attributes:
        luma: (h, w) brightness, in shares of full scale of samples. base: (h, w) the same without detail.
        ground: (h, w) 0 to 1, soft. sky: (h, w) share of each pixel that shows the sky. sky_part: (h, w) share of
            its light that is the sky's. sky_light: of the sky, in shares of full scale; 0 without one.
        step_px: width of one of these pixels in pixels of the picture.
        level: mean light of what is not sky, in shares of full scale. lit, dark: of lit and of shaded ground.
        shadow_rgb: colour of shaded ground relative to that of lit ground.
    """

    luma: Singles
    base: Singles
    ground: Singles
    sky: Singles
    sky_part: Singles
    sky_light: float
    step_px: int
    level: float
    lit: float
    dark: float
    shadow_rgb: tuple[float, float, float]


_known: WeakKeyDictionary[Picture, Shading] = WeakKeyDictionary()


def shading_of(picture: Picture, around: Surroundings) -> Shading:
    """Return the base and the sky of a picture; cached."""
    if (known := _known.get(picture)) is None:
        known = _known[picture] = _shading(picture, around)
    return known


def _shading(picture: Picture, around: Surroundings) -> Shading:
    step = max(1, round(picture.size[1] / _WIDEST_PX))
    shape = tuple(-(-side // step) for side in picture.size)
    luma = picture.luma()
    fine = luma if step == 1 else cv2.resize(luma, shape[::-1], interpolation=cv2.INTER_AREA)
    fine = cv2.multiply(fine, 1.0 / picture.full_scale, dtype=cv2.CV_32F)
    cells = cv2.resize(fine, around.shape[::-1], interpolation=cv2.INTER_AREA)
    opened = cv2.morphologyEx(cells, cv2.MORPH_OPEN, np.ones((_LINE_CELLS, _LINE_CELLS), np.uint8))
    slope, level = _guided(opened, np.where(around.ground, np.float32(_GRAIN), np.float32(_DETAIL)))
    calm = cv2.min(fine, enlarged(cv2.dilate(opened, np.ones((3, 3), np.uint8)), shape))
    base = cv2.add(cv2.multiply(enlarged(slope, shape), calm), enlarged(level, shape))
    ground = cv2.blur(around.ground.astype(np.float32), (3, 3))
    sky, part, sky_light = _sky(fine, cells, around)
    some = light_in_singles(np.ascontiguousarray(base[::4, ::4]))
    weight = np.float32(1.0) - sky[::4, ::4]
    light = coarse_light(picture, around.shape, around.depth.step_px)
    shadow = _shadow_colour(light, around.ground)
    level = float((some * weight).sum() / max(float(weight.sum()), 1.0))
    return Shading(fine, cv2.max(base, 0.004), enlarged(ground, shape), sky, part, sky_light, step, level, *shadow)


def _guided(cells: Singles, detail: Singles) -> tuple[Singles, Singles]:
    """Return slope and level (h, w) of the guided filter of cells by themselves."""
    size = (2 * _RADIUS_CELLS + 1,) * 2
    mean = cv2.blur(cells, size)
    variance = np.maximum(cv2.blur(cells * cells, size) - mean * mean, np.float32(0.0))
    slope = variance / (variance + detail)
    return cv2.blur(slope, size), cv2.blur((np.float32(1.0) - slope) * mean, size)


def _sky(fine: Singles, cells: Singles, around: Surroundings) -> tuple[Singles, Singles, float]:
    """Return the share of sky of fine pixels, and of their light, and the sky's own light.

    Sky is near cells of sky, and about as bright as these.

    A pixel on an edge mixes the light of the sky with that of something much darker.
    """
    above = around.sky & (around.rays[..., 2] > _HORIZON)
    if not above.any():
        return np.zeros_like(fine), np.zeros_like(fine), 0.0
    bright = max(float(light_of(np.quantile(cells[above], 0.7))), 1e-3)
    reach = cv2.dilate(above.astype(np.float32), np.ones((7, 7), np.uint8)) * (around.rays[..., 2] > _HORIZON)
    relative = light_in_singles(fine) * np.float32(1.0 / bright)
    share = np.clip((relative - _SKY_FROM) * np.float32(1.0 / (_SKY_TO - _SKY_FROM)), 0.0, 1.0)
    share *= enlarged(cv2.blur(reach.astype(np.float32), (3, 3)), fine.shape)
    return share, cv2.min(cv2.divide(share, cv2.max(relative, 1e-3)), 1.0) * np.minimum(share * 8.0, 1.0), bright


def enlarged(cells: Singles, shape: tuple[int, ...]) -> Singles:
    """Return values of cells (h, w) at finer pixels, interpolated."""
    return np.asarray(cv2.resize(np.ascontiguousarray(cells, np.float32), shape[1::-1]))


def diffuse_gain(
    shading: Shading,
    direct: float = 0.0,
    left: tuple[float, float] = LEFT,
    bounds: tuple[float, float] = BOUNDS,
) -> Singles:
    """Return the change of red, green and blue light (h, w, 3) of each pixel of a shading when the sun is hidden.

    The mean light stays about the same: a camera exposes for it. Shadows on the ground, lit by the blue sky, get the
    colour of the lit ground.

    Args:
        shading: of the picture.
        direct: share of the sun's own light that is left, 0 to 1.
        left: share of the base's contrast (of light, in logarithms) that is left without sun: on the ground, elsewhere.
        bounds: of the change of light: raised more, dark shadows would show their noise.
    """
    on_ground, elsewhere = (part + (1.0 - part) * direct for part in left)
    place = cv2.multiply(shading.base, float(_STEPS), dtype=cv2.CV_16S)
    np.clip(place, 0, _STEPS, out=place)
    light = _LIGHT[place]
    tables = [_gain_table(round(shading.level, 3), round(part, 3), bounds) for part in (on_ground, elsewhere)]
    ground, others = (table[place] for table in tables)
    others += shading.sky * (np.float32(1.0) - others)
    shadow = np.clip(
        (np.float32(shading.lit) - light) * np.float32(1.0 / max(shading.lit - shading.dark, 1e-3)), 0.0, 1.0
    )
    channels = []
    for blue in shading.shadow_rgb:
        tint = np.float32(1.0) + shadow * np.float32((1.0 / blue - 1.0) * (1.0 - direct))
        channels.append(others + shading.ground * (ground * tint - others))
    return np.asarray(cv2.merge(channels))


@lru_cache(maxsize=64)
def _gain_table(level: float, left: float, bounds: tuple[float, float]) -> Singles:
    """Return the change of light for each base (steps + 1,)."""
    light = np.maximum(light_of(np.arange(_STEPS + 1) / _STEPS), 1e-4)
    return np.clip((light / max(level, 1e-3)) ** (left - 1.0), *bounds).astype(np.float32)


def _shadow_colour(light: Singles, ground: npt.NDArray[np.bool_]) -> tuple[float, float, tuple[float, float, float]]:
    """Return the light of lit ground and of ground in shadow, and the latter's colour relative to the former's.

    Args:
        light: (h, w, 3) of cells. ground: (h, w).
    """
    of_ground = light[ground]
    if len(of_ground) < _FEWEST:
        return 1.0, 0.0, (1.0, 1.0, 1.0)
    bright = grey(of_ground)
    low, high = np.quantile(bright, _TELLING)
    dark, lit = (of_ground[where].mean(axis=0) for where in (bright <= low, bright >= high))
    ratio = (dark / max(float(grey(dark)), 1e-4)) / (lit / max(float(grey(lit)), 1e-4))
    red, green, blue = np.clip(ratio, 0.6, 1.8).tolist()
    return float(grey(lit)), float(grey(dark)), (red, green, blue)


def light_in_singles(samples: Singles) -> Singles:
    """Return the light of samples in shares of full scale, to a 1,024th."""
    return _LIGHT[np.clip(cv2.multiply(samples, float(_STEPS), dtype=cv2.CV_16S), 0, _STEPS)]


_LIGHT = light_of(np.arange(_STEPS + 1) / _STEPS).astype(np.float32)
