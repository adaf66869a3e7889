# SPDX-License-Identifier: Apache-2.0
"""Returns that are there twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud
from mt_nodes.relations.mutations.lidar.rays import returns, rows_of_share
from mt_nodes.relations.mutations.lidar.rows_lost import rows_of


@dataclass(frozen=True)
class PointsDuplicated(EachCloud):
    """Repeats a share of the returns, byte for byte, each right behind the one it repeats.

    Sensors in dual-return mode report one surface twice when strongest and last echo are the same (Velodyne VLP-16
    manual), and drivers that assemble overlapping packets do so, too. A second copy says nothing new of the world.
    An organised cloud has one place a beam and cannot hold one.

    Guaranteed: so many returns have a copy, all old points are there in their order.
    """

    share: float = param(
        0.1, low=0.0001, high=1.0, neutral=0.0001, help="share of the returns of each cloud that are there twice"
    )

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Choose the returns to repeat."""
        if cloud.organised:
            raise NotApplicable(f"organised {cloud.topic} has one place a beam, {cloud.height} x {cloud.width}")
        return {"rows": rows_of_share(rng, returns(cloud), self.share)}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Repeat the rows drawn."""
        times = np.ones(len(cloud), dtype=np.int64)
        times[draw["rows"]] = 2
        return cloud.with_raw(np.repeat(cloud.raw, times))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Take the copies out again and compare each with the return before it."""
        rows, wanted = rows_of(draw), max(1, round(self.share * len(returns(old))))
        if len(np.unique(rows)) != wanted or len(new) != len(old) + wanted:
            return f"{len(new)} points, expected {len(old)} and {wanted} copies"
        copies = rows + 1 + np.arange(wanted)
        if np.delete(new.raw, copies).tobytes() != old.raw.tobytes():
            return "an old point was changed, moved or lost"
        return None if new.raw[copies].tobytes() == old.raw[rows].tobytes() else "a copy differs from its return"

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Count the copies."""
        return Effects(numbers={"points_added": float(sum(len(draw["rows"]) for draw in draws.values()))})
