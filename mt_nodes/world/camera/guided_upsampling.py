# SPDX-License-Identifier: Apache-2.0
"""Values of coarse cells at every pixel, with edges where the picture has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.data.images.codecs import Picture, Pixels

Singles = npt.NDArray[np.float32]
#: Cells left, right, above and below that a cell's linear model is fitted to.
_REACH = 2
#: Variance of the brightness, in shares of full scale, that counts as flat: noise of 2 % of full scale (assumed).
_FLAT = 0.02**2
#: Pixels on a side of the tiles in which edges are looked for.
_TILE_PX = 64


@dataclass(frozen=True, eq=False)
class _Model:
    """Linear models of the cells (h, w): value + slope × (brightness − the cell's), between least and most."""

    value: Singles
    slope: Singles
    brightness: Singles
    least: Singles
    most: Singles

    @classmethod
    def of(cls, cells: Singles, luma: Pixels, cell_px: int) -> _Model:
        """Fit them by least squares in windows of cells, as the guided filter does."""
        guide = _means(luma, cells.shape, cell_px)
        size = (2 * _REACH + 1,) * 2
        mean, level, product, square = (cv2.blur(a, size) for a in (cells, guide, cells * guide, guide * guide))
        slope = (product - mean * level) / (square - level * level + np.float32(_FLAT))
        near = np.ones((3, 3), np.uint8)
        return cls(cells, cv2.blur(slope, (3, 3)), guide, cv2.erode(cells, near), cv2.dilate(cells, near))

    def at(self, part: tuple[slice, slice], size: tuple[int, int]) -> tuple[Singles, ...]:
        """Return value, slope, brightness, least and most at the pixels (y, x) of a part of the cells."""
        y, x = size
        maps = (self.value, self.slope, self.brightness, self.least, self.most)
        return tuple(np.asarray(cv2.resize(np.ascontiguousarray(a[part]), (x, y))) for a in maps)


def upsample_to_edges(cells: Singles, picture: Picture, cell_px: int, least_step: float) -> Singles:
    """Return the values of cells (h, w) at every pixel (H, W).

    Where values step by ``least_step`` or more, they follow the picture: v + a (I - Ī), where v and the cell's
    brightness Ī are interpolated between the centres of cells, and a is the slope of the guided filter (K. He, J. Sun
    and X. Tang, "Guided Image Filtering", TPAMI 2013), computed at the resolution of the cells ("Fast Guided Filter",
    arXiv 1505.00996). So the mean of a cell stays what it is. Nothing leaves the range of the cells around.
    """
    cells = np.ascontiguousarray(cells, np.float32)
    if cell_px == 1:
        return cells
    rows, columns = cells.shape
    whole = np.asarray(cv2.resize(cells, (columns * cell_px, rows * cell_px)))
    tiles = list(_tiles_with_edges(cells, cell_px, least_step))
    if tiles:
        luma = picture.luma()
        model = _Model.of(cells, luma, cell_px)
        for tile in tiles:
            _follow(whole, luma, model, tile, cell_px)
    return whole[: picture.size[0], : picture.size[1]]


def _follow(whole: Singles, luma: Pixels, model: _Model, tile: tuple[slice, slice], cell_px: int) -> None:
    """Write the values of a tile of cells into those of all pixels."""
    # One cell more on each side, so that what is interpolated does not depend on the tiles.
    wide = tuple(slice(max(0, s.start - 1), s.stop + 1) for s in tile)
    height, width = (min(n, s.stop) - s.start for n, s in zip(model.value.shape, wide, strict=True))
    value, slope, brightness, least, most = model.at(wide, (height * cell_px, width * cell_px))  # type: ignore[arg-type]
    top, left = wide[0].start * cell_px, wide[1].start * cell_px
    own = luma[top : top + height * cell_px, left : left + width * cell_px]
    y, x = own.shape
    light = own.astype(np.float32) * np.float32(1.0 / np.iinfo(luma.dtype).max)
    light -= brightness[:y, :x]
    light *= slope[:y, :x]
    light += value[:y, :x]
    np.clip(light, least[:y, :x], most[:y, :x], out=light)
    rows, columns = (slice(s.start * cell_px, min(n, s.stop * cell_px)) for s, n in zip(tile, luma.shape, strict=True))
    whole[rows, columns] = light[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left]


def _tiles_with_edges(cells: Singles, cell_px: int, least_step: float) -> Iterator[tuple[slice, slice]]:
    """Yield parts of the cells in which neighbours differ by a step or more."""
    near = np.ones((3, 3), np.uint8)
    steps = cv2.dilate(cells, near) - cv2.erode(cells, near)
    side = max(1, _TILE_PX // cell_px)
    for top in range(0, cells.shape[0], side):
        for left in range(0, cells.shape[1], side):
            part = slice(top, min(cells.shape[0], top + side)), slice(left, min(cells.shape[1], left + side))
            if steps[part].max() >= least_step:
                yield part


def _means(luma: Pixels, shape: tuple[int, ...], cell_px: int) -> Singles:
    """Return the mean brightness (h, w) of cells, in shares of full scale."""
    bottom, right = (n * cell_px - own for n, own in zip(shape, luma.shape, strict=True))
    if bottom or right:
        luma = cv2.copyMakeBorder(luma, 0, bottom, 0, right, cv2.BORDER_REPLICATE)
    small = cv2.resize(luma, (shape[1], shape[0]), interpolation=cv2.INTER_AREA)
    return np.asarray(small, np.float32) / np.float32(np.iinfo(luma.dtype).max)
