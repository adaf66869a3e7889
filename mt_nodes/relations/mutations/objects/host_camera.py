# SPDX-License-Identifier: Apache-2.0
"""What the host camera adds to whatever it sees: blur, colour fringes, noise and its mosaic, measured in its picture.

A sensor behind a mosaic of colour filters (B. Bayer, US patent 3,971,065) has one colour at each pixel, with noise of
its own; the others come from neighbours. So the high-pass residuals of red, green and blue hardly go together, while
those of a rendering are nearly the same: this is what tells one from the other.
"""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np

from mt_nodes.base.arrays import Floats, Mask, Singles
from mt_nodes.data.images.codecs import Picture
from mt_nodes.world.camera.light import quantile
from mt_nodes.world.scene.object_rendering import Window

#: How far around a window the picture is looked at, in pixels; the widest fringe, and the least trust in it.
_AROUND_PX, _FRINGE_PX, _TRUST = 40, 0.8, 0.25
#: Width of the grain in pixels where no mosaic shows: what the camera does to noise then (assumed).
_GRAIN_PX, _TILE_PX = 0.55, 512
#: Side of blocks of pixels, the quantile of them that has noise and no texture, and how many must be left.
_BLOCK_PX, _FLAT, _LEAST_BLOCKS = 8, 0.02, 24
#: How far around a window noise is looked for, in pixels.
_WIDE_PX = 240
#: Samples that show noise, in shares of full scale: in darker ones rounding hides it, brighter ones may be clipped.
_DARKEST, _BRIGHTEST = 0.06, 0.95
#: Standard deviation of what rounding adds to brightness: of three samples, BT.601, and of their sum.
_ROUNDING = float(np.sqrt((0.299**2 + 0.587**2 + 0.114**2 + 1.0) / 12.0))
#: Red in the first row and column (OpenCV names patterns by their second), undone along the weaker gradient.
_DEMOSAIC = cv2.COLOR_BayerBG2RGB_EA
#: Residuals of green agree in sign with those of red and blue less often than this behind a mosaic: 0 by chance.
_MOSAIC = 0.25
#: Immerkær's filter, and third differences along rows and columns.
_THIRD = np.array([[1.0, -3.0, 3.0, -1.0]], np.float32)
_HIGH_PASS = np.array([[1.0, -2.0, 1.0], [-2.0, 4.0, -2.0], [1.0, -2.0, 1.0]], np.float32)
_FILTERS = (_HIGH_PASS, _THIRD, np.ascontiguousarray(_THIRD.T))


def blur_px(picture: Picture, window: Window) -> float:
    """Return the standard deviation in pixels of the camera's blur, measured on the sharpest edges around a window.

    A sharp edge blurred by s, blurred again by 1, has a gradient s / sqrt(s² + 1) times as steep (S. Zhuo and T. Sim,
    Defocus map estimation from a single image, Pattern
    Recognition 44, 2011, pp. 1852-1858).
    """
    rows, columns = (slice(max(0, s.start - _AROUND_PX), s.stop + _AROUND_PX) for s in window)
    luma = picture.with_pixels(picture.pixels[rows, columns]).luma().astype(np.float32)
    blurred = cv2.GaussianBlur(luma, (0, 0), 1.0)
    first, second = (np.abs(np.diff(a, axis=1)) for a in (luma, blurred))
    steep = first >= max(quantile(first[::2, ::2].reshape(-1), 0.99), 1.0)
    if not steep.any():
        return 0.6
    ratio = float(np.median(first[steep] / np.maximum(second[steep], 1e-3)))
    return float(np.clip(1.0 / np.sqrt(max(ratio * ratio - 1.0, 0.2)), 0.45, 1.5))


def noise_level(picture: Picture, window: Window, mosaic: bool) -> float:
    """Return the standard deviation of noise around a window, in the picture's samples.

    It is that of the sensor before a mosaic is undone, else of the picture. Taken for equal at every brightness: that
    of photons grows with the root of light, and a tone curve with a power of 1 / 2.2 makes it L^-0.05.

    J. Immerkær, "Fast noise variance estimation", Computer Vision and Image Understanding 64(2), 1996, on the blocks of
    pixels with the least residual, which have no texture (S. Olsen, "Estimation of noise in images: an evaluation",
    CVGIP 55(4), 1993), without what rounding adds. Noise has no direction, so the least of three filters counts.
    """
    rows, columns = (slice(max(0, s.start - _WIDE_PX), s.stop + _WIDE_PX) for s in window)
    luma = picture.with_pixels(picture.pixels[rows, columns]).luma().astype(np.float32)
    bright = _blocks(luma)
    known = (bright > _DARKEST * picture.full_scale) & (bright < _BRIGHTEST * picture.full_scale)
    if np.count_nonzero(known) < _LEAST_BLOCKS:
        return 0.0
    levels = []
    for number, kernel in enumerate(_FILTERS):
        found, of_rounding, of_one = _flat_residual(luma, kernel, known), *_residuals_of_one(number, mosaic)
        levels.append(float(np.sqrt(max(found**2 - (_ROUNDING * of_rounding) ** 2, 0.0))) / of_one)
    return min(levels)


def _blocks(layer: Singles) -> Singles:
    """Return the means of whole blocks of pixels."""
    width, height = (n // _BLOCK_PX for n in layer.shape[::-1])
    if not min(width, height):
        return np.zeros((0, 0), np.float32)
    whole = layer[: height * _BLOCK_PX, : width * _BLOCK_PX]
    return np.asarray(cv2.resize(whole, (width, height), interpolation=cv2.INTER_AREA))


def _flat_residual(luma: Singles, kernel: Singles, among: Mask | None = None) -> float:
    """Return the high-pass residual of blocks without texture."""
    filtered = cv2.filter2D(luma, cv2.CV_32F, kernel)
    rest = _blocks(np.abs(filtered, out=filtered))
    return quantile(rest.reshape(-1) if among is None else rest[among], _FLAT)


@lru_cache
def _residuals_of_one(number: int, mosaic: bool) -> tuple[float, float]:
    """Return the residual, by a filter, of white noise of standard deviation 1, and of such noise in a picture."""
    kernel = _FILTERS[number]
    if not mosaic:
        return _flat_residual(_white(), kernel), _flat_residual(_tile(), kernel)
    raw = np.rint(1000.0 * _white() + 30000.0).astype(np.uint16)
    luma = cv2.cvtColor(cv2.cvtColor(raw, _DEMOSAIC), cv2.COLOR_RGB2GRAY).astype(np.float32) / 1000.0
    return _flat_residual(_white(), kernel), _flat_residual(luma, kernel)


def has_mosaic(picture: Picture, window: Window) -> bool:
    """Return whether a picture comes from a sensor behind a mosaic of colour filters.

    By the quadrant correlation of its colours' residuals (N. Blomqvist, "On a measure of dependence between two random
    variables", Annals of Mathematical Statistics 21, 1950), to which strong edges count no more than weak noise.
    """
    if picture.order == "mono":
        return False
    rows, columns = (slice(max(0, s.start - _AROUND_PX), s.stop + _AROUND_PX) for s in window)
    planes = cv2.split(picture.pixels[rows, columns])
    depth = cv2.CV_16S if picture.pixels.dtype == np.uint8 else cv2.CV_32F
    red, green, blue = (np.sign(cv2.filter2D(planes[picture.channel(c)], depth, _HIGH_PASS)) for c in "rgb")
    if min(np.count_nonzero(red), np.count_nonzero(green), np.count_nonzero(blue)) < red.size // 4:
        return False  # no noise, or nothing but clipped samples
    return float((green * (red + blue)).mean()) < 2.0 * _MOSAIC


def through_mosaic(colour: Singles, picture: Picture, noise: float, seed: int) -> Singles:
    """Return a layer (h, w, 3 or more) as a sensor with some noise behind a mosaic records it, in its samples.

    The mosaic is undone along the weaker gradient (J. Hamilton, J. Adams, US patent 5,629,734): without that, outlines
    look like a zipper.
    """
    red, green, blue = (picture.channel(name) for name in "rgb")
    raw = colour[..., green].copy()
    raw[::2, ::2], raw[1::2, 1::2] = colour[::2, ::2, red], colour[1::2, 1::2, blue]
    raw += grain(raw.shape, noise, seed, white=True)
    steps = np.float32(65535.0 / picture.full_scale)
    padded = cv2.copyMakeBorder(
        np.clip(raw * steps, 0.0, 65535.0).astype(np.uint16), 2, 2, 2, 2, cv2.BORDER_REFLECT_101
    )
    whole = cv2.cvtColor(padded, _DEMOSAIC)[2:-2, 2:-2].astype(np.float32) / steps
    found = colour.copy()
    found[..., red], found[..., green], found[..., blue] = cv2.split(whole)
    return found


def grain(size: tuple[int, ...], sigma: float, seed: int, white: bool = False) -> Singles:
    """Return noise (h, w) of a standard deviation, the same for the same seed: white, or as wide as a picture's."""
    top, left = (int(v) for v in np.random.Generator(np.random.SFC64(seed % 2**63)).integers(0, _TILE_PX, 2))
    rows, columns = (np.arange(first, first + n) % _TILE_PX for first, n in zip((top, left), size, strict=True))
    return np.asarray((_white() if white else _tile())[rows[:, None], columns] * np.float32(sigma))


@lru_cache
def _white() -> Singles:
    """A tile of noise of mean 0 and standard deviation 1."""
    return np.random.Generator(np.random.SFC64(0)).standard_normal((_TILE_PX, _TILE_PX), dtype=np.float32)


@lru_cache
def _tile() -> Singles:
    """The same, as wide as the camera's grain."""
    soft = cv2.GaussianBlur(np.tile(_white(), (2, 2)), (0, 0), _GRAIN_PX)[8 : _TILE_PX + 8, 8 : _TILE_PX + 8]
    return np.asarray((soft - soft.mean()) / soft.std())


def fringe_px(picture: Picture, window: Window) -> Floats:
    """Return how far red and blue (2, 2: x, y) are shifted against green around a window, by phase correlation.

    C. Kuglin, D. Hines, "The phase correlation image alignment method", IEEE Conference on Cybernetics and Society,
    1975. A weak peak, or a shift above any lens's, counts as none.
    """
    shifts = np.zeros((2, 2))
    if picture.order == "mono":
        return shifts
    rows, columns = window
    middle = (rows.start + rows.stop) // 2, (columns.start + columns.stop) // 2
    top, left = (int(np.clip(m - 64, 0, max(0, n - 128))) for m, n in zip(middle, picture.size, strict=True))
    piece = picture.pixels[top : top + 128, left : left + 128].astype(np.float32)
    if min(piece.shape[:2]) < 32:
        return shifts
    green = np.ascontiguousarray(piece[..., picture.channel("g")])
    hanning = cv2.createHanningWindow(green.shape[::-1], cv2.CV_32F)
    for i, name in enumerate("rb"):
        other = np.ascontiguousarray(piece[..., picture.channel(name)])
        shift, trust = cv2.phaseCorrelate(green, other, hanning)
        if trust > _TRUST and max(map(abs, shift)) < _FRINGE_PX:
            shifts[i] = shift
    return shifts
