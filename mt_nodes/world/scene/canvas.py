# SPDX-License-Identifier: Apache-2.0
"""Draws flat faces in metres, at four times their resolution, so that edges are smooth."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Singles

Rgb = tuple[float, float, float]
Point = tuple[float, float]

#: Pixels of a face's longer side, and the drawing's resolution relative to that.
_KEPT_PX, _FINER = 320, 4
_FONT, _SHIFT = cv2.FONT_HERSHEY_DUPLEX, 4


class Canvas:
    """A face of a size in metres: x to the viewer's right, y up, origin in the centre. Colours are linear."""

    def __init__(self, size_m: Point, ground: Rgb) -> None:
        self._size_m = size_m
        self._per_m = _KEPT_PX * _FINER / max(size_m)
        width, height = (round(s * self._per_m / _FINER) * _FINER for s in size_m)
        self._pixels = np.empty((height, width, 3), np.float32)
        self._pixels[:] = ground

    def disc(self, center: Point, radius_m: float, colour: Rgb) -> None:
        """Fill a disc."""
        x, y = self._px([center])[0]
        radius = round(radius_m * self._per_m * (1 << _SHIFT))
        cv2.circle(self._pixels, (int(x), int(y)), radius, colour, -1, cv2.LINE_AA, _SHIFT)

    def polygon(self, corners: Sequence[Point], colour: Rgb) -> None:
        """Fill a polygon, which need not be convex."""
        cv2.fillPoly(self._pixels, [self._px(corners)], colour, cv2.LINE_AA, _SHIFT)

    def line(self, points: Sequence[Point], width_m: float, colour: Rgb) -> None:
        """Draw a line with round ends through points."""
        for a, b in pairwise(points):
            along = np.subtract(b, a)
            across = np.array([-along[1], along[0]]) * width_m / 2.0 / max(float(np.hypot(*along)), 1e-9)
            self.polygon([tuple(np.add(p, s * across)) for p, s in ((a, 1), (b, 1), (b, -1), (a, -1))], colour)
        for point in points:
            self.disc(point, width_m / 2.0, colour)

    def text(self, words: str, center: Point, height_m: float, width_m: float, colour: Rgb, bold: float = 0.2) -> None:
        """Write capitals and digits of a height, narrower where they would be wider than ``width_m``."""
        tall = height_m * self._per_m
        scale = tall / 21.0  # a capital of this font is 21 pixels high at scale 1
        thick = max(1, round(bold * tall))
        (wide, _), _ = cv2.getTextSize(words, _FONT, scale, thick)
        tile = np.zeros((round(tall) + 2 * thick, wide + 2 * thick), np.float32)
        cv2.putText(tile, words, (thick, round(tall) + thick), _FONT, scale, 1.0, thick, cv2.LINE_AA)
        used = np.flatnonzero(tile.any(axis=0))
        tile = tile[:, used[0] : used[-1] + 1]
        narrow = min(1.0, width_m * self._per_m / tile.shape[1])
        tile = cv2.resize(tile, (max(1, round(tile.shape[1] * narrow)), tile.shape[0]), interpolation=cv2.INTER_AREA)
        self._draw_tile(tile, center, colour)

    def face(self) -> Singles:
        """Return the face (h, w, 3) at its final resolution."""
        height, width = (n // _FINER for n in self._pixels.shape[:2])
        return np.asarray(cv2.resize(self._pixels, (width, height), interpolation=cv2.INTER_AREA))

    def _draw_tile(self, tile: Singles, center: Point, colour: Rgb) -> None:
        """Draw a colour where a tile, clipped at the edges of the face, is 1."""
        x, y = (int(v) >> _SHIFT for v in self._px([center])[0])
        top, left = y - tile.shape[0] // 2, x - tile.shape[1] // 2
        rows, columns = self._pixels.shape[:2]
        tile = tile[max(0, -top) : rows - top, max(0, -left) : columns - left]
        part = self._pixels[max(0, top) :, max(0, left) :][: tile.shape[0], : tile.shape[1]]
        part += tile[..., None] * (np.array(colour, np.float32) - part)

    def _px(self, points: Sequence[Point]) -> npt.NDArray[np.int32]:
        """Return pixels in OpenCV's fixed-point format."""
        x, y = np.asarray(points, np.float64).T
        width, height = self._size_m
        places = np.column_stack([x + width / 2.0, height / 2.0 - y]) * self._per_m - 0.5
        return np.asarray(np.rint(places * (1 << _SHIFT)), np.int32)
