# SPDX-License-Identifier: Apache-2.0
"""Pictures in another light: gain and offset of each pixel's light, at coarse resolution."""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Singles
from mt_nodes.data.images.codecs import Picture, Pixels
from mt_nodes.world.camera.guided_upsampling import follow_edges
from mt_nodes.world.camera.light import light_of, values_of

Words = npt.NDArray[np.uint16]
#: Resolution of light on its way back to 8-bit values: finer than they are, even near black.
_LEVELS = 65535
#: Rows that are computed at a time, so that they fit the processor's cache.
_STRIPE = 64
#: Bytes of a cell of this width add up to 16 bits.
_WIDEST_CELL_PX = 16
#: Relative brightness of red, green and blue light (BT.709, the primaries of sRGB).
BRIGHTNESS = (0.2126, 0.7152, 0.0722)


def relit(picture: Picture, gain: Singles, offset: Singles, cell_px: int) -> Pixels:
    """Return the pixels of a picture whose light is multiplied by a gain, plus an offset.

    Light follows the sRGB transfer function; light above full scale is white.

    Args:
        picture: the original picture.
        gain, offset: (h, w) or (h, w, 3) red, green, blue; of light as a share of full scale, per cell. Between the
            centres of cells they are interpolated.
        cell_px: width and height of a cell in pixels, 1 for maps as large as the picture.
    """
    gain, offset = (_in_order(m, picture.order) for m in (gain, offset))
    return (_relit_bytes if picture.pixels.dtype == np.uint8 else _relit_words)(picture, gain, offset, cell_px)


def _relit_bytes(picture: Picture, gain: Singles, offset: Singles, cell_px: int) -> Pixels:
    """Compute in integers, 65,535 for full scale: the darkest step of 8 bits is 20 of them."""
    most = max(float(gain.max()), 1e-6)
    gains = _stretched(words_of(gain, most), picture, cell_px)
    offsets = _stretched(words_of(offset), picture, cell_px)
    lights = words_of(_light_table(picture.pixels.dtype))
    out = np.empty_like(picture.pixels)
    stripe = np.empty_like(picture.pixels[:_STRIPE], np.uint16)
    for start in range(0, picture.size[0], _STRIPE):
        rows = slice(start, min(start + _STRIPE, picture.size[0]))
        light = stripe[: rows.stop - start]
        cv2.LUT(picture.pixels[rows], lights, dst=light)
        cv2.multiply(light, _like_light(gains[rows], light), dst=light, scale=most / _LEVELS)
        cv2.add(light, _like_light(offsets[rows], light), dst=light)
        cv2.LUT(light, _byte_table(), dst=out[rows])
    return out


def _relit_words(picture: Picture, gain: Singles, offset: Singles, cell_px: int) -> Pixels:
    """Compute in single precision, and convert back by the formula: 16 bits of light would be too few."""
    gains, offsets = (_stretched(m, picture, cell_px) for m in (gain, offset))
    out = np.empty_like(picture.pixels)
    for start in range(0, picture.size[0], _STRIPE):
        rows = slice(start, min(start + _STRIPE, picture.size[0]))
        light = light_in(picture.pixels[rows])
        cv2.multiply(light, _like_light(gains[rows], light), dst=light)
        cv2.add(light, _like_light(offsets[rows], light), dst=light)
        out[rows] = samples_of(light, picture.pixels.dtype)
    return out


def blended(picture: Picture, share: Singles, other: Singles, cell_px: int, least_step: float | None = None) -> Pixels:
    """Return the pixels of a picture blended with other light: I g + A (1 - g).

    As :func:`relit` with g for the gain and A (1 - g) for the offset, in half the time for 8-bit samples.

    Args:
        picture: the original picture.
        share: (h, w) 0 to 1, per cell; between the centres of cells it is interpolated.
        other: (3,) red, green, blue; light as a share of full scale.
        cell_px: width and height of a cell in pixels.
        least_step: where neighbouring cells differ by this share or more, its edges follow the picture's
            (:func:`~mt_nodes.world.camera.guided_upsampling.follow_edges`); None: nowhere.
    """
    share = np.ascontiguousarray(share, np.float32)
    shares = _stretched(words_of(share), picture, cell_px)
    if least_step is not None:
        follow_edges(shares, share, picture, cell_px, least_step)
    if picture.pixels.dtype != np.uint8:
        passing = shares.astype(np.float32) / np.float32(_LEVELS) if cell_px > 1 else share
        return relit(picture, passing, (np.float32(1.0) - passing)[..., None] * other, 1)
    level_of, tables = _blending(_in_order(other[None, None], picture.order).reshape(-1))
    out = np.empty_like(picture.pixels)
    for start in range(0, picture.size[0], _STRIPE):
        part, result = picture.pixels[start : start + _STRIPE], out[start : start + _STRIPE]
        level = cv2.LUT(shares[start : start + _STRIPE], level_of)
        if len(tables) > 1:
            planes = zip(cv2.split(part), tables, strict=True)
            cv2.merge([cv2.LUT(_places(plane, level), table) for plane, table in planes], dst=result)
        else:
            flat, levels = part.reshape(len(part), -1), _like_light(level, part).reshape(len(part), -1)
            cv2.LUT(_places(flat, levels), tables[0], dst=result.reshape(flat.shape))
    return out


def covered(picture: Picture, share: Words, other: Words) -> Pixels:
    """Return the pixels of a picture of each of which a share (H, W) shows other light (H, W, 3), red, green, blue.

    In linear light; share and light are in 65,535ths. Pixels of no share stay.
    """
    if picture.pixels.dtype != np.uint8:
        scale = np.float32(1.0 / _LEVELS)
        passing = np.float32(1.0) - share * scale
        new = relit(picture, passing, other * (share * scale * scale)[..., None], 1)
        return np.where(share[..., None] if new.ndim == 3 else share, new, picture.pixels)
    lights, out = words_of(_light_table(picture.pixels.dtype)), np.empty_like(picture.pixels)
    for start in range(0, picture.size[0], _STRIPE):
        rows = slice(start, start + _STRIPE)
        light, beyond, some = cv2.LUT(picture.pixels[rows], lights), other[rows], share[rows]
        if picture.order == "mono":
            beyond = cv2.transform(beyond, np.array([BRIGHTNESS]))
        elif picture.order == "bgr":
            beyond = cv2.cvtColor(beyond, cv2.COLOR_RGB2BGR)
        rest = _like_light(cv2.bitwise_not(some), light)
        cv2.multiply(light, rest, dst=light, scale=1.0 / _LEVELS)
        cv2.add(light, cv2.multiply(beyond, _like_light(some, light), scale=1.0 / _LEVELS), dst=light)
        cv2.LUT(light, _byte_table(), dst=out[rows])
    return out


def _places(samples: Pixels, level: Pixels) -> Words:
    """Return indices into a table of levels and samples (h, w): the high and the low byte."""
    return np.asarray(cv2.merge((samples, level)).view("<u2")[..., 0])


def _blending(other: Singles) -> tuple[Pixels, list[Pixels]]:
    """Return the level (65536,) of each integer share, and the byte of each level and sample (65536,).

    The latter for each channel, or one for all of them.

    The 256 levels are densest where the share matters most: for a black or a white sample. So the step between levels
    is about one byte at most, plus half of that for rounding.
    ``other``: (c,) the light to blend in.
    """
    even = np.linspace(0.0, 1.0, 257)
    fine = even * even * (3.0 - 2.0 * even)  # densest at both ends, where dark light is
    dark_or_bright = np.array([[0.0], [1.0]])
    ends = values_of(other[:, None, None] + fine * (dark_or_bright - other[:, None, None]))
    matters = np.abs(np.diff(ends)).max(axis=(0, 1)) + 1e-9
    so_far = np.concatenate([[0.0], np.cumsum(matters)]) * (255.0 / matters.sum())
    level_of = np.repeat(np.rint(np.interp((np.arange(4096) + 0.5) / 4096.0, fine, so_far)).astype(np.uint8), 16)
    share = np.interp(np.arange(256), so_far, fine).astype(np.float32)[:, None]
    scaled = _light_table(np.dtype(np.uint8)) * share
    rest = np.float32(1.0) - share
    different = other if np.ptp(other) > 0.0 else other[:1]
    return level_of, [cv2.LUT(words_of(scaled + rest * light), _byte_table()).reshape(-1) for light in different]


def light_in(pixels: Pixels) -> Singles:
    """Return the light, in shares of full scale, of samples of 8 or 16 bits, in their shape."""
    table = _light_table(pixels.dtype)
    return np.asarray(cv2.LUT(pixels, table)) if pixels.dtype == np.uint8 else table[pixels]


def samples_of(light: Singles, dtype: np.dtype[Any]) -> Pixels:
    """Return the samples of 8 or 16 bits of light, in its shape; light above full scale is white."""
    if dtype == np.uint8:
        return np.asarray(cv2.LUT(words_of(light), _byte_table()))
    return np.asarray(np.rint(values_of(light) * np.iinfo(dtype).max).astype(dtype))


def grey(light: Singles) -> Singles:
    """Return the brightness (h, w) of light (h, w, 3), red, green, blue."""
    weights = np.array(BRIGHTNESS, np.float32)
    # OpenCV's takes no threads, whose waiting costs as much time again.
    return np.asarray(cv2.transform(light, weights[None]) if light.ndim == 3 and light.size else light @ weights)


_coarse: WeakKeyDictionary[Picture, dict[int, tuple[npt.NDArray[np.uint8], Singles]]] = WeakKeyDictionary()


def coarse_light(picture: Picture, shape: tuple[int, int], cell_px: int) -> Singles:
    """Return the mean light (h, w, 3), red, green, blue, of the cells of a picture; cached."""
    return _coarse_cells(picture, shape, cell_px)[1]


def coarse_samples(picture: Picture, shape: tuple[int, int], cell_px: int) -> npt.NDArray[np.uint8]:
    """Return the mean samples (h, w, 3), red, green, blue in 8 bits, of the cells of a picture; cached."""
    return _coarse_cells(picture, shape, cell_px)[0]


def _coarse_cells(picture: Picture, shape: tuple[int, int], cell_px: int) -> tuple[npt.NDArray[np.uint8], Singles]:
    known = _coarse.setdefault(picture, {})
    if cell_px not in known:
        samples = _mean_samples(picture, shape, cell_px)
        # The mean of values is slightly darker than that of light within a cell.
        known[cell_px] = samples, light_in(samples)
        for cells in known[cell_px]:
            cells.flags.writeable = False
    return known[cell_px]


def _mean_samples(picture: Picture, shape: tuple[int, int], cell_px: int) -> npt.NDArray[np.uint8]:
    height, width = shape
    small = np.empty((*shape, *picture.pixels.shape[2:]), picture.pixels.dtype)
    whole = picture.size[0] // cell_px
    for rows in (slice(0, whole), slice(whole, height)):  # apart, since only cells beyond an edge need a copy
        part = picture.pixels[rows.start * cell_px : rows.stop * cell_px]
        bottom, right = (rows.stop - rows.start) * cell_px - len(part), width * cell_px - part.shape[1]
        if len(part) and (bottom or right):
            part = cv2.copyMakeBorder(part, 0, bottom, 0, right, cv2.BORDER_REPLICATE)
        if len(part):
            small[rows] = means_of_cells(part, cell_px)
    return Picture(small, picture.order).rgb8()


def means_of_cells(pixels: Pixels, cell_px: int) -> npt.NDArray[Any]:
    """Return the rounded means of cells of pixels (H, W) or (H, W, c): the very ones of OpenCV's ``INTER_AREA``.

    That is slow in reading tall cells: rows of bytes are added before, times their number, so that no sum is rounded.
    """
    height, width = (side // cell_px for side in pixels.shape[:2])
    if pixels.itemsize > 1 or not 2 < cell_px <= _WIDEST_CELL_PX:
        return np.asarray(cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA))
    sums = np.add.reduce(pixels.reshape(height, cell_px, -1), axis=1, dtype=np.uint16)
    sums *= np.uint16(cell_px)
    sums = cv2.resize(sums.reshape(height, *pixels.shape[1:]), (width, height), interpolation=cv2.INTER_AREA)
    return np.asarray(np.rint(sums * np.float32(1.0 / cell_px**2)))


def _in_order(cells: Singles, order: str) -> Singles:
    """Return maps with the picture's channel order; a single channel serves all."""
    if cells.ndim == 2:
        return np.ascontiguousarray(cells, np.float32)
    if order == "mono":
        return np.ascontiguousarray(grey(cells))
    return np.ascontiguousarray(cells if order == "rgb" else cells[..., ::-1], np.float32)


def words_of(shares: Singles, full_scale: float = 1.0) -> Words:
    """Return shares of full scale as 16 bits, clipped."""
    return np.asarray(cv2.addWeighted(shares, _LEVELS / full_scale, shares, 0.0, 0.0, dtype=cv2.CV_16U)).reshape(
        shares.shape
    )


def _stretched(cells: npt.NDArray[Any], picture: Picture, cell_px: int) -> npt.NDArray[Any]:
    """Return the values of cells at every pixel, interpolated."""
    if cell_px == 1:
        return cells
    size = cells.shape[1] * cell_px, cells.shape[0] * cell_px
    return np.asarray(cv2.resize(cells, size))[: picture.size[0], : picture.size[1]]


def _like_light(part: npt.NDArray[Any], light: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a map with as many channels as the light has."""
    return part if part.ndim == light.ndim else np.asarray(cv2.merge((part, part, part)))


@lru_cache(maxsize=4)
def _light_table(dtype: np.dtype[Any]) -> Singles:
    top = int(np.iinfo(dtype).max)
    return light_of(np.arange(top + 1) / top).astype(np.float32)


@lru_cache(maxsize=1)
def _byte_table() -> Pixels:
    """Return the 8-bit value of each integer light level."""
    return np.asarray(np.rint(values_of(np.arange(_LEVELS + 1) / _LEVELS) * 255.0).astype(np.uint8))
