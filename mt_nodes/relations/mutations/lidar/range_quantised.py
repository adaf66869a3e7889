# SPDX-License-Identifier: Apache-2.0
"""Ranges in coarse steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud
from mt_nodes.relations.mutations.lidar.rays import (
    at_rows,
    proof_on_beam,
    ranges_m,
    refuse_whole_numbers,
    returns,
    rounding_m,
    with_ranges,
)


@dataclass(frozen=True)
class RangeQuantised(EachCloud):
    """Rounds every range to whole steps.

    ``r' = step_m * round(r / step_m)``, one step at least. Packets hold ranges as whole numbers: in steps of 2 mm
    (Velodyne's HDL-32E manual), other sensors' finer or coarser; that compression for logging takes coarser ones is
    assumed.

    Guaranteed: every return is on its beam at a whole number of steps and moved by half a step at most (from within
    half a step of the sensor: by one), range fields follow, nothing else changed.
    """

    random = False

    step_m: float = param(
        0.004, low=1e-4, high=1.0, unit="m", neutral=0.0001, help="all ranges become multiples of this"
    )

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Leave nothing to chance."""
        refuse_whole_numbers(cloud)
        returns(cloud)
        return {}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Round every range."""
        at = at_rows(cloud, returns(cloud))
        range_m = ranges_m(cloud, at)
        return with_ranges(cloud, at, range_m, np.maximum(np.rint(range_m / self.step_m), 1.0) * self.step_m)

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Divide the new ranges by the step, and measure how far returns moved."""
        at = at_rows(old, returns(old))
        broken = proof_on_beam(old, new, at)
        if broken is not None:
            return broken
        before, after = ranges_m(old, at), ranges_m(new, at)
        slack, left = rounding_m(new, before + self.step_m), after % self.step_m
        if not (np.minimum(left, self.step_m - left) <= slack).all():
            return f"a range is no multiple of {self.step_m:g} m"
        most = np.where(before < self.step_m / 2, self.step_m, self.step_m / 2)
        moved = np.abs(after - before)
        return None if (moved <= most + slack).all() else f"a return moved by {moved.max():.3g} m"
