# SPDX-License-Identifier: Apache-2.0
"""Which cells of a picture show the sky, by their colour and by that of what a LiDAR's topmost beams hit."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from mt_nodes.base.arrays import Singles
from mt_nodes.world.camera.light import quantile
from mt_nodes.world.camera.relight import grey

Grid = npt.NDArray[np.int64]
Cells = npt.NDArray[np.bool_]
#: Sky has at least this light, and this share of its brightest part's: assumptions.
_LEAST_SKY, _LIKE_SKY = 0.1, 0.4
#: Leaves that the sun shines through are greener than this, relative to blue light; no sky is (assumed).
_LEAVES = 1.3
#: A wall's light varies by less than this share; a cell that is dimmer than the sky by less than this may be sky.
_ALIKE, _DIMMER = 0.15, 0.8
#: Sky near a cell counts if it is this share of what is near.
_LEAST_NEAR = 0.005
#: Means of light are of every so manieth cell of each row and column.
_COARSE = 4
#: Light of cells that may be clipped.
_CLIPPED = 0.9
#: Columns to each side whose topmost hits belong to the same wall (assumed).
_BESIDE_CELLS = 9
#: Near a cell is a so manieth part of the picture's width on either side.
_AROUND = 8
#: Parts of a picture whose surfaces are looked at together; each with its two neighbours.
_PARTS = 12
#: Steps of colour, of the square root of light, which is about as fine as eyes are.
_STEPS = 32
#: A colour is like those a step up or down from it.
_LIKE = np.stack(np.meshgrid(*[(-1, 0, 1)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)


def sky_in(light: Singles, above: Cells, top: Grid, continues: Cells) -> Cells:
    """Return which cells above all returns look like sky: as bright as its brightest part, not red, not green.

    A cell with the colour of the surface that the column's topmost beams hit, or most of those beside it (a wall with
    windows), is no sky, unless that is as bright as the sky. Nor is one with the colour of any such surface near by,
    unless the sky there has that colour, too, or it is white: a picture cannot tell; white walls before a white sky
    count as sky above the sensor's view.

    Args:
        light: (h, w, 3) of the cells, red, green, blue.
        above: (h, w) the cells in question.
        top: (1, w) each column's topmost measured row.
        continues: (1, w) whether the surface hit there may continue upward.
    """
    high = int(top.max())
    if not high:
        return above
    within = np.s_[:high]  # below, nothing is asked
    hit = _of_hit(light, top)
    looks = _looks_like_sky(light[within], hit, above[within], continues)
    sky = np.zeros(above.shape, bool)
    sky[within] = cv2.medianBlur(looks.astype(np.uint8), 5) != 0
    return sky


def _looks_like_sky(light: Singles, hit: Singles, above: Cells, continues: Cells) -> Cells:
    bright = grey(light)
    some = bright[::2, ::2][above[::2, ::2]]
    reference = max(quantile(some, 0.95) if some.size else 0.0, _LEAST_SKY)
    red, green, blue = planes = cv2.split(light)
    like_sky = above & (bright > _LIKE_SKY * reference) & (blue >= 0.8 * red) & (green <= _LEAVES * blue)
    for wall in (hit, _around(hit)):
        dim = continues & (grey(wall) < _DIMMER * reference)
        if dim.any():
            like_sky &= ~(dim & _alike(planes, wall))
    like_wall = like_sky & (bright < _CLIPPED)
    like_wall[like_wall] = _like_colours(light, like_wall, hit, continues)
    if not like_wall.any():
        return np.asarray(like_sky)
    sky_light = _light_near(light, like_sky & ~like_wall)
    if sky_light is not None:
        like_sky &= ~like_wall | _alike(planes, sky_light)
    return np.asarray(like_sky)


def _light_near(light: Singles, cells: Cells) -> Singles | None:
    """Return the mean light (h, w, 3) of some cells near each cell, of all where there are none; None for no cells."""
    some, few = np.ascontiguousarray(light[::_COARSE, ::_COARSE]), cells[::_COARSE, ::_COARSE]
    if not few.any():
        return None
    size = (2 * (some.shape[1] // _AROUND) + 1,) * 2
    weight = cv2.blur(few.astype(np.float32), size)[..., None]
    near = cv2.blur(some * few[..., None], size) / np.maximum(weight, np.float32(1e-6))
    near = np.where(weight > _LEAST_NEAR, near, some[few].mean(axis=0))
    return np.asarray(cv2.resize(near, light.shape[1::-1]))


def _of_hit(light: Singles, top: Grid) -> Singles:
    """Return the light (1, w, 3) of what each column's topmost return hit: one cell lower, as the topmost may show the
    edge.
    """
    return np.take_along_axis(light, np.minimum(top + 1, light.shape[0] - 1)[..., None], axis=0)


def like_hit(light: Singles, top: Grid) -> Cells:
    """Return which cells (h, w) have the colour of what their column's topmost return hit."""
    return _alike(cv2.split(light), _of_hit(light, top))


def _alike(planes: Sequence[Singles], hit: Singles) -> Cells:
    """Return which cells, by their light (h, w) in three colours, are like a surface (1, w, 3) in their column."""
    of_hit = cv2.split(hit)
    red, green, blue = (np.abs(plane - own) for plane, own in zip(planes, of_hit, strict=True))
    most = np.float32(_ALIKE) * np.maximum(np.maximum(*of_hit[:2]), of_hit[2])
    return np.asarray(np.maximum(np.maximum(red, green), blue) < most)


def _around(hit: Singles) -> Singles:
    """Return the median (1, w, 3) over neighbouring columns: that of a wall where a column's own hit is a window."""
    wide = np.pad(hit[0].T, ((0, 0), (_BESIDE_CELLS, _BESIDE_CELLS)), "edge")
    windows = sliding_window_view(wide, 2 * _BESIDE_CELLS + 1, axis=1)
    return np.ascontiguousarray(np.partition(windows, _BESIDE_CELLS, axis=-1)[..., _BESIDE_CELLS].T)[None]


def _like_colours(light: Singles, cells: Cells, surface: Singles, known: Cells) -> Cells:
    """Return which of some cells (n,) have the colour of a surface of their column or of those near it.

    Args:
        light: (h, w, 3) of all cells. cells: (h, w) those in question.
        surface: (1, w, 3) light of a surface in each column, where it is known (1, w).
    """
    width = cells.shape[1]
    like = _place(np.clip(_steps(surface[0])[:, None] + _LIKE, 0, _STEPS - 1))
    tables = np.zeros((_PARTS, _STEPS**3), bool)
    ends = np.linspace(0, width, _PARTS + 1).astype(int)
    for number, table in enumerate(tables):
        near = slice(ends[max(number - 1, 0)], ends[min(number + 2, _PARTS)])
        table[like[near][known[0, near]]] = True
    cell = np.flatnonzero(cells)
    return np.asarray(tables[cell % width * _PARTS // width, _place(_steps(light.reshape(-1, 3)[cell]))])


def _place(steps: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return the place (…) of steps of colour (…, 3) in a table."""
    return np.asarray((steps[..., 0] * _STEPS + steps[..., 1]) * _STEPS + steps[..., 2])


def _steps(light: Singles) -> npt.NDArray[np.int32]:
    return np.minimum(np.sqrt(light) * np.float32(_STEPS), np.float32(_STEPS - 1)).astype(np.int32)
