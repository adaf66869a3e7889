# SPDX-License-Identifier: Apache-2.0
"""Returns lost with range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.rays import Floats, ranges_m, returns, smallest
from mt_nodes.relations.mutations.lidar.rows_lost import RowsLost, rows_of

#: So many standard deviations off, one frame in a billion would be refused wrongly.
_SIGMAS = 6.0


@dataclass(frozen=True)
class FarPointsDropped(RowsLost):
    """Loses returns at random, the more the farther they are.

    A return at range r is lost with probability ``1 - 2**(-(r - from_m) / half_m)`` beyond ``from_m`` and never
    before it. That is the law of Bouguer and Lambert for the way out and back, ``exp(-2 a (r - from_m))`` with
    ``a = ln 2 / (2 half_m)``, read as the share of echoes that still pass the receiver's threshold.

    Guaranteed: nothing nearer than ``from_m`` is gone, the number lost fits the formula within six standard
    deviations, and the rest is there byte for byte, in its order.
    """

    from_m: float = param(20.0, low=0.0, high=300.0, unit="m", neutral=300.0, help="nothing is lost up to this range")
    half_m: float = param(
        20.0, low=0.1, high=1000.0, unit="m", neutral=1000.0, help="of every so many metres more, half of them are"
    )

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Toss a coin for every return."""
        rows = returns(cloud)
        kept = self.survival(ranges_m(cloud, rows))
        return {"rows": smallest(rows[rng.random(len(rows)) >= kept])}

    def survival(self, range_m: Floats) -> Floats:
        """Return the probability (n,) that returns at these ranges are kept."""
        return np.asarray(np.exp2(np.minimum(self.from_m - range_m, 0.0) / self.half_m))

    def prove_lost(self, bundle: Bundle, old: Cloud, draw: Draw) -> str | None:
        """See that only far returns are lost, and about as many as the formula says."""
        rows = rows_of(draw)
        lost_m = ranges_m(old, rows)
        if not (lost_m > self.from_m).all():
            return f"a return at {lost_m.min():.2f} m was lost, nothing up to {self.from_m:g} m may be"
        beyond = np.maximum(ranges_m(old, returns(old)) - self.from_m, 0.0)
        lost = -np.expm1(-np.log(2.0) / self.half_m * beyond)
        expected, spread = float(lost.sum()), float(np.sqrt((lost * (1.0 - lost)).sum()))
        if abs(len(rows) - expected) <= _SIGMAS * spread + 1.0:
            return None
        return f"{len(rows)} returns lost, the formula says {expected:.0f} ± {spread:.0f}"
