# SPDX-License-Identifier: Apache-2.0
"""Pictures of one frame in the same fog, several times: see :mod:`fog_agreement`."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt
from picture_changes import returns_in

import mt_nodes as mt
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.joint.air_in_pictures import air_light
from mt_nodes.relations.mutations.joint.every_sensor import surroundings
from mt_nodes.relations.mutations.joint.fog_dust_smoke import Fog
from mt_nodes.relations.mutations.joint.weather_light import WeatherLight

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Pixels = npt.NDArray[np.uint8]
Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
#: Contrast of 5 % at the visibility (World Meteorological Organization, meteorological optical range).
_LN20 = float(np.log(20.0))
#: Samples to light, as nearly as the mutation's own: sRGB is within 2 % of it.
_GAMMA = 2.2
#: A return this near in the picture says how far a pixel is: rings of an HDL-64E are some 8 pixels apart at 375 lines.
_COVERED_PX = 12.0
_WIDER = 1.05
#: Returns of a box whose ranges differ from its own by less than this factor are of what it holds (assumed).
_ONE_SURFACE = 1.35
#: Pictures in their order: names of the first three, and copies of the first and the third.
OURS, PLAIN, AT_RANGE = range(3)
COPIES = {"one step": (3, AT_RANGE), "one pixel": (4, AT_RANGE), "5 % of visibility": (5, AT_RANGE)}
OUR_COPIES = (6, 7)


def pictures_in_fog(changed: mt.ChangedFrame, light: FogLight, boxes_px: Floats) -> list[Pixels]:
    """Return the pictures (H, W, 3) RGB of a frame in fog: I e^(-αr) + A (1 - e^(-αr)), α = ln 20 / V.

    A of the plain one is fitted to the changed picture where returns lie.

    Args:
        boxes_px: (M, 4) left, upper, right, lower edges of what is one surface at the median range of its returns.
    """
    _, place, own_m = returns_in(changed.source)
    pixel = np.rint(place).astype(np.int64)
    ours, size = np.asarray(changed.image), np.asarray(changed.image).shape[:2]
    range_m, covered = plain_range_m(pixel, own_m, size, boxes_px), near_return(pixel, size)
    source, passes = _light(np.asarray(changed.source.image)), np.exp(-_LN20 / light.visibility_m * own_m)
    plain = _law(source, _fitted_air(source, _light(ours), pixel, passes), light.visibility_m, range_m)
    at_range, farther = (
        np.where(covered[..., None], light.at(more * light.visibility_m, range_m), ours) for more in (1.0, _WIDER)
    )
    step = np.random.default_rng(changed.index).integers(-1, 2, plain.shape)
    copies = [
        _stepped(at_range, step),
        np.roll(at_range, 1, axis=1),
        farther,
        _stepped(ours, step),
        np.roll(ours, 1, 1),
    ]
    return [ours, plain, at_range, *copies]


def _light(rgb: Pixels) -> Singles:
    return np.asarray(cv2.pow(rgb.astype(np.float32) / np.float32(255.0), _GAMMA))


def _law(source: Singles, air: Floats, visibility_m: float, range_m: Floats, glow: Singles | float = 0.0) -> Pixels:
    share = np.exp(-_LN20 / visibility_m * range_m).astype(np.float32)[..., None]
    light = source * share + np.clip(air, 0.0, 1.0).astype(np.float32) * (1.0 - share) + glow
    return np.rint(255.0 * cv2.pow(np.clip(light, 0.0, 1.0), 1.0 / _GAMMA)).astype(np.uint8)


def _fitted_air(source: Singles, fogged: Singles, pixel: Rows, passes: Floats) -> Floats:
    (x, y), far = pixel.T, passes < 0.7
    share = passes[far, None]
    return np.asarray(np.median((fogged[y, x][far] - share * source[y, x][far]) / (1.0 - share), axis=0))


def _stepped(rgb: Pixels, step: npt.NDArray[np.int64]) -> Pixels:
    return np.clip(rgb + step, 0, 255).astype(np.uint8)


class FogLight:
    """What the mutation says of light: the source without the sun's own, the air's, and the glow of lamps."""

    def __init__(self, changed: mt.ChangedFrame, visibility_m: float) -> None:
        self.visibility_m, self._fog = visibility_m, Fog(visibility_m=visibility_m, patchiness=0.0)
        bundle = changed.source.bundle
        self._view = View.of(bundle, bundle.images[0])
        self._air = air_light(self._view, self._fog.tint).astype(np.float64)
        light = WeatherLight(self._view, self._fog.direct)
        self._source = _light(np.asarray(self._view.picture.with_pixels(light.pixels()).rgb8()))
        self._dark = light.light

    def at(self, visibility_m: float, range_m: Floats) -> Pixels:
        """Return the picture (H, W, 3) in fog at ranges (H, W)."""
        around = surroundings(self._view)
        cells = cv2.resize(range_m, around.shape[::-1], interpolation=cv2.INTER_NEAREST)
        lamps = WeatherLight(self._view, self._fog.direct)
        lamps.lamps_in_air(np.exp(-_LN20 / visibility_m * cells))
        glow = np.moveaxis((lamps.light - self._dark).mean(axis=1), 0, -1)
        glow = cv2.resize(np.ascontiguousarray(glow), range_m.shape[::-1])
        return _law(self._source, self._air, visibility_m, range_m, glow)


def near_return(pixel: Rows, size: tuple[int, int]) -> Mask:
    """Return which pixels of a picture (height, width) have a return at pixels (N, 2) near by."""
    free = np.ones(size, np.uint8)
    free[pixel[:, 1], pixel[:, 0]] = 0
    return np.asarray(cv2.distanceTransform(free, cv2.DIST_L2, 5) <= _COVERED_PX)


def plain_range_m(pixel: Rows, range_m: Floats, size: tuple[int, int], boxes_px: Floats) -> Floats:
    """Return the range (H, W) of each pixel by returns at pixels (N, 2).

    What a box holds is one surface at the median range of the returns in its inner half: within the convex hull of
    those in the box that are about as far, nothing is farther. So windows are closed, and the road and the background
    in the corners of a box stay where they are.
    """
    whole = nearest_m(pixel, range_m, size)
    for left, top, right, bottom in boxes_px:
        middle, half = np.array([left + right, top + bottom]) / 2.0, np.array([right - left, bottom - top]) / 4.0
        aside = np.abs(pixel - middle)
        inner = range_m[(aside <= half).all(axis=1)]
        median = float(np.median(inner)) if len(inner) else 0.0
        alike = (range_m > median / _ONE_SURFACE) & (range_m < median * _ONE_SURFACE)
        own = (aside <= 2.0 * half).all(axis=1) & alike
        if not own.any():
            continue
        hull = cv2.fillConvexPoly(np.zeros(size, np.uint8), cv2.convexHull(pixel[own].astype(np.int32)), 1) != 0
        np.copyto(whole, np.minimum(whole, median), where=hull)
    return whole


def nearest_m(pixel: Rows, range_m: Floats, size: tuple[int, int]) -> Floats:
    """Return for each pixel of a picture (height, width) the range of the return that lies nearest in it."""
    at = np.full(size, np.inf)
    np.minimum.at(at, (pixel[:, 1], pixel[:, 0]), range_m)
    free = (~np.isfinite(at)).astype(np.uint8)
    _, label = cv2.distanceTransformWithLabels(free, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    of_label = np.zeros(int(label.max()) + 1)
    of_label[label[free == 0]] = at[free == 0]
    return np.asarray(of_label[label])
