# SPDX-License-Identifier: Apache-2.0
"""Values of coarse cells at every pixel, with edges where the picture has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Singles
from mt_nodes.data.images.codecs import Picture, Pixels

Words = npt.NDArray[np.uint16]
Part = tuple[slice, slice]
#: Cells left, right, above and below that a cell's linear model is fitted to.
_REACH = 2
#: Variance of the brightness, in shares of full scale, that counts as flat: noise of 2 % of full scale (assumed).
_FLAT = 0.02**2
#: Pixels on a side of the tiles in which edges are looked for.
_TILE_PX = 48
_LEVELS = np.float32(65535.0)


@dataclass(frozen=True, eq=False)
class _Model:
    """Linear models of cells (h, w): slope × brightness + base, between least and most; all in 65,535ths."""

    slope: Singles
    base: Singles
    least: Singles
    most: Singles

    @classmethod
    def of(cls, cells: Singles, luma: Pixels, cell_px: int) -> _Model:
        """Fit them by least squares in windows of cells."""
        value, guide = cells * _LEVELS, _means(luma, cells.shape, cell_px)
        size, near, full = (2 * _REACH + 1,) * 2, np.ones((3, 3), np.uint8), np.float32(np.iinfo(luma.dtype).max)
        mean, level, product, square = (cv2.blur(a, size) for a in (value, guide, value * guide, guide * guide))
        flat = np.float32(_FLAT) * full * full
        slope = cv2.blur((product - mean * level) / (square - level * level + flat), (3, 3))
        # So the mean of each cell stays what it is.
        return cls(slope, value - slope * guide, cv2.erode(value, near), cv2.dilate(value, near))

    def at(self, luma: Pixels, part: Part, cell_px: int) -> Words:
        """Return the values at the pixels of a part of the cells, as far as the picture reaches."""
        rows, columns = part
        own = luma[rows.start * cell_px : rows.stop * cell_px, columns.start * cell_px : columns.stop * cell_px]
        size = (columns.stop - columns.start) * cell_px, (rows.stop - rows.start) * cell_px
        slope, base, least, most = (
            cv2.resize(a[part], size)[: own.shape[0], : own.shape[1]]
            for a in (self.slope, self.base, self.least, self.most)
        )
        value = cv2.add(cv2.multiply(slope, own, dtype=cv2.CV_32F), base)
        return np.asarray(cv2.min(cv2.max(value, least), most)).astype(np.uint16)


def follow_edges(values: Words, cells: Singles, picture: Picture, cell_px: int, least_step: float) -> None:
    """Write the values of cells (h, w) into those of pixels (H, W), in 65,535ths, wherever an edge is near.

    Where neighbouring cells differ by ``least_step`` or more, pixels follow the picture by the guided filter (K. He, J.
    Sun and X. Tang, "Guided Image Filtering", TPAMI 2013), whose linear models are fitted at the resolution of the
    cells (K. He and J. Sun, "Fast Guided Filter", arXiv 1505.00996). Nothing leaves the range of the cells around.
    """
    tiles = list(_tiles_with_edges(cells, tile_cells(cell_px), least_step)) if cell_px > 1 else []
    if not tiles:
        return
    luma = picture.luma()
    model, (height, width) = _Model.of(cells, luma, cell_px), luma.shape
    for rows, columns in tiles:
        # One cell more on each side, so that what is interpolated does not depend on the tiles.
        top, left = max(0, rows.start - 1), max(0, columns.start - 1)
        wide = slice(top, min(cells.shape[0], rows.stop + 1)), slice(left, min(cells.shape[1], columns.stop + 1))
        new = model.at(luma, wide, cell_px)
        y, x = (slice(s.start * cell_px, min(n, s.stop * cell_px)) for s, n in ((rows, height), (columns, width)))
        top, left = top * cell_px, left * cell_px
        values[y, x] = new[y.start - top : y.stop - top, x.start - left : x.stop - left]


def tile_cells(cell_px: int) -> int:
    """Return the cells on a side of the tiles in which edges are looked for."""
    return max(1, _TILE_PX // cell_px)


def _tiles_with_edges(cells: Singles, side: int, least_step: float) -> Iterator[Part]:
    """Yield parts of the cells in which neighbours differ by a step or more; those of a row that adjoin are one."""
    near = np.ones((3, 3), np.uint8)
    steps = (cv2.dilate(cells, near) - cv2.erode(cells, near) >= least_step).astype(np.uint8)
    height, width = cells.shape
    padded = np.pad(steps, ((0, -height % side), (0, -width % side)))
    has = np.asarray(padded.reshape(len(padded) // side, side, -1, side).any(axis=(1, 3)))
    for row, tiles in enumerate(has):
        changes = np.flatnonzero(np.diff(np.pad(tiles.astype(np.int8), 1)))
        for first, last in changes.reshape(-1, 2).tolist():
            yield slice(row * side, min(height, (row + 1) * side)), slice(first * side, min(width, last * side))


def _means(luma: Pixels, shape: tuple[int, ...], cell_px: int) -> Singles:
    """Return the mean brightness (h, w) of cells, in the samples' own steps."""
    bottom, right = (n * cell_px - own for n, own in zip(shape, luma.shape, strict=True))
    if bottom or right:
        luma = cv2.copyMakeBorder(luma, 0, bottom, 0, right, cv2.BORDER_REPLICATE)
    return np.asarray(cv2.resize(luma, (shape[1], shape[0]), interpolation=cv2.INTER_AREA), np.float32)
