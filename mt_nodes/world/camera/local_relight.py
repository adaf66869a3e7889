# SPDX-License-Identifier: Apache-2.0
"""Pictures in another light, by the ends of cells: each pixel changes in proportion between a dark and a bright sample.

Within a cell and its neighbours, the new samples are a linear function of the old ones, exact at both ends. This is the
local linear model of the guided filter (K. He, J. Sun, X. Tang, ECCV 2010), and takes one multiplication and one
addition of bytes for each sample of a picture, whatever happened to the light.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Singles
from mt_nodes.data.images.codecs import Picture, Pixels
from mt_nodes.world.camera.diffuse_light import brightness, sample_shares

#: Slope and level (h, w) of cells.
Line = tuple[Singles, Singles]
#: Steepest slope between the ends: flatter dark areas show less noise, and the byte of a slope is finer.
_STEEPEST = 2.0
#: Rows of cells that are computed at a time, so that what lies between fits the processor's cache.
_STRIPE_CELLS = 54


def relit_locally(picture: Picture, samples: Singles, light: Singles, cell_px: int, negative: bool = False) -> Pixels:
    """Return the pixels of a picture whose cells have another light.

    Args:
        picture: the original picture.
        samples: (3, 2, h, w) red, green, blue of the dark and the bright end of each cell, in shares of full scale.
        light: (3, 2, h, w) their new light, in shares of full scale; above it is white.
        cell_px: width and height of a cell in pixels.
        negative: whether the bright end may become darker than the dark one; else both get their mean.
    """
    if picture.order == "mono":
        samples, light = brightness(samples)[None], brightness(light)[None]
    order = slice(None, None, -1) if picture.order == "bgr" else slice(None)
    lines = [_line(*pair, negative) for pair in zip(samples[order], light[order], strict=True)]
    return (_on_bytes if picture.pixels.dtype == np.uint8 else _on_words)(picture, lines, cell_px)


def _line(samples: Singles, light: Singles, negative: bool) -> Line:
    """Return the line of new samples over old ones, of one colour's ends (2, h, w) and their new light."""
    (dark, bright), (new_dark, new_bright) = samples, sample_shares(light)
    slope = (new_bright - new_dark) / np.maximum(bright - dark, np.float32(1e-3))
    before, after = np.float32(0.5) * (dark + bright), np.float32(0.5) * (new_dark + new_bright)
    # The line of bytes begins at black or above, and no higher than white where bright turns dark.
    most = np.minimum(after / np.maximum(before, np.float32(1e-3)), np.float32(_STEEPEST))
    least = np.float32(0.0)
    if negative:
        least = np.maximum((after - np.float32(1.0)) / np.maximum(before, np.float32(1e-3)), np.float32(-_STEEPEST))
    np.clip(slope, least, most, out=slope)
    return slope, after - slope * before


def _on_bytes(picture: Picture, lines: Sequence[Line], cell_px: int) -> Pixels:
    """Multiply and add in bytes, so many rows at a time; where bright turns dark, subtract."""
    pixels, scale, out = picture.pixels, 255.0 / _STEEPEST, np.empty_like(picture.pixels)
    slopes = cv2.merge([_bytes(slope, scale) for slope, _ in lines])
    levels = cv2.merge([_bytes(level, 255.0) for _, level in lines])
    falls = None
    if any(slope.min() < -0.5 / scale for slope, _ in lines):
        falls = cv2.merge([_bytes(slope, -scale) for slope, _ in lines])
    for first in range(0, len(slopes), _STRIPE_CELLS):
        rows, at = stripe(slice(first, first + _STRIPE_CELLS), picture, cell_px)
        old, new = pixels[rows], out[rows]
        cv2.multiply(old, at(slopes), dst=new, scale=1.0 / scale)
        cv2.add(new, at(levels), dst=new)
        if falls is not None and falls[max(first - 1, 0) : first + _STRIPE_CELLS + 1].any():
            cv2.subtract(new, cv2.multiply(old, at(falls), scale=1.0 / scale), dst=new)
    return out


def stripe(cells: slice, picture: Picture, cell_px: int) -> tuple[slice, Callable[[Pixels], Pixels]]:
    """Return rows of pixels for some rows of cells, and what interpolates the cells' values at these pixels."""
    height, width = picture.size
    rows = slice(cells.start * cell_px, min(cells.stop * cell_px, height))
    top = max(cells.start - 1, 0)  # one cell more on each side, so that what is interpolated has no seams
    skip = (cells.start - top) * cell_px

    def at(values: Pixels) -> Pixels:
        some = values[top : cells.stop + 1]
        whole = cv2.resize(some, (some.shape[1] * cell_px, len(some) * cell_px))
        return np.asarray(whole[skip : skip + rows.stop - rows.start, :width])

    return rows, at


def _bytes(cells: Singles, scale: float) -> Pixels:
    """Return values of cells as bytes, clipped."""
    return np.asarray(cv2.addWeighted(cells, scale, cells, 0.0, 0.0, dtype=cv2.CV_8U))


def _on_words(picture: Picture, lines: Sequence[Line], cell_px: int) -> Pixels:
    pixels, top = picture.pixels, float(picture.full_scale)
    slope, level = (np.asarray(cv2.merge(planes)) for planes in zip(*lines, strict=True))
    new = pixels * _stretched(slope, picture, cell_px) + _stretched(level * np.float32(top), picture, cell_px)
    return np.asarray(np.rint(np.clip(new, 0.0, top)).astype(pixels.dtype))


def _stretched(cells: npt.NDArray[Any], picture: Picture, cell_px: int) -> npt.NDArray[Any]:
    """Return the values of cells at every pixel, interpolated, in the shape of the picture."""
    size = cells.shape[1] * cell_px, cells.shape[0] * cell_px
    whole = np.asarray(cv2.resize(cells, size))[: picture.size[0], : picture.size[1]]
    return np.ascontiguousarray(whole).reshape(picture.pixels.shape)
