# SPDX-License-Identifier: Apache-2.0
"""Ranges above a LiDAR's topmost beams, where only the picture tells which surface goes on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Mask, Singles
from mt_nodes.world.camera.depth_completion import Colours, flooded
from mt_nodes.world.camera.upper_edges import NEAR_M, upper_edges

Grid = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int32]

#: Neighbouring columns whose topmost ranges differ by less than this factor show one surface (assumed).
_ONE_SURFACE = np.float32(1.25)
#: A topmost return beyond this share of the farthest ranges is of the background; so many cells above it are, too.
_DISTANT, _SEED_ROWS = 0.4, 6
#: A surface reaches no farther aside, above the beams, than this share of its width there, and some cells, as trees do;
#: a post, and one whose upper edge is known, no farther than a cell (assumed).
_ASIDE, _ASIDE_CELLS, _UPRIGHT_CELLS = 0.5, 6, 1
_BACKGROUND, _SKY, _FIRST_SURFACE = 1, 2, 3


def above_beams(
    range_m: Singles,
    top: Grid,
    continues: Mask,
    high: Mask,
    sky: Mask,
    colours: Colours,
    far_m: Singles,
    cell_rad: float,
) -> tuple[Singles, Singles, Singles]:
    """Return the range of every cell, those above the topmost returns by what they look like.

    The picture is flooded from seeds in the order of its edges, weak ones first (watershed: F. Meyer, "Color Image
    Segmentation", ICIP 1992): from surfaces that the sensor's topmost beams hit, which go on above its view; from the
    background right above distant returns; from the sky. So a whole bridge or tree has one range, that of the seed to
    which it is joined without a strong edge, and what is above a low thing that is near has the range of what is behind
    it.

    Args:
        range_m: (h, w) ranges, right at and below the topmost returns.
        top: (1, w) row of each column's topmost return.
        continues: (1, w) whether the sensor's topmost beams hit a surface there.
        high: (1, w) whether that lies above the horizon.
        sky: (h, w) cells above that look like sky. colours: (h, w, 3) of the cells.
        far_m: (h, w) range of the background. cell_rad: height of a cell.

    Returns:
        The ranges; (h, w) how near cells above an edge may be, which look like what is below, infinite elsewhere; and
        (h, w) how far bright cells of a thing may be, which may be sky, 0 elsewhere.
    """
    reached = np.take_along_axis(range_m, top, axis=0)[0]
    surface = _surfaces(reached, continues[0])
    row, topmost = np.arange(len(range_m), dtype=np.int16)[:, None], top.astype(np.int16)
    above = row < topmost
    distant = ~continues & (reached > _DISTANT * far_m.max())
    background = distant & above & (row >= topmost - _SEED_ROWS)
    edges = upper_edges(range_m, top, surface, (continues & high)[0], sky, colours, cell_rad)
    edge = edges.row.astype(np.int16)
    ends = above & (edge > 0)
    within = ends & (row >= edge)
    background |= ends & ~within & (row >= edge - _SEED_ROWS)
    seeds = np.where(above, np.int32(0), np.where(continues, surface, np.int32(_BACKGROUND)))
    seeds[background] = _BACKGROUND
    seeds[sky] = _SKY
    labels = flooded(colours, seeds)
    # What is as bright as the sky, over a near thing that the picture cuts off at its side, is rather the thing.
    cut_off = continues & ((surface == surface[0]) | (surface == surface[-1])) & (reached < NEAR_M)
    bright = above & cut_off & ~sky & (labels == _SKY)
    labels = np.where((within & (labels < _FIRST_SURFACE)) | bright, surface, labels)
    everywhere, in_reach = _ranges_m(surface, reached, edges.upright)
    at = np.maximum(labels, 0) * len(surface) + np.arange(len(surface))
    found = np.where(within, everywhere.take(at), in_reach.take(at))
    found = np.where(sky, np.float32(np.inf), np.where(found < np.inf, found, far_m))
    found = np.where(above, found, range_m)
    nearest = np.where(edges.alike & (found > reached), reached, np.float32(np.inf))
    return found, nearest, np.where(bright, np.float32(np.inf), np.float32(0.0))


def _ranges_m(surface: Labels, reached_m: Singles, upright: Mask) -> tuple[Singles, Singles]:
    """Return the range (k, w) of each surface in each column, and the same only as far aside as it reaches."""
    columns, number = np.arange(len(surface)), np.arange(int(surface[-1]) + 1)[:, None]
    first, last = np.searchsorted(surface, number), np.searchsorted(surface, number, side="right") - 1
    everywhere = reached_m[np.clip(columns, first, np.maximum(last, first))]
    # What joins the sky without looking like it is something far away before it, such as trees.
    everywhere[:_FIRST_SURFACE] = np.inf
    aside = np.maximum(first - columns, columns - last)
    reach = np.where(upright[np.minimum(first, columns[-1])], _UPRIGHT_CELLS, _ASIDE * (last - first) + _ASIDE_CELLS)
    return everywhere, np.where(aside > reach, np.float32(np.inf), everywhere)


def _surfaces(reached_m: Singles, continues: Mask) -> Labels:
    """Return the label (w,) of the surface that each column's topmost beams hit."""
    near, far = np.minimum(reached_m[1:], reached_m[:-1]), np.maximum(reached_m[1:], reached_m[:-1])
    breaks = (far > _ONE_SURFACE * near) | (continues[1:] != continues[:-1])
    return np.asarray(_FIRST_SURFACE + np.concatenate([[0], np.cumsum(breaks)]), dtype=np.int32)
