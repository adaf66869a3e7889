# SPDX-License-Identifier: Apache-2.0
"""Returns lost at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.placement import empty_returns
from mt_nodes.relations.mutations.lidar.rays import returns, rows_of_share
from mt_nodes.relations.mutations.lidar.rows_lost import RowsLost, rows_of


@dataclass(frozen=True)
class PointsDropped(RowsLost):
    """Loses a share of the returns, every one equally likely.

    ``round(share * n)`` of the n returns, at least one, without regard to where they are: what packets lost one by
    one, weak echoes or a voter in the driver do. That real drop-out of spinning LiDARs is of the order of some per
    cent, and depends on the surface, is assumed.

    Guaranteed: so many returns and no others are gone; the rest is there byte for byte, in its order.
    """

    share: float = param(
        0.1, low=0.0001, high=0.99, neutral=0.0001, help="share of the returns of each cloud that are lost"
    )

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Choose the returns to lose."""
        return {"rows": rows_of_share(rng, returns(cloud), self.share)}

    def prove_lost(self, bundle: Bundle, old: Cloud, draw: Draw) -> str | None:
        """Count them, and see that they were returns."""
        rows, empty = rows_of(draw), empty_returns(old)
        wanted = max(1, round(self.share * int((~empty).sum())))
        if len(rows) != wanted:
            return f"{len(rows)} returns lost, expected {wanted}"
        return "an empty return was lost" if empty[rows].any() else None
