# SPDX-License-Identifier: Apache-2.0
"""Lasers that fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.lost_returns import Floats, LostReturns, Mask
from mt_nodes.world.scene.beams import MOST, beams_of


@dataclass(frozen=True)
class BeamsLost(LostReturns):
    """Loses every return of some beams, named or drawn, as when lasers or their receivers fail.

    A laser that failed stays dark: the drawn ones are the same for a whole segment, and a larger number takes more to
    those of a smaller one. Rings are told by :func:`mt_nodes.world.scene.beams.beams_of`: from the cloud's field, its
    rows, or found. Guaranteed: no return of a lost beam is left, and none of another one is touched.
    """

    count: int = param(4, low=1, high=MOST, neutral=1, help="beams that are lost, drawn once a segment")
    rings: tuple[int, ...] = param(
        (), low=0, aspect="place", help="the numbers of the rings that are lost, in place of count"
    )

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> Floats:
        """Draw in which order beams fail (256,)."""
        return rng.random(MOST)

    def choose(self, cloud: Cloud, state: Any) -> Draw:
        """Name the rings: under ``rings`` (n,)."""
        known = beams_of(cloud).rings
        missing = sorted(set(self.rings) - set(known.tolist()))
        if missing:
            raise NotApplicable(
                f"{cloud.topic} has no ring {missing[0]}; it has {len(known)}, {known[0]} to {known[-1]}"
            )
        if len(known) <= (len(self.rings) or self.count):
            raise NotApplicable(f"{cloud.topic} has {len(known)} rings, and none would be left")
        failing = np.array(self.rings) if self.rings else known[np.argsort(state[: len(known)])[: self.count]]
        return {"rings": np.sort(failing).astype(np.uint16)}

    def lost(self, cloud: Cloud, draw: Draw) -> Mask:
        """Look rings up in a table."""
        return beams_of(cloud).of_rings(draw["rings"])

    def excess(self, cloud: Cloud, draw: Draw) -> Floats:
        """1 for a point of a lost ring, by a search among them, else −1."""
        lost, ring = draw["rings"].astype(np.int64), beams_of(cloud).ring
        nearest = lost[np.minimum(np.searchsorted(lost, ring), len(lost) - 1)]
        return np.where(nearest == ring, 1.0, -1.0)
