# SPDX-License-Identifier: Apache-2.0
"""Light of vehicles' lamps: headlamps on what stands before them, and lamps that a picture shows."""

from __future__ import annotations

from functools import reduce

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Rows, Singles
from mt_nodes.data.images.codecs import Picture
from mt_nodes.world.camera.depth_completion import part_of
from mt_nodes.world.camera.relight import light_in

Bytes = npt.NDArray[np.uint8]

#: Headlamps: warm white, brightest straight ahead on the road, and the beam's widths in rad (one standard deviation).
WARM = np.array([1.0, 0.93, 0.8], np.float32)
_WIDE_RAD, _HIGH_RAD, _AIM_RAD = 0.3, 0.06, -0.02
#: Range at which headlamps are as bright as daylight, range below which they get no brighter, and their maximum.
_AS_DAY_M, _NEAREST_M, _MOST = 9.0, 3.0, 1.5
#: Low beams: where the two lamps are, ahead, aside and up (assumed), and the dip of the cut-off, 1 % (UN Regulation
#: 149), which rises by 15 degrees on the side of the verge up to this elevation.
_LAMPS_M, _DIP, _RISE, _HIGHEST_RAD = ((1.6, 0.62, 0.66), (1.6, -0.62, 0.66)), 0.01, np.tan(np.radians(15.0)), 0.02
#: How soft the cut-off is, how fast the intensity falls below it, both in rad, and the share that is thrown above it.
_EDGE_RAD, _DEPTH_RAD, _ABOVE = 0.005, 0.045, 0.012
#: Widths of the spot and of the spread, in rad, and the spread's share.
_SPOT_RAD, _SPREAD_RAD, _SPREAD = 0.16, 0.42, 0.3
#: Range at which the spot's middle lights what faces it as day does, at the exposure of a night (assumed), and the
#: maximum, by an exposure that keeps the road before the vehicle.
_SPOT_AS_DAY_M, _BRIGHTEST = 27.0, 1.1


def headlamps(forward: Singles, left: Singles, upward: Singles, range_m: Singles) -> Singles:
    """Return the light of headlamps relative to daylight, along unit vectors of ``base_link`` at ranges; any shape.

    A beam of two Gaussians of the angle, falling with the square of the range; shape and strength are assumptions.
    """
    above = np.maximum(np.arcsin(np.clip(upward, -1.0, 1.0)) - np.float32(_AIM_RAD), 0.0) / np.float32(_HIGH_RAD)
    beam = np.exp(-0.5 * (np.square(np.arctan2(left, forward) / np.float32(_WIDE_RAD)) + np.square(above)))
    near = np.square(_AS_DAY_M / np.maximum(range_m, np.float32(_NEAREST_M)))
    return np.asarray(np.minimum(beam * near, _MOST), np.float32)


def low_beams(points_m: Floats, strength: float = 1.0) -> Singles:
    """Return the light of two low beams, relative to daylight, on what is at points (…, 3) of ``base_link``.

    Intensity by direction after the form that UN Regulation 149 asks for: a cut-off 1 % below the level of the lamp,
    which rises by 15 degrees towards the verge (right), the brightest place just below it, a spot and a wide spread.
    Light falls with the square of the distance from the lamp. Widths and strength are assumed; the beam is compressed
    where the road next to the vehicle would be brighter than an exposure for the rest allows.
    """
    total = np.zeros(points_m.shape[:-1], np.float32)
    for lamp in np.array(_LAMPS_M, np.float32):
        x, y, z = np.moveaxis(points_m.astype(np.float32) - lamp, -1, 0)
        level = np.sqrt(x * x + y * y) + np.float32(1e-3)
        aside, up = np.arctan2(y, np.maximum(x, np.float32(0.1))), z / level
        cut = np.minimum(np.maximum(-aside, np.float32(0.0)) * np.float32(_RISE) - _DIP, np.float32(_HIGHEST_RAD))
        below = np.float32(1.0) / (np.float32(1.0) + np.exp(np.clip((up - cut) / np.float32(_EDGE_RAD), -30.0, 30.0)))
        falls = np.exp(np.minimum(up - cut, np.float32(0.0)) / np.float32(_DEPTH_RAD))
        spot = np.exp(-0.5 * np.square(aside / np.float32(_SPOT_RAD)))
        spread = np.exp(-0.5 * np.square(aside / np.float32(_SPREAD_RAD)))
        beam = (np.float32(1.0 - _SPREAD) * spot + np.float32(_SPREAD) * spread) * (below * falls + np.float32(_ABOVE))
        total += np.where(x > 0.0, beam / (x * x + y * y + z * z), np.float32(0.0))
    light = np.float32(0.5 * strength * _SPOT_AS_DAY_M**2) * total
    return np.asarray(_BRIGHTEST * (np.float32(1.0) - np.exp(-light / np.float32(_BRIGHTEST))), np.float32)


#: Lamps exceed their own green and blue by this share of full scale in red, and have this much of it; they are at least
#: so many pixels wide in a picture of 1,280 columns, and at most this share of its width.
_REDDER, _LIT, _LEAST_PX, _WIDEST = 0.3, 0.86, 3, 0.02
#: Lamps are searched for in pictures of about this width.
_SEARCHED_PX = 1280
#: Widths of the bloom's parts in picture widths, and their weights: a sum of Gaussians for the spread of a lens.
_BLOOM = ((0.0035, 0.5), (0.011, 0.3), (0.034, 0.2))


def lamps_in(picture: Picture, cell_px: int) -> Singles:
    """Return the light (h, w, 3), red, green, blue, of red and amber lamps that are on by day, mean of cells.

    Small, red and bright spots: larger ones are paint, smaller ones fringes of colour along edges.
    """
    height, width = (-(-side // cell_px) for side in picture.size)
    found = np.zeros((height * width, 3), np.float32)
    if picture.order == "mono":
        return found.reshape(height, width, 3)
    step = max(1, round(picture.size[1] / _SEARCHED_PX))
    pixels = picture.pixels[: picture.size[0] // step * step, : picture.size[1] // step * step]
    if step > 1:
        pixels = cv2.resize(pixels, None, fx=1.0 / step, fy=1.0 / step, interpolation=cv2.INTER_AREA)
    if pixels.dtype != np.uint8:
        pixels = (pixels >> 8).astype(np.uint8)
    row, column, sure = _spots(*(cv2.extractChannel(pixels, picture.channel(colour)) for colour in "rgb"))
    cell = (row * step + step // 2) // cell_px * width + (column * step + step // 2) // cell_px
    for place, colour in enumerate("rgb" if row.size else ""):
        light = light_in(pixels[row, column, picture.channel(colour)])[..., 0] * sure
        found[:, place] = np.bincount(cell, light, len(found)) * (step / cell_px) ** 2
    return found.reshape(height, width, 3)


def _spots(red: Bytes, green: Bytes, blue: Bytes) -> tuple[Rows, Rows, Singles]:
    """Return rows and columns (n,) of the pixels of planes (h, w) that show a lamp, and how surely, 0 to 1."""
    excess = cv2.subtract(red, cv2.max(cv2.addWeighted(green, 0.6, blue, 0.4, 0.0), blue))
    excess &= cv2.compare(red, 255.0 * _LIT, cv2.CMP_GE)
    least, most = (max(3, round(px * red.shape[1])) | 1 for px in (_LEAST_PX / 1280.0, _WIDEST))
    # What is no redder shows none; what is farther away than the squares below reach does not count.
    part = part_of(excess > 255.0 * _REDDER, 2 * most + 4)
    if part is None:
        return (*np.empty((2, 0), np.int64), np.empty(0, np.float32))
    excess = excess[part]
    whole = cv2.morphologyEx(excess, cv2.MORPH_OPEN, np.ones((least, least), np.uint8))
    wide = cv2.morphologyEx(excess, cv2.MORPH_CLOSE, np.ones((5, 5), np.uint8))
    wide = cv2.morphologyEx(wide, cv2.MORPH_OPEN, np.ones((most, most), np.uint8))
    spot = cv2.subtract(whole, cv2.dilate(wide, np.ones((most, most), np.uint8)))
    spot = cv2.min(cv2.dilate(spot, np.ones((3, 3), np.uint8)), excess)
    row, column = np.nonzero(spot > 255.0 * _REDDER)
    sure = np.minimum((spot[row, column].astype(np.float32) / 255.0 - _REDDER) * np.float32(6.0), 1.0)
    return row + part[0].start, column + part[1].start, sure


def bloom(light: Singles, across: int = 0) -> Singles:
    """Return what a lens spreads of light (h, w, c) around: a sum of Gaussians of several widths.

    ``across``: width of the whole picture, if this is a part of it.
    """
    total, sigmas = np.zeros_like(light), [max(width * (across or light.shape[1]), 0.3) for width, _ in _BLOOM]
    part = part_of(reduce(np.maximum, cv2.split(light)) > 0.0, int(4.0 * max(sigmas)) + 1)
    if part is not None:
        own = light[part]
        for sigma, (_, weight) in zip(sigmas, _BLOOM, strict=True):
            total[part] += np.float32(weight) * _blurred(own, sigma)
    return total


def _blurred(light: Singles, sigma: float) -> Singles:
    """Return light blurred by a Gaussian; wide ones at a fraction of the resolution."""
    step = max(1, int(sigma / 3.0))
    small = light if step == 1 else cv2.resize(light, None, fx=1.0 / step, fy=1.0 / step, interpolation=cv2.INTER_AREA)
    soft = cv2.GaussianBlur(small, (0, 0), sigma / step, borderType=cv2.BORDER_CONSTANT)
    return np.asarray(soft if step == 1 else cv2.resize(soft, light.shape[1::-1], interpolation=cv2.INTER_CUBIC))
