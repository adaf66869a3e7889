# SPDX-License-Identifier: Apache-2.0
"""What of a near vehicle gives a LiDAR no return: the space beside its returns that no beam passes on its way behind.

A LiDAR that stands higher than the camera sees past a roof that the camera sees, and what it measures there, far
behind, lies within the roof in the picture. But at the vehicle's distance those beams pass above the roof. What they
pass is free; what none of them passes, between the vehicle's returns and the nearest free place, is the vehicle (K.
Kutulakos and S. Seitz, "A Theory of Shape by Space Carving", IJCV 2000; for beams of a range sensor, A. Elfes, "Using
Occupancy Grids for Mobile Robot Perception and Navigation", Computer 1989). But beams also pass through glass, and
paint that they graze is a mirror, which shows the LiDAR what is far behind in the direction of the roof. So the
picture's edges decide with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask, Singles
from mt_nodes.world.camera.depth_completion import JUMP, nearest_within, part_of
from mt_nodes.world.camera.model import CameraModel

Grid = npt.NDArray[np.int64]
#: Height of windows and the roof over them, in metres (assumed).
ABOVE_M = 0.8
#: Free is what squares of cells of beams pass: single ones pass through glass. Ranges are smooth over so many columns.
_SQUARE, _SMOOTH = np.ones((3, 3), np.uint8), 5
#: Costs of an outline, by eye on the recorded drive: of no edge 1; for each of the first cells that are hidden above
#: it (more may be dark trees); for each cell that is passed below it; and for each cell that it rises
#: or falls. And the step of colours that is half an edge.
_HIDDEN, _RIM, _PASSED, _STEP, _EDGE, _NEVER = 0.1, 6.0, 0.005, 0.08, 0.25, 1e4
#: Beams have to pass above this share of a thing's columns; a part that reaches as high as the whole in this share of
#: its columns is no other thing; and a rim of this width is no glass (assumed).
_KNOWN, _SAME, _RIM_M = 0.5, 0.9, 0.1
#: A window of fewer cells is that of a thing whose returns tell its outline (assumed).
_TALL = 24
#: Differences of a cell from the one above it; turned, from the one to its left.
_DOWN = np.array([[-1.0], [1.0], [0.0]], np.float32)
_OVER_COLOURS = np.ones((1, 3), np.float32)
#: What is behind a thing is looked for within so many cells first.
_AROUND = 12
#: A return may lie in a cell that the thing fills in part.
_MIXED = 1


@dataclass(frozen=True, eq=False)
class Beams:
    """Returns that lie in a picture, in the camera's frame.

    Attributes:
        sensor_m: (3,) origin of the beams. xyz_m: (n, 3) the returns. range_m: (n,) from the camera.
        column: (n,) cells in which they lie.
    """

    sensor_m: Floats
    xyz_m: Floats
    range_m: Singles
    column: Grid


@dataclass(frozen=True, eq=False)
class NearThing:
    """Something near in the cells (h, w) of a picture, and the range of each of its columns."""

    cells: Mask
    columns: slice
    range_m: Singles

    @classmethod
    def of(cls, cells: Mask, range_m: Singles) -> NearThing:
        """Return a thing of some cells (h, w) with ranges (h, w): per column their mean, smooth."""
        has = np.flatnonzero(cells.any(axis=0))
        columns = slice(int(has[0]), int(has[-1]) + 1)
        own = cells[:, columns]
        count = own.sum(axis=0)
        mean = np.where(own, range_m[:, columns], np.float32(0.0)).sum(axis=0) / np.maximum(count, 1)
        some = np.flatnonzero(count)
        every = np.interp(np.arange(len(count)), some, mean[some]).astype(np.float32)
        return cls(cells, columns, cv2.blur(every[None], (_SMOOTH, 1))[0])


def distinct(things: Sequence[Mask], range_m: Singles) -> list[NearThing]:
    """Return things of some cells (h, w) each, without parts of others that reach as high as they."""
    found: list[NearThing] = []
    for cells in things:
        thing = NearThing.of(cells, range_m)
        if not any(_is_top_of(thing, other) for other in found):
            found.append(thing)
    return found


def _is_top_of(thing: NearThing, whole: NearThing) -> bool:
    own, other = (t.cells[:, thing.columns] for t in (thing, whole))
    return bool((other.any(axis=0) & (np.abs(own.argmax(axis=0) - other.argmax(axis=0)) <= 2)).mean() > _SAME)


def outlined(
    range_m: Singles,
    bare_m: Singles,
    measured: Mask,
    light: Singles,
    ground_m: Singles,
    things: Sequence[NearThing],
    beams: Sequence[Beams],
    view: tuple[CameraModel, int],
) -> tuple[Singles, Mask]:
    """Return ranges (h, w) with near things up to their outlines, and nothing of them above.

    An outline has one row in each column, up to a window's height above the topmost return, and below the horizon:
    what sensors graze or see past is no higher than they. It lies where the picture has an edge, few places above it
    are hidden from all beams, few below it are passed by some, and its rows differ little from column to column: the
    sum of all that is least, by dynamic programming (A. Amini, T. Weymouth and R. Jain, "Using Dynamic Programming for
    Solving Variational Problems in Vision", TPAMI 1990). Where no beam passes above a thing, nothing is known; returns
    of things farther than some 6 m lie close enough to their outlines.

    Args:
        range_m: (h, w) with what seems to be part of the things. bare_m: (h, w) without.
        measured: (h, w) cells with a return. light: (h, w, 3).
        ground_m: (h, w) range of flat ground, infinite above the horizon.
        view: the camera, and the width of a cell in pixels.

    Returns:
        The ranges; and (h, w) which cells of things no beam passes, or are the rim of a roof: they hide what is behind.
    """
    found, solid = range_m.copy(), np.zeros(range_m.shape, bool)
    for thing in things:
        at, passed = np.s_[:, thing.columns], _passed(thing, beams, *view)
        free = cv2.morphologyEx(passed.astype(np.uint8), cv2.MORPH_OPEN, _SQUARE) != 0
        own = thing.cells & measured & (bare_m <= JUMP * found)
        cell_m = thing.range_m * np.float32(view[1] / view[0].k[0, 0])
        if float(np.median(cell_m)) * _TALL > ABOVE_M:
            continue
        colours = np.sqrt(np.clip(light[at], 0.0, 1.0))
        edge = _outline(own[at], free[at], np.isfinite(ground_m[at]), colours, cell_m)
        if edge is None:
            continue
        rows, part, cells = np.arange(len(found))[:, None], found[at], thing.cells[at]
        bottom = np.where(cells.any(axis=0), len(cells) - 1 - cells[::-1].argmax(axis=0), -1)
        inside, above = (rows >= edge) & (rows <= bottom), cells & (rows < edge)
        np.copyto(part, thing.range_m, where=inside & (part > JUMP * thing.range_m))
        if above.any():
            part[above] = _without(thing, bare_m, measured, above)
        solid[at] |= inside & (~passed[at] | (rows < edge + _RIM_M / cell_m))
    return found, solid


def _without(thing: NearThing, bare_m: Singles, measured: Mask, above: Mask) -> Singles:
    """Return the ranges (n,) of some cells (h, columns) without a thing: of what is nearest around it."""
    others = measured & (~thing.cells | (bare_m > JUMP * float(thing.range_m.max())))
    some = np.zeros(measured.shape, bool)
    some[:, thing.columns] = above
    for around in (_AROUND, max(measured.shape)):
        part = part_of(some, around)
        assert part is not None, "asked for some cells"
        if others[part].any():
            found, apart = nearest_within(bare_m[part], others[part])
            if apart[some[part]].max() <= around:  # what lies outside is no nearer
                return np.where(measured[some], bare_m[some], found[some[part]])
    return np.asarray(bare_m[some])


def _outline(own: Mask, free: Mask, level: Mask, colours: Singles, cell_m: Singles) -> Grid | None:
    """Return the topmost row (n,) of a thing in its columns; None if no beam passes above most of them.

    Args:
        own: (h, n) its cells with a return. free: (h, n) cells that beams pass. level: (h, n) cells below the horizon.
        colours: (h, n, 3) of the picture, from 0 to 1. cell_m: (n,) height of a cell at the thing.
    """
    rows, has = np.arange(len(own))[:, None], np.asarray(own.any(axis=0))
    if not has.any():
        return None
    columns = np.arange(len(has))
    top = np.interp(columns, columns[has], own.argmax(axis=0)[has]).astype(np.int64)
    horizon = np.where(level.any(axis=0), level.argmax(axis=0), len(own))
    lowest = np.maximum(top - (ABOVE_M / cell_m).astype(np.int64), 1)
    window = (rows >= lowest) & (rows < top)
    lowest = np.minimum(np.maximum(lowest, horizon), top)
    if (free & window).any(axis=0).mean() < _KNOWN:
        return None
    first = max(0, int(lowest.min()) - 1)
    near = np.s_[first : int(top.max()) + _MIXED + 1]
    down, right = (cv2.transform(np.abs(cv2.filter2D(colours[near], -1, k)), _OVER_COLOURS) for k in (_DOWN, _DOWN.T))
    step = np.maximum(down, right)
    below_free = np.logical_or.accumulate(free[near], axis=0)
    above = np.cumsum(below_free & ~free[near] & window[near], axis=0, dtype=np.float32)
    passed = np.cumsum(free[near] & window[near], axis=0, dtype=np.float32)
    above, passed = (np.vstack([np.zeros_like(a[:1]), a[:-1]]) for a in (above, passed))  # of the rows above each
    cost = 1.0 / (1.0 + np.square(step / _EDGE)) + _PASSED * (passed.max(axis=0) - passed)
    cost += _HIDDEN * np.minimum(above, _RIM)
    for end in (0, -1):  # beside it is no outline
        cost[:, end] += _STEP * np.abs(rows[near][:, 0] - top[end])
    allowed = (rows[near] >= lowest) & (rows[near] <= top + _MIXED)
    return first + cheapest_path(np.where(allowed, cost, np.float32(_NEVER)).astype(np.float32))


def cheapest_path(cost: Singles) -> Grid:
    """Return the row (n,) of each column with the least sum of costs (h, n) and of steps between columns."""
    height, width = cost.shape
    row = np.arange(height, dtype=np.float32)
    step = np.float32(_STEP) * np.abs(row[:, None] - row)
    total, sums = np.ascontiguousarray(cost.T), np.empty_like(step)
    for x in range(1, width):
        np.add(step, total[x - 1][:, None], out=sums)
        total[x] += np.minimum.reduce(sums, axis=0)
    path = np.empty(width, np.int64)
    path[-1] = total[-1].argmin()
    for x in range(width - 2, -1, -1):
        path[x] = (total[x] + step[path[x + 1]]).argmin()
    return path


def _passed(thing: NearThing, beams: Sequence[Beams], camera: CameraModel, step: int) -> Mask:
    """Return the cells (h, w) in which beams that end behind a thing pass it, at its distance."""
    height, width = thing.cells.shape
    passed = np.zeros((height, width), np.uint8)
    for of_sensor in beams:
        row, column = _cells_at(thing, of_sensor, camera, step)
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        passed[row[inside], column[inside]] = 1
    return np.asarray(cv2.morphologyEx(passed, cv2.MORPH_CLOSE, _SQUARE) != 0)


def _cells_at(thing: NearThing, beams: Beams, camera: CameraModel, step: int) -> tuple[Grid, Grid]:
    """Return row and column (n,) where beams pass at the distance of a thing; those that end there do not count."""
    first, last = thing.columns.start, thing.columns.stop - 1
    middle_m = float(np.median(thing.range_m))
    aside = int(np.ceil(camera.k[0, 0] * np.linalg.norm(beams.sensor_m) / middle_m / step))
    some = (beams.column >= first - aside) & (beams.column <= last + aside)
    some &= beams.range_m > JUMP * thing.range_m.min()
    xyz, behind = beams.xyz_m[some], beams.range_m[some]
    away = xyz - beams.sensor_m
    away /= np.maximum(np.sqrt(np.einsum("ij,ij->i", away, away)), 1e-6)[:, None]
    range_m = np.full(len(xyz), middle_m)
    for _ in range(2):  # the distance depends on the column
        places = beams.sensor_m + away * _reach_m(beams.sensor_m, away, range_m)[:, None]
        pixel = camera.project(places)
        with np.errstate(invalid="ignore"):
            column, row = np.floor((pixel + 0.5) / step).T
        known = np.isfinite(column) & np.isfinite(row)
        at = np.clip(np.where(known, column, first), first, last).astype(np.int64) - first
        range_m = thing.range_m[at].astype(np.float64)
    ends_behind = known & (behind > JUMP * range_m)
    return row[ends_behind].astype(np.int64), column[ends_behind].astype(np.int64)


def _reach_m(sensor_m: Floats, away: Floats, range_m: Floats) -> Floats:
    """Return how far along unit vectors (n, 3) from a sensor the camera is ``range_m`` (n,) away; NaN for never."""
    along = away @ sensor_m
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(along * along - sensor_m @ sensor_m + range_m * range_m) - along)
