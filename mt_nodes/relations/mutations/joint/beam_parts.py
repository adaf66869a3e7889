# SPDX-License-Identifier: Apache-2.0
"""Beams of a cloud in blocks of some thousands, which fit the processor's cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mt_nodes.base.arrays import Mask, Rows, Singles
from mt_nodes.data.firings import return_pairs
from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.joint.attenuation import single_ranges_m
from mt_nodes.relations.mutations.joint.chance import Quarters
from mt_nodes.relations.mutations.joint.empty_beams import EmptyBeams
from mt_nodes.relations.mutations.lidar.rays import At

_PART = 16384


@dataclass(frozen=True, eq=False)
class CloudPart:
    """A block of beams: index of the first, which points they are (none for empty beams), and ranges (k,).

    ``xyz`` are points (k,) on the beams, in single precision; ranges of empty beams are infinite.
    """

    first: int
    at: At
    range_m: Singles
    xyz: tuple[Singles, Singles, Singles]

    @cached_property
    def bearing_rad(self) -> Singles:
        """Bearing (k,) from the x axis towards y."""
        return np.arctan2(self.xyz[1], self.xyz[0])

    @cached_property
    def level(self) -> Singles:
        """Cosine (k,) of the elevation: distance over ground by range."""
        over_ground = np.hypot(self.xyz[0], self.xyz[1])
        over_ground /= np.where(np.isfinite(self.range_m), self.range_m, np.float32(1.0))
        return over_ground


def parts(cloud: Cloud, at: At) -> Iterator[CloudPart]:
    """Yield the returns of a cloud in blocks."""
    count = len(cloud) if isinstance(at, slice) else len(at)
    for first in range(0, count, _PART):
        within = slice(first, min(first + _PART, count))
        some = within if isinstance(at, slice) else at[within]
        x, y, z = (cloud.points[name][some].astype(np.float32) for name in "xyz")
        yield CloudPart(first, some, single_ranges_m(cloud, some), (x, y, z))


def part_of_empty(beams: EmptyBeams) -> CloudPart:
    """Return empty beams as a block with nothing behind."""
    x, y, z = beams.unit
    return CloudPart(0, slice(0), np.full(len(beams), np.inf, np.float32), (x, y, z))


@dataclass(frozen=True, eq=False)
class Amplitudes:
    """Amplitudes (k,) of returns over the threshold: in clear air, and in the weather; and the light that it passes.

    ``least``: what an echo of the air has to exceed (k,) to be reported in a return's place. ``chance``: quarters
    (k, 4) of a random word each: amplitude, noise, echo of the air, its place or range noise.
    """

    clear: Singles
    weakened: Singles
    least: Singles
    passing: Singles
    chance: Quarters


def firing_of(cloud: Cloud, at: At, index: Rows) -> Rows:
    """Return the counters (n,), of random numbers, of some returns: those of one firing share theirs.

    Of a sensor with one return for each firing they are the numbers of the returns themselves.
    """
    if not cloud.reading.dual_return:
        return index
    return return_pairs(cloud).head[index if isinstance(at, slice) else at[index]].astype(np.int64)


def is_last_of_several(cloud: Cloud, rows: At) -> Mask | None:
    """Return which of some returns (n,) are the last ones of firings with several; None where there are none."""
    if not cloud.reading.dual_return:
        return None
    firings = return_pairs(cloud)
    return np.asarray(firings.last[rows] & (firings.sizes[rows] > 1))
