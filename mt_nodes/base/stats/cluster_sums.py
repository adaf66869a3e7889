# SPDX-License-Identifier: Apache-2.0
"""Sums over clusters of neighbouring or repeated cases, which are not independent observations."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Ints
from mt_nodes.base.wording import counted

#: Consecutive bundles that count as one observation (one second at 10 Hz): neighbours see the same scene.
BLOCK_BUNDLES = 10
#: Below this a sign-flip test over clusters cannot reach 5 % whatever the data (2**-5 = 0.03, two-sided 0.06).
MIN_CLUSTERS = 6

Unit = tuple[int, int | None]
"""One source case: (drive, bundle); bundle is None when a whole episode is judged. Repeated draws share it."""


@dataclass(frozen=True)
class Clusters:
    """Sums of one level of clusters: ``sums`` is (M, K) int64, one row per cluster, in order of appearance."""

    sums: Ints
    one: str
    single: bool

    def __len__(self) -> int:
        """Number of clusters."""
        return len(self.sums)

    def __str__(self) -> str:
        """Number and kind of clusters, for people."""
        return counted(len(self), self.one)

    def repeated(self, times: int) -> Clusters:
        """Return the same clusters, each counted ``times`` times."""
        return replace(self, sums=np.tile(self.sums, (times, 1))) if times > 1 else self


class ClusterSums:
    """Sums of integers by unit, aggregated to the coarsest clusters that are numerous enough, else to single units.

    Levels tried in turn: drives, blocks of consecutive bundles. Where whole episodes are judged, a unit is a drive.
    Nothing finer is stored, so that memory grows with the number of drives, not of bundles.
    """

    def __init__(self, needed: int, columns: int = 1) -> None:
        """Begin empty; ``needed``: how many clusters are enough; ``columns``: numbers of a unit."""
        self._needed = needed
        #: Name of a unit that is not a whole episode.
        self.one = "frame"
        self._level = 0
        self._row_of: dict[Hashable, int] = {}
        self._columns = [array("q") for _ in range(columns)]
        #: Clusters of the coarser levels, as long as they are too few.
        self._coarser: list[set[Hashable]] = [set() for _ in _LEVELS[1:]]
        self._whole = True

    def add(self, unit: Unit, *numbers: int) -> None:
        """Add numbers, one for each column, to the unit's cluster."""
        key = _LEVELS[self._level](unit)
        row = self._row_of.get(key)
        new = row is None
        if row is None:
            row = self._row(key)
        for column, number in zip(self._columns, numbers, strict=True):
            if number:
                column[row] += number
        if new:
            self._count_clusters(unit)

    def __len__(self) -> int:
        """Number of clusters."""
        return len(self._row_of)

    @property
    def unit(self) -> str:
        """Name of one case, in the singular: ``frame``, or ``drive`` where whole episodes are judged."""
        return self._name(0)

    @property
    def finest(self) -> Clusters:
        """The clusters of the current level."""
        table = np.array(self._columns, dtype=np.int64).reshape(len(self._columns), -1).T
        return Clusters(table, self._name(self._level), self._level == 0)

    @property
    def levels(self) -> list[Clusters]:
        """The clusters of the current level, then those of the coarser ones."""
        finest = self.finest
        found, keys = [finest], list(self._row_of)
        for level in range(self._level + 1, len(_LEVELS)):
            keys = [_LEVELS[level](key) for key in keys]
            rows: dict[Hashable, int] = {}
            at = [rows.setdefault(key, len(rows)) for key in keys]
            if len(rows) < len(found[-1]):
                sums = np.zeros((len(rows), len(self._columns)), dtype=np.int64)
                np.add.at(sums, at, finest.sums)
                found.append(Clusters(sums, self._name(level), single=False))
        return found

    def enough(self, needed: int) -> Clusters:
        """Return the coarsest clusters that are at least ``needed``, else those of the current level."""
        levels = self.levels
        return next((clusters for clusters in reversed(levels) if len(clusters) >= needed), levels[0])

    def _name(self, level: int) -> str:
        single = "drive" if self._whole and self._row_of else self.one
        return (single, f"block of {BLOCK_BUNDLES} frames", "drive")[level]

    def _row(self, key: Hashable) -> int:
        row = self._row_of.setdefault(key, len(self._row_of))
        if row == len(self._columns[0]):
            for column in self._columns:
                column.append(0)
        return row

    def _count_clusters(self, unit: Unit) -> None:
        """Count the clusters of a new unit, and change to a coarser level that is now numerous enough."""
        self._whole = self._whole and unit[1] is None
        for level in range(len(_LEVELS) - 1, self._level, -1):
            found = self._coarser[level - 1]
            found.add(_LEVELS[level](unit))
            if len(found) >= self._needed:
                self._coarsen(level)
                return

    def _coarsen(self, level: int) -> None:
        fine, columns = self._row_of, self._columns
        self._row_of, self._level = {}, level
        self._columns = [array("q") for _ in columns]
        for key, at in fine.items():
            row = self._row(_LEVELS[level](key))
            for column, before in zip(self._columns, columns, strict=True):
                column[row] += before[at]


def sums_of(numbers: Mapping[Unit, int], needed: int = MIN_CLUSTERS) -> ClusterSums:
    """Return the sums of one number for each unit."""
    sums = ClusterSums(needed)
    for unit, number in numbers.items():
        sums.add(unit, number)
    return sums


def _itself(unit: Unit) -> Hashable:
    return unit


def _block(unit: Unit) -> Hashable:
    episode, bundle = unit
    return episode, None if bundle is None else bundle // BLOCK_BUNDLES


#: From single units to the coarsest clusters; a coarser key can be derived from any finer one.
_LEVELS: tuple[Callable[[Any], Hashable], ...] = (_itself, _block, lambda key: key[0])
