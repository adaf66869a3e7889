# SPDX-License-Identifier: Apache-2.0
"""Beams of a cloud without a return: air before nothing echoes, too.

In an organised cloud they are its empty points, which are filled in place; in another the gaps of its rings, and new
points come after their neighbours. Their directions are those of :mod:`mt_nodes.world.scene.silent_rays`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from mt_nodes.base.arrays import Floats, Rows, Singles
from mt_nodes.data.messages import Cloud, Points
from mt_nodes.relations.mutations.lidar.placement import intensity_of, write_points
from mt_nodes.world.scene.silent_rays import all_silent_rays

#: Points of a block, which fits the processor's cache.
BLOCK = 8192

_found: WeakKeyDictionary[Cloud, EmptyBeams] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class EmptyBeams:
    """Beams without a return.

    ``rows``: (n,) ascending: places in an organised cloud, else the returns after which new ones come. ``unit``: (3, n)
    directions.
    """

    rows: Rows
    unit: Singles

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class EmptyEchoes:
    """Echoes of the air on empty beams.

    ``beams``: the empty beams of the cloud. ``hit``: (k,) which of them got an echo, ascending. ``range_m``: (k,).
    ``reflectivity``: (k,) as which it reads.
    """

    beams: EmptyBeams
    hit: Rows
    range_m: Singles
    reflectivity: Singles

    @property
    def rows(self) -> Rows:
        """Rows (k,) of the cloud, ascending; see :class:`EmptyBeams`."""
        return self.beams.rows[self.hit]

    @property
    def xyz(self) -> Floats:
        """Places (k, 3) in the cloud's frame."""
        return np.asarray((self.beams.unit[:, self.hit] * self.range_m).T, np.float64)


def empty_beams(cloud: Cloud) -> EmptyBeams:
    """Return every beam of a cloud without a return; cached per cloud. None if the beams are unknown."""
    if cloud not in _found:
        rays = all_silent_rays(cloud)
        order = np.argsort(rays.rows, kind="stable")
        _found[cloud] = EmptyBeams(rays.rows[order], np.ascontiguousarray(rays.direction[order].T, np.float32))
    return _found[cloud]


def write_echoes(cloud: Cloud, old: Cloud, at: Rows, echoes: EmptyEchoes) -> None:
    """Write echoes at rows (k,) of a cloud, where empty points or copies of neighbours are.

    ``cloud``: a fresh one, which is written to. ``old``: that of the empty beams, whose conventions of fields count.
    """
    bright, range_m = (column.astype(np.float64) for column in (echoes.reflectivity, echoes.range_m))
    write_points(cloud.points, at, echoes.xyz, intensity_of(old, bright, range_m), old)


def spliced(raw: Points, lost: Rows, repeated: Rows) -> tuple[Points, Rows]:
    """Return points (n,) without the lost ones (k,), and with copies of ascending ones (m,) right after their place.

    Also returns the rows of the copies (m,) in the result.
    """
    copies = repeated + 1 - np.searchsorted(lost, repeated, side="right") + np.arange(len(repeated))
    joined, end = np.empty((len(raw) - len(lost) + len(repeated), *raw.shape[1:]), raw.dtype), 0
    for start, count in counts_of(len(raw), lost, repeated):
        begin, end = end, end + int(count.sum())
        joined[begin:end] = np.repeat(raw[start : start + len(count)], count)
    return joined, copies


def counts_of(points: int, lost: Rows, repeated: Rows) -> Iterator[tuple[int, Rows]]:
    """Yield how often points (n,) come in a spliced cloud, block by block, and the row that a block begins with.

    Blocks of some thousands: counts of all points would take much memory.
    """
    for start in range(0, points, BLOCK):
        end = min(start + BLOCK, points)
        copies, gone = (rows[slice(*np.searchsorted(rows, [start, end]))] - start for rows in (repeated, lost))
        count = np.bincount(copies, minlength=end - start) + 1
        count[gone] -= 1
        yield start, count
