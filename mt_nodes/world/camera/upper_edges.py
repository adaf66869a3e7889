# SPDX-License-Identifier: Apache-2.0
"""Upper edges of things that a LiDAR's topmost beams hit, by the picture: what is above them stands behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Mask, Singles
from mt_nodes.world.camera.depth_completion import JUMP, Colours
from mt_nodes.world.camera.free_space import cheapest_path

Grid = npt.NDArray[np.int64]
Labels = npt.NDArray[np.integer[Any]]
Bins = npt.NDArray[np.uint16]

#: Vehicles are no higher than this, with their load (Directive 96/53/EC, annex I, 1.2), and so reach no farther above
#: a return of theirs.
_HIGHEST_M = 4.0
#: Fewer columns are no thing, and no more than so many a post; things are farther apart than so many columns; farther
#: away, they are of the background, as far as fog and rain tell (assumed).
_LEAST_WIDE, _POST, _GAP, NEAR_M = 4, 7, 2, 40.0
#: Colours of a thing are those of so many rows below its topmost returns; those behind it are a so manieth part of the
#: picture's width to each side, down to so many rows below the topmost returns (assumed).
_ROWS, _BESIDE, _BELOW = 14, 7, 2
#: Fewer cells than this show no colours.
_LEAST_CELLS = 8
#: One cell says no more than this, in logarithms: neighbours are not independent. Cells of a colour that was not seen.
_MOST, _UNSEEN = np.float32(1.5), np.float32(0.02)
#: Costs of an edge: of each unit of likelihood on its wrong side; of no step of colour, and the step that halves it; of
#: a thing that has no upper edge; in shares of the path's own costs. By eye on the recorded drive.
_LIKELIHOOD, _NO_STEP, _HALF, _ENDLESS, _SCALE = 0.4, 2.0, 0.2, 1.4, 0.08
#: So many cells above an edge have to be likelier behind the thing, by so much, in this share of its columns.
_OVER, _LIKELIER, _LEAST_SHARE = 4, 0.3, 0.5
#: What goes across a thing's columns without such a step (255ths, of three colours; leaves stay below), from the
#: nearest far column within so many, is so much likelier behind it, as a bridge is.
_SMOOTH, _NEXT, _ACROSS = 90, 12, np.float32(1.0)
#: The rim of a thing fills its cell in part.
_RIM = 1
_NEVER = np.float32(1e4)
#: Bins of brightness, 16 steps each, and of both differences of colour, 4 steps each, from the first; grey is 128.
_BINS, _FIRST = (16, 32, 32), 64


@dataclass(frozen=True, eq=False)
class UpperEdges:
    """Upper edges above the topmost returns.

    Attributes:
        row: (w,) the topmost row of the thing that the topmost beams hit; -1 where no edge is found.
        upright: (w,) whether the thing reaches no farther aside above its returns: its edge is found, or it is a post.
        alike: (h, w) cells above edges that look like the thing below all the same.
    """

    row: Grid
    upright: Mask
    alike: Mask


def upper_edges(
    range_m: Singles, top: Grid, surface: Labels, standing: Mask, sky: Mask, colours: Colours, cell_rad: float
) -> UpperEdges:
    """Return the upper edges of near things of which the picture shows both sides.

    Of each cell above the topmost returns, colours say whether it belongs to the thing, whose colours are those of its
    returns, or to what is seen beside it and farther away (Y. Boykov and M.-P. Jolly, "Interactive Graph Cuts for
    Optimal Boundary & Region Segmentation of Objects in N-D Images", ICCV 2001). The edge has one row in each column:
    that with the least sum of cells on the wrong side, missing steps of colour, and steps from column to column. There
    is none if what is above it does not look like what is beside the thing, as of a house, or if it is higher than
    vehicles are.

    Args:
        range_m: (h, w) ranges, right at and below the topmost returns.
        top: (1, w) row of each column's topmost return.
        surface: (w,) label of the thing hit there; it grows from column to column.
        standing: (w,) whether the topmost beams hit a thing that may continue. sky: (h, w) cells that look like sky.
        colours: (h, w, 3) of the cells. cell_rad: height of a cell.
    """
    found = UpperEdges(np.full(len(surface), -1), np.zeros(len(surface), bool), np.zeros(sky.shape, bool))
    reached = np.take_along_axis(range_m, top, axis=0)[0]
    place = _places(colours)
    for at in _things(surface, reached, standing):
        own_m = np.float32(_middle_m(reached[at]))
        end = int(top[0, at].max()) + 1
        likelihood = _likelihood(range_m, top, reached, sky, place, at, own_m)
        if likelihood is None:
            continue
        found.upright[at] = at.stop - at.start <= _POST
        over = np.arange(end)[:, None] < top[:, at]
        likelihood -= _ACROSS * _goes_across(colours[:end], reached > JUMP * own_m, at)
        likelihood = np.where(sky[:end, at], -_MOST, likelihood) * over
        highest = top[0, at] - int(_HIGHEST_M / (own_m * cell_rad))
        edge = _edge(likelihood, colours[:end, at], top[0, at], highest)
        if _is_behind(likelihood, edge):
            found.upright[at] = True
            found.row[at] = np.where(edge > _RIM, edge - _RIM, -1)
            found.alike[:end, at] = (np.arange(end)[:, None] < edge) & (likelihood > 0.0) & (edge > _RIM)
    return found


def _things(surface: Labels, reached: Singles, standing: Mask) -> Iterator[slice]:
    """Yield the columns of each near thing: of surfaces side by side at about one range."""
    first = np.flatnonzero(np.diff(surface, prepend=-1))
    some = standing[first].tolist()
    near: list[tuple[int, int, float]] = []
    for start, stop, stands in zip(first.tolist(), [*first[1:].tolist(), len(surface)], some, strict=True):
        own_m = _middle_m(reached[start:stop]) if stands else np.inf
        if own_m > NEAR_M:
            continue
        if near and start - near[-1][1] <= _GAP and max(own_m, near[-1][2]) < JUMP * min(own_m, near[-1][2]):
            near[-1] = near[-1][0], stop, _middle_m(reached[near[-1][0] : stop])
        else:
            near.append((start, stop, own_m))
    for start, stop, _ in near:
        if start > 0 and stop < len(surface) and stop - start >= _LEAST_WIDE:
            yield slice(start, stop)


def _middle_m(range_m: Singles) -> float:
    """Return the median of ranges (n,), the upper one of two."""
    own = range_m.tolist()  # mostly few
    return float(own[0] if len(own) == 1 else sorted(own)[len(own) // 2])


def _places(colours: Colours) -> Bins:
    """Return the bin (h, w) of each colour."""
    light, *differences = cv2.split(cv2.cvtColor(colours, cv2.COLOR_RGB2YCrCb))
    red, blue = (np.minimum(cv2.subtract(a, float(_FIRST)), np.uint8(_BINS[1] * 4 - 1)) >> 2 for a in differences)
    place = (light >> 4).astype(np.uint16) * np.uint16(_BINS[1])
    place += red
    place *= np.uint16(_BINS[2])
    place += blue
    return np.asarray(place, np.uint16)


def _likelihood(
    range_m: Singles, top: Grid, reached: Singles, sky: Mask, place: Bins, at: slice, own_m: np.float32
) -> Singles | None:
    """Return how much likelier each cell (e, n) down to a thing's returns is of it than behind it; None if unknown."""
    beside = range_m.shape[1] // _BESIDE
    around, end = slice(max(0, at.start - beside), at.stop + beside), int(top[0, at].max())
    rows = np.arange(range_m.shape[0])[:, None]
    near = range_m[:, at]
    own = (rows >= top[:, at]) & (rows < top[:, at] + _ROWS) & (near < JUMP * own_m) & (near * JUMP > own_m)
    high = np.s_[: end + _BELOW, around]
    upper = rows[: end + _BELOW] < top[:, around]
    behind = np.where(upper, reached[around], range_m[high]) > JUMP * own_m
    behind &= ~sky[high]
    behind[:, at.start - around.start : at.stop - around.start] = False
    if min(np.count_nonzero(own), np.count_nonzero(behind)) < _LEAST_CELLS:
        return None
    of_thing, of_others = _density(place[:, at][own]), _density(place[high][behind])
    asked = place[: end + 1, at]
    return np.asarray(np.clip(np.log(of_thing[asked] / of_others[asked]), -_MOST, _MOST), np.float32)


def _goes_across(colours: Colours, far: Mask, at: slice) -> Mask:
    """Return which cells (e, n) of a thing's columns have the colour of what is far (w,) beside it, step by step."""
    found = np.zeros((len(colours), at.stop - at.start), bool)
    for reach, first, mirrored in ((np.s_[: at.start], at.start, False), (np.s_[at.stop :], len(far) - at.stop, True)):
        beside = far[reach][::-1][:_NEXT] if not mirrored else far[reach][:_NEXT]
        if not beside.any():
            continue
        line = colours[:, ::-1] if mirrored else colours
        outside = first - 1 - int(beside.argmax())
        part = line[:, outside : first + found.shape[1]].astype(np.int16)
        step = np.maximum.accumulate(np.abs(np.diff(part, axis=1)).sum(axis=-1), axis=1)[:, first - 1 - outside :]
        same = step < _SMOOTH
        found |= same[:, ::-1] if mirrored else same
    return found


def _density(places: Bins) -> Singles:
    """Return the share of each bin among some colours (n,), smooth; not 0 where there is none."""
    count = np.bincount(places, minlength=int(np.prod(_BINS))).astype(np.float32).reshape(_BINS[0] * _BINS[1], -1)
    smooth = cv2.GaussianBlur(count, (3, 1), 0).reshape(_BINS)
    smooth = cv2.GaussianBlur(smooth.reshape(_BINS[0], -1), (1, 3), 0).reshape(_BINS)
    smooth[:, 1:-1] = (smooth[:, :-2] + 2 * smooth[:, 1:-1] + smooth[:, 2:]) / 4
    return np.asarray((smooth + _UNSEEN) / np.float32(len(places))).reshape(-1)


def _edge(likelihood: Singles, colours: Colours, top: Grid, highest: Grid) -> Grid:
    """Return the topmost row (n,) of a thing, 0 for none, by how likely cells (e, n) above its returns are of it."""
    rows = np.arange(len(likelihood))[:, None]
    step = cv2.filter2D(colours, cv2.CV_32F, np.array([[-1.0], [1.0], [0.0]]) / 255.0)
    step = np.abs(step).sum(axis=-1)
    outside = np.cumsum(likelihood, axis=0) - likelihood
    cost = _LIKELIHOOD * outside + _NO_STEP / (1.0 + np.square(step / _HALF))
    cost = np.where((rows <= top) & (rows > highest), _SCALE * cost, _NEVER)
    cost[0] = _SCALE * _ENDLESS
    return cheapest_path(cost.astype(np.float32))


def _is_behind(likelihood: Singles, edge: Grid) -> bool:
    """Return whether most of what is right above an edge (n,) looks like what is behind the thing."""
    rows = np.arange(len(likelihood))[:, None]
    over = (rows < edge) & (rows >= edge - _OVER)
    mean = (likelihood * over).sum(axis=0) / np.maximum(over.sum(axis=0), 1)
    return bool(np.count_nonzero((mean < -_LIKELIER) & (edge > 0)) > _LEAST_SHARE * len(edge))
