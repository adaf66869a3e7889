# SPDX-License-Identifier: Apache-2.0
"""A scan with fewer returns in each ring."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.lost_returns import Floats, LostReturns, Mask
from mt_nodes.relations.mutations.lidar.placement import empty_returns
from mt_nodes.relations.mutations.lidar.ring_order import in_rings
from mt_nodes.world.scene.beams import beams_of


@dataclass(frozen=True)
class DensityDecreased(LostReturns):
    """Keeps every k-th return of each ring, in the order of the scan: a coarser step of azimuth.

    A spinning sensor at k times the rate, or with 1 / k of the firings, sees so much less (Velodyne VLP-16: 0.1
    degrees at 5 Hz, 0.4 at 20 Hz); the vertical resolution stays. Rings are told by
    :func:`mt_nodes.world.scene.beams.beams_of`; returns of an unknown ring are thinned among themselves.

    Guaranteed: of each ring every k-th return is there byte for byte, and no other.
    """

    keep_every: int = param(2, low=2, high=100, neutral=2, help="one return of so many is kept in each ring")
    first: int = param(0, low=0, high=99, aspect="place", help="returns of each ring before the first one that is kept")

    def __post_init__(self) -> None:
        if self.first >= self.keep_every:
            raise UsageError(f"got first {self.first}, expected less than keep_every {self.keep_every}")

    def lost(self, cloud: Cloud, draw: Draw) -> Mask:
        """Number the returns of each ring, all rings at once."""
        rows, begins = in_rings(cloud)
        length = np.diff(begins, append=len(rows))
        number = (np.arange(len(rows), dtype=np.int32) - np.repeat(begins, length)).astype(np.uint32)
        lost = np.zeros(len(cloud), dtype=bool)
        lost[rows] = number % np.uint32(self.keep_every) != self.first
        return lost

    def excess(self, cloud: Cloud, draw: Draw) -> Floats:
        """−1 for every k-th return of a ring, else 1: ring by ring."""
        place, known = beams_of(cloud).place, ~empty_returns(cloud)
        excess = np.ones(len(cloud))
        for ring in range(-1, int(place.max()) + 1):
            excess[np.flatnonzero((place == ring) & known)[self.first :: self.keep_every]] = -1.0
        return excess
