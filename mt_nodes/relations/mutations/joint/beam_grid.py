# SPDX-License-Identifier: Apache-2.0
"""Which beams meet a particle: returns sorted into cells of bearing and height, for lookup by direction.

Height is the sine of elevation, the z of a unit vector, which needs no arc sine. It changes by no more than the angle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Singles

Ints = npt.NDArray[np.int32]

_BEARINGS = 960
_LEVELS = 68
_CELL_RAD = 2.0 * np.pi / _BEARINGS
#: Above this height a particle's width spans more bearings than the lookup of the weakest return allows for.
_STEEP = 0.866


@dataclass(frozen=True, eq=False)
class BeamGrid:
    """Beams of the returns of one cloud.

    Attributes:
        unit: (3, n) their directions. order: (n,) returns cell by cell. start: (cells + 1,) where each begins.
        weakest: (levels, bearings) the weakest return of each cell and of its neighbours; infinite where there is none.
        lowest, highest, step: heights of the lowest and the highest beam, and of a cell.
    """

    unit: Singles
    order: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    weakest: Singles
    lowest: float
    highest: float
    step: float

    @classmethod
    def of(cls, unit: Singles, signal: Singles) -> BeamGrid:
        """Sort beams (3, n) whose returns have these signals (n,)."""
        bearing, height = np.arctan2(unit[1], unit[0]), unit[2]
        low, high = float(height.min()), float(height.max())
        step = max((high - low) / (_LEVELS - 1), _CELL_RAD)
        cell = ((height - np.float32(low)) * np.float32(1.0 / step)).astype(np.int32) * _BEARINGS
        cell += _bearing_cell(bearing)
        small = cell.astype(np.uint16)
        del bearing, cell  # memory is short here
        start = np.zeros(_LEVELS * _BEARINGS + 1, np.int64)
        np.cumsum(np.bincount(small, minlength=_LEVELS * _BEARINGS), out=start[1:])
        order = np.argsort(small, kind="stable")
        weakest = np.full(_LEVELS * _BEARINGS, np.inf, np.float32)
        filled = np.flatnonzero(start[1:] > start[:-1])
        weakest[filled] = np.minimum.reduceat(signal[order], start[filled])
        return cls(unit, order, start, _spread(weakest.reshape(_LEVELS, _BEARINGS)), low, high, step)

    def weakest_near(self, bearing: Singles, height: Singles) -> Singles:
        """Return the least signal (k,) with which an echo in these directions is reported by any beam."""
        level = np.clip((height - np.float32(self.lowest)) * np.float32(1.0 / self.step), 0, _LEVELS - 1)
        cell = level.astype(np.int32) * _BEARINGS + _bearing_cell(bearing)
        return np.where(np.abs(height) > _STEEP, np.float32(1.0), self.weakest.reshape(-1).take(cell))

    def near(self, bearing: Singles, height: Singles, width_rad: Singles) -> tuple[Ints, Ints]:
        """Return pairs (m,) of a direction's index and a return within its half width, plus a few just beyond."""
        rows = np.arange(len(bearing), dtype=np.int32)
        first, last = (
            np.clip(np.floor((height + side * width_rad - self.lowest) / self.step), 0, _LEVELS - 1)
            for side in (-1.0, 1.0)
        )
        owner, level = ragged(rows, first, last - first + 1)
        flat = np.sqrt(np.maximum(1.0 - np.square(np.abs(height) + width_rad), 1e-12))
        aside = np.minimum(width_rad / flat, np.pi)[owner]
        left, right = (
            np.floor((bearing[owner] + side * aside + np.pi) / _CELL_RAD).astype(np.int64) for side in (-1.0, 1.0)
        )
        each, column = ragged(np.arange(len(owner), dtype=np.int32), left, np.minimum(right - left + 1, _BEARINGS))
        cell = level[each].astype(np.int64) * _BEARINGS + column % _BEARINGS
        pair, place = ragged(owner[each], self.start[cell], self.start[cell + 1] - self.start[cell])
        return pair, self.order[place].astype(np.int32)


def ragged(owner: Ints, first: npt.ArrayLike, count: npt.ArrayLike) -> tuple[Ints, Ints]:
    """Return all integers from ``first`` (k,) on, ``count`` (k,) of them, each with its owner."""
    count = np.asarray(count).astype(np.int64)
    ends = np.cumsum(count)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - count, count)
    return np.repeat(owner, count), (np.repeat(np.asarray(first).astype(np.int64), count) + within).astype(np.int32)


def _bearing_cell(bearing: Singles) -> Ints:
    cell = ((bearing + np.float32(np.pi)) * np.float32(1.0 / _CELL_RAD)).astype(np.int32)
    return np.asarray(np.where(cell == _BEARINGS, 0, cell))


def _spread(weakest: Singles) -> Singles:
    """Return the least of each cell and its neighbours: one up and down, two to each side."""
    wide = weakest
    for turn in (-2, -1, 1, 2):
        wide = np.minimum(wide, np.roll(weakest, turn, axis=1))
    tall = wide.copy()
    np.minimum(tall[1:], wide[:-1], out=tall[1:])
    np.minimum(tall[:-1], wide[1:], out=tall[:-1])
    return tall
