# SPDX-License-Identifier: Apache-2.0
"""A sensor with fewer beams."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.lost_returns import Floats, LostReturns, Mask
from mt_nodes.world.scene.beams import beams_of


@dataclass(frozen=True)
class VerticalResolutionReduced(LostReturns):
    """Keeps the returns of every k-th beam, counted from the lowest elevation up.

    A 64-beam sensor becomes one of 32 or 16 beams with the same field of view. Rings are told and put in order of
    elevation by :func:`mt_nodes.world.scene.beams.beams_of`. Guaranteed: of the rings that were there every k-th is
    whole and no other has a return.
    """

    keep_every: int = param(2, low=2, high=64, neutral=2, help="one beam of so many is kept")
    first: int = param(0, low=0, high=63, aspect="place", help="beams below the first one that is kept")

    def __post_init__(self) -> None:
        if self.first >= self.keep_every:
            raise UsageError(f"got first {self.first}, expected less than keep_every {self.keep_every}")

    def lost(self, cloud: Cloud, draw: Draw) -> Mask:
        """Look rings up in a table; a return whose ring is not known is lost, too."""
        beams = beams_of(cloud)
        return ~beams.of_rings(beams.upward[self.first :: self.keep_every])

    def excess(self, cloud: Cloud, draw: Draw) -> Floats:
        """−1 for a ring with a whole number of k rings between it and the first one, by counting lower ones, else 1."""
        beams = beams_of(cloud)
        one, other = beams.elevations_rad[:, None], beams.elevations_rad[None, :]
        # Of two rings at one elevation the one with the lower number is the lower one: K x K, earlier columns.
        lower = ((other < one) | np.tril(other == one, -1)).sum(axis=1) - self.first
        kept = (lower >= 0) & (lower % self.keep_every == 0)
        return np.where(np.append(kept, False)[beams.place], -1.0, 1.0)
