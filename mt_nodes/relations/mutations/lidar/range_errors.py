# SPDX-License-Identifier: Apache-2.0
"""Range errors: a bias, or coarse steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud
from mt_nodes.relations.mutations.lidar.rays import (
    at_rows,
    limited,
    proof_on_beam,
    ranges_m,
    refuse_whole_numbers,
    returns,
    rounding_m,
    with_ranges,
)


@dataclass(frozen=True)
class RangeBiased(EachCloud):
    """Lengthens or shortens every range, by an offset and in proportion.

    ``r' = (1 + scale) * r + offset_m`` has the two errors of a time-of-flight sensor: an uncalibrated delay in its
    electronics shifts every range, a clock off its frequency scales them. Data sheets give 2 to 3 cm of accuracy
    (Velodyne HDL-64E: below 2 cm). A range is limited to ``min_range_m`` to ``max_range_m`` (one that was beyond, to
    its old value).

    Guaranteed: every return is on its beam at that range; range fields follow; nothing else changes.
    """

    random = False

    offset_m: float = param(0.02, low=-2.0, high=2.0, unit="m", neutral=0.0, help="added to every range")
    scale: float = param(0.0, low=-0.1, high=0.1, neutral=0.0, help="added to every range as a share of it")
    min_range_m: float = param(
        0.5, low=0.01, high=10.0, unit="m", aspect="fixed", help="the sensor sees nothing nearer"
    )
    max_range_m: float = param(120.0, low=1.0, high=1000.0, unit="m", aspect="fixed", help="the sensor's range")

    def __post_init__(self) -> None:
        if self.offset_m == 0.0 and self.scale == 0.0:
            raise UsageError("offset_m and scale are both 0, which changes nothing")

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Nothing is random."""
        refuse_whole_numbers(cloud)
        returns(cloud)
        return {}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Move every return along its beam."""
        at = at_rows(cloud, returns(cloud))
        range_m = ranges_m(cloud, at)
        return with_ranges(cloud, at, range_m, self.biased(range_m))

    def biased(self, range_m: Floats) -> Floats:
        """Return the sensor's ranges (n,) for true ones."""
        return limited(range_m * (1.0 + self.scale) + self.offset_m, range_m, self.min_range_m, self.max_range_m)

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Measure the change of every range."""
        at = at_rows(old, returns(old))
        broken = proof_on_beam(old, new, at)
        if broken is not None:
            return broken
        before, after = ranges_m(old, at), ranges_m(new, at)
        free = (after > self.min_range_m * (1 + 1e-6)) & (after < self.max_range_m * (1 - 1e-6))
        off = np.abs((after - before)[free] - self.scale * before[free] - self.offset_m)
        if not (off <= rounding_m(new, before[free])).all():
            return f"a range is {off.max():.3g} m off the formula"
        low, high = min(self.min_range_m, float(before.min())), max(self.max_range_m, float(before.max()))
        inside = (after >= low - rounding_m(new, after)) & (after <= high + rounding_m(new, after))
        return None if inside.all() else f"ranges from {after.min():.2f} to {after.max():.2f} m leave the sensor's"


@dataclass(frozen=True)
class RangeQuantised(EachCloud):
    """Rounds every range to whole steps.

    ``r' = step_m * round(r / step_m)``, at least one step. Packets hold ranges as integers: in steps of 2 mm
    (Velodyne's HDL-32E manual), finer or coarser for other sensors; it is assumed that compression for logging uses
    coarser ones.

    Guaranteed: every return is on its beam at a whole number of steps, moved by at most half a step (within half a step
    of the sensor, by at most one); range fields follow; nothing else changes.
    """

    random = False

    step_m: float = param(
        0.004, low=1e-4, high=1.0, unit="m", neutral=0.0001, help="all ranges become multiples of this"
    )

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Nothing is random."""
        refuse_whole_numbers(cloud)
        returns(cloud)
        return {}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Round every range."""
        at = at_rows(cloud, returns(cloud))
        range_m = ranges_m(cloud, at)
        return with_ranges(cloud, at, range_m, np.maximum(np.rint(range_m / self.step_m), 1.0) * self.step_m)

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Divide the new ranges by the step, and measure the displacements."""
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
