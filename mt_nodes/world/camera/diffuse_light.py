# SPDX-License-Identifier: Apache-2.0
"""The light of a picture's cells, and without the sun: shadows on the ground fade, contrasts fall.

Each cell has a dark and a bright end: the samples that it and its neighbours reach. What happens to light is computed
for both ends, and pixels between them follow in proportion (:mod:`mt_nodes.world.camera.local_relight`): so edges stay
as sharp as they were, though cells are coarse.

Light is divided into a base, brightness without detail but with its edges, and the detail (F. Durand, J. Dorsey, "Fast
Bilateral Filtering for the Display of High-Dynamic-Range Images", SIGGRAPH 2002), here by the guided filter of cells
(K. He, J. Sun, X. Tang, "Guided Image Filtering", ECCV 2010). Detail is taken for reflectance, the base for light: of
the ground nearly all of it, of other things, whose colours differ, a part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from weakref import WeakKeyDictionary

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Singles
from mt_nodes.data.images.codecs import Picture
from mt_nodes.world.camera.light import light_of, quantile, values_of
from mt_nodes.world.camera.relight import BRIGHTNESS, coarse_light, coarse_samples, grey, light_in, words_of
from mt_nodes.world.camera.surroundings import Surroundings

#: Radius of the guided filter in cells, and the variance, in squared samples, up to which a pattern is detail: of
#: things, and of the ground, whose grain is finer.
_RADIUS_CELLS, _DETAIL, _GRAIN = 5, 0.003, 0.0004
#: Bright lines narrower than this many cells, such as lane markings, are detail whatever their contrast.
_LINE_CELLS = 5
#: Share of the base's contrast (of light, in logarithms) that diffuse light leaves: of the ground, of other things.
LEFT = (0.18, 0.7)
#: Where more of the sun is left than this, its light is not touched.
UNCHANGED = 0.99
#: Bounds of the change of light: more would show the noise of dark shadows.
BOUNDS = (0.15, 3.5)
#: Both for a scene that gets darker as a whole, which hides the noise: hardly a trace of the shadows of noon is left.
FADED, WIDE_BOUNDS = (0.12, 0.7), (0.1, 8.0)
#: Light of what is lit by the sky alone, at most (assumed).
_WHITEST = 0.7
#: What has less than this share of the sky's light is none of it; from the second on it is wholly sky.
_SKY_FROM, _SKY_TO = 0.14, 0.72
#: Cells this near to sky may be sky, too, if their light differs from it by less than the first share of it, and are
#: none from the second on.
_NEXT_CELLS, _LIKE, _UNLIKE = 7, 0.3, 0.5
#: Nothing lower than this over the horizon is sky, in radians; for clouds may not reach a far road.
_HORIZON = 0.005
#: Quantiles of the ground's light that stand for shadow and for sun, of so many cells at least (every fourth counts).
_TELLING, _FEWEST = (0.15, 0.75), 50
#: Power of the difference of colours that is the light's: dark samples are bluer than light (assumed).
_COLOUR = 0.6
#: Samples that differ by this, over red, green and blue, look different.
_ALIKE = 0.12
#: Cells on each side of a cell in a square of five, and their rows and columns (25, 1) from its corner.
_REACH = 2
_NEAR_ROWS, _NEAR_COLUMNS = (side.reshape(-1, 1) for side in np.mgrid[: 2 * _REACH + 1, : 2 * _REACH + 1])
#: Ends of a cell are this many bytes apart at least.
_APART = 8
#: Steps of tables from samples to light.
_STEPS = 1023


@dataclass(frozen=True, eq=False)
class Shading:
    """Samples and light of a picture's cells (h, w), of their dark and their bright end.

    Colours come first: planes are what numpy and OpenCV are fast on.

    Attributes:
        samples, light: (3, 2, h, w) red, green, blue, in shares of full scale. cells: (3, h, w) samples of cells.
        base: (2, h, w) samples without detail.
        ground: (h, w) 0 to 1, soft. sky: (2, h, w) share of an end that is sky: near cells of sky, and as bright.
        sky_light: of the sky, 0 without one. level: mean light of what is not sky.
        lit, dark: light of sunny ground and of ground in shadow. shadow_rgb: colour of the latter relative to the
            former's.
    """

    samples: Singles
    light: Singles
    cells: Singles
    base: Singles
    ground: Singles
    sky: Singles
    sky_light: float
    level: float
    lit: float
    dark: float
    shadow_rgb: tuple[float, float, float]


_known: WeakKeyDictionary[Picture, Shading] = WeakKeyDictionary()


def shading_of(picture: Picture, around: Surroundings) -> Shading:
    """Return the shading of a picture; cached."""
    if (known := _known.get(picture)) is None:
        known = _known[picture] = _shading(picture, around)
    return known


def _shading(picture: Picture, around: Surroundings) -> Shading:
    samples = coarse_samples(picture, around.shape, around.depth.step_px)
    light = coarse_light(picture, around.shape, around.depth.step_px)
    in_bytes = _ends(samples)
    ends = in_bytes * np.float32(1.0 / 255.0)
    luma, lumas = sample_shares(grey(light)), brightness(ends)
    opened = cv2.morphologyEx(luma, cv2.MORPH_OPEN, np.ones((_LINE_CELLS, _LINE_CELLS), np.uint8))
    slope, level = _guided(opened, np.where(around.ground, np.float32(_GRAIN), np.float32(_DETAIL)))
    calm = np.minimum(lumas, cv2.dilate(opened, np.ones((3, 3), np.uint8)))
    base = np.maximum(slope * calm + level, np.float32(0.004))
    ground = cv2.blur(around.ground.astype(np.float32), (3, 3))
    own = light_in(in_bytes.reshape(6 * len(luma), -1)).reshape(ends.shape)
    sky, sky_light = _sky(own, around)
    things = ~around.sky
    mean = float(grey(light)[things].mean()) if things.any() else 1.0
    of_ground = sun_and_shadow(light[::2, ::2][around.ground[::2, ::2]])
    cells = np.stack(cv2.split(samples)) * np.float32(1.0 / 255.0)
    return Shading(ends, own, cells, base, ground, sky, sky_light, mean, *of_ground)


def _ends(samples: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the least and largest samples (3, 2, h, w) of cells (h, w, 3) and their neighbours, a little apart."""
    kernel = np.ones((3, 3), np.uint8)
    low, high = cv2.erode(samples, kernel), cv2.dilate(samples, kernel)
    missing = cv2.subtract((_APART,) * 3, cv2.subtract(high, low))
    low, high = cv2.subtract(low, missing), cv2.add(high, missing)
    return np.stack([cv2.split(low), cv2.split(high)], axis=1)


def brightness(planes: Singles) -> Singles:
    """Return the brightness (…) of light in planes (3, …)."""
    red, green, blue = (np.float32(weight) * plane for weight, plane in zip(BRIGHTNESS, planes, strict=True))
    return np.asarray(red + green + blue)


def of_ends(shading: Shading, values: Singles, step: float) -> Singles:
    """Return values (h, w) of cells for the ends (2, h, w) of cells: at an edge, those of cells like each end.

    A joint bilateral filter (J. Kopf et al., "Joint Bilateral Upsampling", SIGGRAPH 2007) of 5 x 5 cells; so the edge
    of a value lies where the picture has one, though cells are coarse and places of depths are off by a cell.

    Args:
        shading: of the picture.
        values: of cells, in any unit.
        step: neighbours that differ by less show no edge.
    """
    both = np.stack([values, values])
    kernel = np.ones((3, 3), np.uint8)
    place = np.flatnonzero(cv2.subtract(cv2.dilate(values, kernel), cv2.erode(values, kernel)) > step)
    if not place.size:
        return both
    wide, row = values.shape[1] + 2 * _REACH, place // values.shape[1]
    near = _NEAR_ROWS * wide + _NEAR_COLUMNS + (place + 2 * _REACH * row)
    padded = (cv2.copyMakeBorder(plane, *(_REACH,) * 4, cv2.BORDER_REPLICATE) for plane in (values, *shading.cells))
    of_near, *colours = (plane.reshape(-1).take(near) for plane in padded)
    ends = shading.samples.reshape(3, 2, -1)[..., place]
    for end, found in enumerate(both.reshape(2, -1)):
        apart = sum(np.square(plane - own[end]) for plane, own in zip(colours, ends, strict=True))
        weight = np.exp(apart * np.float32(-1.0 / _ALIKE**2)) + np.float32(1e-6)
        found[place] = (weight * of_near).sum(axis=0) / weight.sum(axis=0)
    return both


def _guided(cells: Singles, detail: Singles) -> tuple[Singles, Singles]:
    """Return slope and level (h, w) of the guided filter of cells by themselves."""
    size = (2 * _RADIUS_CELLS + 1,) * 2
    mean = cv2.blur(cells, size)
    variance = np.maximum(cv2.blur(cells * cells, size) - mean * mean, np.float32(0.0))
    slope = variance / (variance + detail)
    return cv2.blur(slope, size), cv2.blur((np.float32(1.0) - slope) * mean, size)


def _sky(light: Singles, around: Surroundings) -> tuple[Singles, float]:
    """Return the share of sky of ends (2, h, w), by their light (3, 2, h, w), and the sky's own brightness.

    Cells of sky are sky where they are bright; cells next to them where they have the very light of the sky there.
    """
    high = around.rays[..., 2] > _HORIZON
    above = (around.sky & high).astype(np.float32)
    if not above[::2, ::2].any():
        return np.zeros(light.shape[1:], np.float32), 0.0
    sky = np.zeros(light.shape[1:], np.float32)
    rows = slice(0, int(np.flatnonzero(above.any(axis=1))[-1]) + 1 + _NEXT_CELLS)  # lower is none
    light, above, high = light[:, :, rows], above[rows], high[rows]
    bright = brightness(light)
    usual = max(quantile(bright[1, ::2, ::2][above[::2, ::2] > 0.0], 0.7), 1e-3)
    inside = _between(bright * np.float32(1.0 / usual), _SKY_FROM, _SKY_TO)
    near = cv2.blur(above, (_NEXT_CELLS, _NEXT_CELLS))
    apart = np.zeros_like(bright)
    for plane in light:
        here = cv2.blur(plane[1] * above, (_NEXT_CELLS, _NEXT_CELLS)) / np.maximum(near, np.float32(1e-3))
        np.maximum(apart, np.abs(plane - here), out=apart)
    beside = _between(apart * np.float32(1.0 / usual), _UNLIKE, _LIKE) * (near > 0.0) * high
    whole = cv2.erode(above, np.ones((3, 3), np.uint8)) > 0.0
    sky[:, rows] = np.where(whole, inside, np.minimum(inside, beside))
    return sky, usual


def _between(values: Singles, none: float, whole: float) -> Singles:
    """Return 0 where values are ``none`` or beyond it, 1 from ``whole`` on, and a line between."""
    return np.asarray(np.clip((values - np.float32(none)) * np.float32(1.0 / (whole - none)), 0.0, 1.0))


def sun_and_shadow(of_ground: Singles) -> tuple[float, float, tuple[float, float, float]]:
    """Return the light of lit ground and of ground in shadow, and the latter's colour relative to the former's.

    ``of_ground``: (n, 3) light of cells that show ground; too few say that there is no shadow.
    """
    if len(of_ground) < _FEWEST:
        return 1.0, 0.0, (1.0, 1.0, 1.0)
    bright = grey(of_ground)
    low, high = (quantile(bright, share) for share in _TELLING)
    dark, lit = (of_ground[where].mean(axis=0) for where in (bright <= low, bright >= high))
    ratio = (dark / max(float(grey(dark)), 1e-4)) / (lit / max(float(grey(lit)), 1e-4))
    red, green, blue = np.clip(ratio**_COLOUR, 0.6, 1.8).tolist()
    return float(grey(lit)), float(grey(dark)), (red, green, blue)


def diffuse_gain(
    shading: Shading, direct: float = 0.0, left: tuple[float, float] = LEFT, bounds: tuple[float, float] = BOUNDS
) -> Singles:
    """Return the change of red, green and blue light (3, 2, h, w) of the ends of cells when the sun is hidden.

    The mean light stays about the same: a camera exposes for it. Shadows on the ground, lit by the blue sky, get the
    colour of the lit ground. The sky stays.

    Args:
        shading: of the picture.
        direct: share of the sun's own light that is left, 0 to 1.
        left: share of the base's contrast (of light, in logarithms) that is left without sun: on the ground, elsewhere.
        bounds: of the change of light: raised more, dark shadows would show their noise.
    """
    return np.stack(list(_gains(shading, direct, left, bounds)))


def _gains(
    shading: Shading, direct: float, left: tuple[float, float] = LEFT, bounds: tuple[float, float] = BOUNDS
) -> Iterator[Singles]:
    """Yield the change (2, h, w) of red, of green and of blue light."""
    place = _steps(shading.base).astype(np.intp)  # as tables are read
    powers = (part + (1.0 - part) * direct for part in left)
    ground, others = (_gain_table(round(shading.level, 3), round(part, 3), bounds).take(place) for part in powers)
    others += shading.sky * (np.float32(1.0) - others)
    span = np.float32(1.0 / max(shading.lit - shading.dark, 1e-3))
    ground *= shading.ground
    others *= np.float32(1.0) - shading.ground
    shadow = np.clip((np.float32(shading.lit) - _LIGHT) * span, 0.0, 1.0).take(place)
    shadow *= ground
    others += ground
    for own in shading.shadow_rgb:
        yield others + shadow * np.float32((1.0 / own - 1.0) * (1.0 - direct))


def diffuse_light(
    shading: Shading, direct: float = 0.0, left: tuple[float, float] = LEFT, bounds: tuple[float, float] = BOUNDS
) -> Singles:
    """Return the light (3, 2, h, w) of the ends of cells when a share of the sun's own light is left.

    Reflections of the sun are cut: without it, nothing that is lit by the sky is as bright as white paint in the sun.
    ``left``, ``bounds``: as of :func:`diffuse_gain`.
    """
    if direct >= UNCHANGED:
        return shading.light.copy()
    light, most = np.empty_like(shading.light), np.float32(_WHITEST + (1.0 - _WHITEST) * direct) + shading.sky
    for new, old, gain in zip(light, shading.light, _gains(shading, direct, left, bounds), strict=True):
        np.multiply(old, gain, out=new)
        np.minimum(new, most, out=new)
    return light


@lru_cache(maxsize=64)
def _gain_table(level: float, left: float, bounds: tuple[float, float]) -> Singles:
    """Return the change of light for each base (steps + 1,)."""
    return np.clip((np.maximum(_LIGHT, 1e-4) / max(level, 1e-3)) ** (left - 1.0), *bounds).astype(np.float32)


def _steps(samples: Singles) -> npt.NDArray[np.int16]:
    """Return samples as places in tables."""
    return np.asarray(np.clip(samples * np.float32(_STEPS) + np.float32(0.5), 0, _STEPS).astype(np.int16))


def light_shares(samples: Singles) -> Singles:
    """Return the light of samples in shares of full scale, to a 1,024th."""
    return _LIGHT[_steps(samples)]


def sample_shares(light: Singles) -> Singles:
    """Return the samples of light in shares of full scale."""
    return np.asarray(cv2.LUT(words_of(light.reshape(-1, light.shape[-1])), _SAMPLES)).reshape(light.shape)


_FINE = 65535
_LIGHT = light_of(np.arange(_STEPS + 1) / _STEPS).astype(np.float32)
_SAMPLES = values_of(np.arange(_FINE + 1) / _FINE).astype(np.float32)
