# SPDX-License-Identifier: Apache-2.0
"""Empty returns, written in the conventions of drivers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.firings import return_pairs
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.drawn_returns import rows_of
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud, emptied, proof_of_change
from mt_nodes.relations.mutations.lidar.placement import RANGE_FIELDS
from mt_nodes.relations.mutations.lidar.rays import returns, rows_of_share, smallest

_VALUES = {"nan": float("nan"), "zero": 0.0}


@dataclass(frozen=True)
class ReturnsEmptied(EachCloud):
    """Turns a share of the returns into empty ones that stay in the cloud, NaN or all zero.

    A driver that publishes every firing must mark those without an echo: ``sensor_msgs/PointCloud2`` has ``is_dense:
    false`` for points that are not finite (PCL drops those), others write the origin (Ouster's driver does). A stack
    must ignore both. Intensity and range fields of an empty return are 0.

    Guaranteed: ``round(share * n)`` of n returns (of a sensor in dual-return mode: firings, with all their returns), at
    least one, are empty in the chosen way; everything else is unchanged.
    """

    share: float = param(
        0.05, low=0.0001, high=0.99, neutral=0.0001, help="share of the returns of each cloud that become empty"
    )
    value: str = param("own", choices=("own", "nan", "zero"), help="the cloud's own empty value (else NaN), NaN or 0")

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Choose the returns to empty."""
        if self.value == "nan" and any(cloud.points.dtype[name].kind != "f" for name in "xyz"):
            raise NotApplicable(f"{cloud.topic} has whole-number coordinates, which cannot be NaN")
        firings = return_pairs(cloud)
        rows = rows_of_share(rng, firings.heads(returns(cloud)), self.share)
        return {"rows": smallest(firings.whole(rows))}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Empty the drawn rows."""
        return emptied(cloud, rows_of(draw), _VALUES.get(self.value))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Check coordinates, intensity and range of the emptied returns, and that the rest is unchanged."""
        rows = rows_of(draw)
        firings, known = return_pairs(old), returns(old)
        expected = max(1, round(self.share * int(np.count_nonzero(firings.first[known]))))
        emptied_rows = np.unique(rows)
        if int(np.count_nonzero(firings.first[emptied_rows])) != expected or firings.broken(emptied_rows):
            return f"{len(emptied_rows)} returns emptied, expected those of {expected} firings"
        zeroed = [*filter(old.single, RANGE_FIELDS), *old.echo_names]
        broken = proof_of_change(old, new, rows, (*"xyz", *zeroed))
        if broken is not None:
            return broken
        values = np.stack([new.points[name][rows].astype(np.float64) for name in "xyz"])
        nan, zero = bool(np.isnan(values).all()), bool((values == 0.0).all())
        if {"nan": not nan, "zero": not zero, "own": not (nan or zero)}[self.value]:
            return f"an emptied return is not empty in the way '{self.value}'"
        if nan and new.is_dense:
            return "is_dense is true beside points that are not finite"
        return "an emptied return has intensity or range" if any(new.points[n][rows].any() for n in zeroed) else None

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report the number of emptied returns."""
        return Effects(numbers={"returns_emptied": float(sum(len(draw["rows"]) for draw in draws.values()))})
