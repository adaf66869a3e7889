# SPDX-License-Identifier: Apache-2.0
"""What of a near vehicle gives a LiDAR no return: the space beside its returns that no beam passes on its way behind.

A LiDAR that stands higher than the camera sees past a roof that the camera sees, and what it measures there, far
behind, lies within the roof in the picture. But at the vehicle's distance those beams pass above the roof. What they
pass is free; what none of them passes, between the vehicle's returns and the nearest free place, is the vehicle (K.
Kutulakos and S. Seitz, "A Theory of Shape by Space Carving", IJCV 2000; for beams of a range sensor, A. Elfes, "Using
Occupancy Grids for Mobile Robot Perception and Navigation", Computer 1989). No colour takes part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.world.camera.depth_completion import JUMP
from mt_nodes.world.camera.model import CameraModel

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Grid = npt.NDArray[np.int64]
#: Height of windows and the roof over them, in metres (assumed).
ABOVE_M = 0.8
#: Single beams pass through glass: free is what squares of cells of beams pass. Ranges are smooth over so
#: many columns, and peaks of an outline wider than so many (assumed).
_SQUARE, _SMOOTH, _PEAK = np.ones((3, 3), np.uint8), 5, 13


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


def carved(
    range_m: Singles,
    bare_m: Singles,
    things: Sequence[NearThing],
    beams: Sequence[Beams],
    view: tuple[CameraModel, int],
) -> tuple[Singles, Mask]:
    """Return ranges (h, w) with near things as far as no beam passes beside them.

    Above a thing's returns, it reaches up to the lowest free place, if that is within a window's height: else nothing
    is known. What was taken for a part of it without a return there is none if beams pass it and the space beside it;
    those through a window are enclosed by its frame.

    Args:
        range_m: (h, w) with what seems to be part of the things. bare_m: (h, w) without.
        view: the camera, and the width of a cell in pixels.

    Returns:
        The ranges; and (h, w) which cells of things no beam passes: they hide what is behind them.
    """
    found, solid = range_m.copy(), np.zeros(range_m.shape, bool)
    for thing in things:
        passed = _passed(thing, beams, *view)
        free = cv2.morphologyEx(passed.astype(np.uint8), cv2.MORPH_OPEN, _SQUARE) != 0
        taken = thing.cells & (bare_m > JUMP * found)
        outside = _joined(free & (taken | ~thing.cells), ~thing.cells) & taken
        found[outside] = bare_m[outside]
        own_m = _unpassed(replace(thing, cells=thing.cells & ~outside), free, view)
        nearer = own_m * JUMP < found
        found[nearer] = own_m[nearer]
        solid |= np.isfinite(own_m) | (thing.cells & ~passed)
    return found, solid


def _joined(cells: Mask, seeds: Mask) -> Mask:
    """Return those of some cells (h, w) that are joined to seeds among them."""
    count, label = cv2.connectedComponents(cells.astype(np.uint8), connectivity=4)
    has_seed = np.zeros(count, bool)
    has_seed[label[cells & seeds]] = True
    return has_seed[label]


def _unpassed(thing: NearThing, free: Mask, view: tuple[CameraModel, int]) -> Singles:
    """Return (h, w) the range of a thing in cells above its returns that no beam passes; infinite elsewhere."""
    found = np.full(thing.cells.shape, np.inf, np.float32)
    free, own = free[:, thing.columns], thing.cells[:, thing.columns]
    rows = np.arange(len(own))[:, None]
    has = own.any(axis=0)
    top = np.where(has, own.argmax(axis=0), 0)
    lowest = np.where(free & (rows < top), rows, -1).max(axis=0)
    high = ABOVE_M * float(view[0].k[0, 0]) / (view[1] * thing.range_m)
    known = has & (lowest >= 0) & (top - lowest - 1 <= high)
    inside = known & (rows > lowest) & (rows < top)
    # A narrow peak is a gap between beams, or what gives none of them a return.
    level = cv2.morphologyEx((inside | own).astype(np.uint8), cv2.MORPH_OPEN, np.ones((1, _PEAK), np.uint8)) != 0
    found[:, thing.columns] = np.where(inside & level, thing.range_m, np.float32(np.inf))
    return found


def _passed(thing: NearThing, beams: Sequence[Beams], camera: CameraModel, step: int) -> Mask:
    """Return the cells (h, w) in which beams that end behind a thing pass it, at its distance."""
    passed = np.zeros(thing.cells.shape, np.uint8)
    for of_sensor in beams:
        row, column = _cells_at(thing, of_sensor, camera, step)
        inside = (row >= 0) & (row < passed.shape[0]) & (column >= 0) & (column < passed.shape[1])
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
