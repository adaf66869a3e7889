# SPDX-License-Identifier: Apache-2.0
"""Returns of one firing: which points of a cloud a sensor in dual-return mode measured with one pulse."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Mask, Rows, Singles
from mt_nodes.data.intensity.firing_rows import heads, ranges_m
from mt_nodes.data.messages import Cloud

#: Echoes of one surface differ by less.
_SAME_M = 0.01


@dataclass(frozen=True, eq=False)
class Firings:
    """The firings of a cloud's returns.

    ``head``: (N,) for each point the first row of its firing; an empty return, or a single one, is its own. ``dual``:
    whether some firings have more than one return.
    """

    cloud: Cloud
    head: npt.NDArray[np.int32]
    dual: bool

    @cached_property
    def sizes(self) -> npt.NDArray[np.int32]:
        """How many points (N,) the firing of each point has."""
        return np.bincount(self.head, minlength=len(self.head))[self.head].astype(np.int32)

    @cached_property
    def range_m(self) -> Singles:
        """Ranges (N,) of the points in metres."""
        return ranges_m(self.cloud.points)

    @cached_property
    def first(self) -> Mask:
        """Whether each point (N,) is the nearest of its firing; of returns at one range the first row is."""
        return self._least(self.range_m)

    @cached_property
    def last(self) -> Mask:
        """Whether each point (N,) is the farthest of its firing; of returns at one range the first row is."""
        return self._least(-self.range_m)

    @cached_property
    def repeats(self) -> bool:
        """Whether the sensor reports a single echo of a firing twice: most firings with several returns hold one."""
        some = np.flatnonzero((self.sizes > 1) & ~self.first)
        nearest = np.zeros(len(self.head), np.float32)
        nearest[self.head[self.first]] = self.range_m[self.first]
        return bool(len(some)) and bool(np.median(self.range_m[some] - nearest[self.head[some]]) < _SAME_M)

    @cached_property
    def strongest(self) -> Mask:
        """Whether each point (N,) has the most power of its firing: reflectivity over squared range.

        Without intensities the nearest one.
        Raises NotApplicable: it is in doubt what the intensities mean.
        """
        if not self.cloud.echo_names:
            return self.first
        rho = self.cloud.echoes.reflectivity(self.cloud.points, slice(None), self.range_m)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._least(-rho / np.square(self.range_m))

    def broken(self, rows: Rows) -> int:
        """Return how many firings have some of their points, but not all, among ascending rows (n,)."""
        if not self.dual:
            return 0
        head, count = np.unique(self.head[rows], return_counts=True)
        return int(np.count_nonzero(self.sizes[head] != count))

    def heads(self, rows: Rows) -> Rows:
        """Return the rows (k,), ascending, that stand for the firings of some ascending rows (n,)."""
        return np.unique(self.head[rows]).astype(np.int64) if self.dual else rows

    def whole(self, rows: Rows) -> Rows:
        """Return all rows (k,), ascending, of the firings that some rows (n,) belong to."""
        if not self.dual:
            return rows
        chosen = np.zeros(len(self.head), dtype=bool)
        chosen[self.head[rows]] = True
        return np.flatnonzero(chosen[self.head])

    def _least(self, value: npt.NDArray[Any]) -> Mask:
        """Return whether each point (N,) has the least value of its firing; the first row of equal ones."""
        least = np.ones(len(self.head), dtype=bool)
        if self.dual:
            some = np.flatnonzero(self.sizes > 1)
            order = some[np.lexsort((some, value[some], self.head[some]))]
            least[order[1:]] = self.head[order[1:]] != self.head[order[:-1]]
        return least


_found: WeakKeyDictionary[Cloud, Firings] = WeakKeyDictionary()


def return_pairs(cloud: Cloud) -> Firings:
    """Return the firings of a cloud, cached per cloud.

    Whether its sensor is in dual-return mode is decided once a topic, so that others cost nothing. Returns of one
    firing share laser and time where the layout has them (Velodyne, Hesai, Ouster, RoboSense and Autoware's drivers
    give both returns those of the pulse), and their ray in any case; without laser or time they stand side by side,
    as Livox and Innoviz drivers write them.
    """
    if cloud not in _found:
        head = np.arange(len(cloud), dtype=np.int32)
        dual = cloud.reading.dual_return
        _found[cloud] = Firings(cloud, heads(cloud.points) if dual else head, dual)
    return _found[cloud]
