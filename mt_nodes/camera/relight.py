# SPDX-License-Identifier: Apache-2.0
"""Pictures in another light: gain and offset of each pixel's light, told coarsely."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.camera.codecs import Picture, Pixels
from mt_nodes.camera.light import light_of, values_of

Singles = npt.NDArray[np.float32]
#: Steps that light is rounded to on its way back to values of 8 bits: finer than they are, even near black.
_LEVELS = 65535
#: Rows that are computed at a time, so that they fit the processor's cache.
_STRIPE = 32
#: Relative brightness of red, green and blue light (BT.709, the primaries of sRGB).
BRIGHTNESS = (0.2126, 0.7152, 0.0722)


def relit(picture: Picture, gain: Singles, offset: Singles, cell_px: int) -> Pixels:
    """Return the pixels of a picture whose light is multiplied by a gain, and added to.

    Light is that of the sRGB transfer function; what exceeds full scale is white.

    Args:
        picture: what was seen.
        gain, offset: (h, w) or (h, w, 3) red, green, blue; of light as a share of full scale, cell by cell. Between
            the middles of cells they are interpolated.
        cell_px: width and height of a cell in pixels, 1 for maps as large as the picture.
    """
    gains, offsets = (_stretched(_in_order(m, picture.order), picture, cell_px) for m in (gain, offset))
    out = np.empty_like(picture.pixels)
    for start in range(0, picture.size[0], _STRIPE):
        rows = slice(start, min(start + _STRIPE, picture.size[0]))
        light = _light(picture.pixels[rows])
        cv2.multiply(light, _alike(gains[rows], light), dst=light)
        cv2.add(light, _alike(offsets[rows], light), dst=light)
        out[rows] = _values(light, picture.pixels.dtype)
    return out


def grey(light: Singles) -> Singles:
    """Return the brightness (h, w) of light (h, w, 3), red, green, blue."""
    return np.asarray(light @ np.array(BRIGHTNESS, np.float32))


def coarse_light(picture: Picture, shape: tuple[int, int], cell_px: int) -> Singles:
    """Return the mean light (h, w, 3), red, green, blue, of the cells of a picture."""
    height, width = shape
    padded = picture.rgb8()
    bottom, right = height * cell_px - padded.shape[0], width * cell_px - padded.shape[1]
    if bottom or right:
        padded = cv2.copyMakeBorder(padded, 0, bottom, 0, right, cv2.BORDER_REPLICATE)
    # The mean of values is darker than that of light, by little within a cell.
    return _light(np.asarray(cv2.resize(padded, (width, height), interpolation=cv2.INTER_AREA)))


def _in_order(cells: Singles, order: str) -> Singles:
    """Return maps with their channels as the picture has them; one channel is for all."""
    if cells.ndim == 2:
        return np.ascontiguousarray(cells, np.float32)
    if order == "mono":
        return np.ascontiguousarray(grey(cells))
    return np.ascontiguousarray(cells if order == "rgb" else cells[..., ::-1], np.float32)


def _stretched(cells: Singles, picture: Picture, cell_px: int) -> Singles:
    """Return the values of cells at every pixel, interpolated."""
    if cell_px == 1:
        return cells
    size = cells.shape[1] * cell_px, cells.shape[0] * cell_px
    return np.asarray(cv2.resize(cells, size))[: picture.size[0], : picture.size[1]]


def _alike(part: Singles, light: Singles) -> Singles:
    """Return a map with as many channels as the light has."""
    return part if part.ndim == light.ndim else np.asarray(cv2.merge((part, part, part)))


@lru_cache(maxsize=4)
def _light_table(dtype: np.dtype[Any]) -> Singles:
    top = int(np.iinfo(dtype).max)
    return light_of(np.arange(top + 1) / top).astype(np.float32)


@lru_cache(maxsize=4)
def _value_table(dtype: np.dtype[Any]) -> Pixels:
    return np.asarray(np.rint(values_of(np.arange(_LEVELS + 1) / _LEVELS) * np.iinfo(dtype).max).astype(dtype))


def _light(pixels: Pixels) -> Singles:
    table = _light_table(pixels.dtype)
    return np.asarray(cv2.LUT(pixels, table)) if pixels.dtype == np.uint8 else table[pixels]


def _values(light: Singles, dtype: np.dtype[Any]) -> Pixels:
    if dtype != np.uint8:
        return np.asarray(np.rint(values_of(light) * np.iinfo(dtype).max).astype(dtype))
    np.clip(light, 0.0, 1.0, out=light)
    light *= np.float32(_LEVELS)
    return np.asarray(cv2.LUT(light.astype(np.uint16), _value_table(dtype)))
