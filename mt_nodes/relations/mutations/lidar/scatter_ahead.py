# SPDX-License-Identifier: Apache-2.0
"""Noise points that are drawn before their cloud comes: all but what the cloud decides, with the same result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Ints
from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.lidar.placement import Space, batch_size, in_window, limit_m2, rounded

_WORDS = 1 << 32


@dataclass(frozen=True, eq=False)
class ScatterAhead:
    """What :func:`scattered` would draw first, after rows in a cloud of any size.

    Attributes:
        rng: behind all of this, for what is drawn next. space, layout: for which it holds.
        words: (count,) of 32 bits, rising, that NumPy makes the rows of (Lemire's method, which keeps their order).
        xy: (k, 2) places in the sensor's frame where a point is allowed if its height is. height: (k,), 0 to 1.
        reached_m2: (k,) squares of their distance, heights left out.
    """

    rng: np.random.Generator
    space: Space
    layout: np.dtype[np.void]
    words: npt.NDArray[np.uint64]
    xy: Floats
    height: Floats
    reached_m2: Floats

    @classmethod
    def draw(cls, rng: np.random.Generator, count: int, like: Cloud, space: Space) -> ScatterAhead | None:
        """Draw for a cloud like another one; None where a point's height changes its place in the ground plan."""
        if like.organised or (space.to_region[:2, 2] != 0.0).any():
            return None
        words = np.sort(rng.integers(0, _WORDS, count, dtype=np.uint32)).astype(np.uint64)
        unit = rng.random((3, batch_size(count)))
        flat = rounded(like, space.lift(in_window(space.window(), unit), np.zeros(unit.shape[1])))
        allowed = np.flatnonzero(space.allows(flat))
        xy = flat[allowed, :2]
        squares = xy * xy
        return cls(rng, space, like.points.dtype, words, xy, unit[2, allowed], squares[:, 0] + squares[:, 1])

    def fits(self, cloud: Cloud, space: Space) -> bool:
        """Whether it holds for a cloud and a space."""
        ours = self.space
        same = not cloud.organised and cloud.points.dtype == self.layout and space.region is ours.region
        return same and space.to_region.tobytes() == ours.to_region.tobytes()

    def rows(self, count: int) -> Ints | None:
        """Return as many ascending rows below ``count`` as were asked for; None where NumPy would draw one again."""
        product = self.words * np.uint64(count)
        left = product & np.uint64(_WORDS - 1)
        if not 1 < count < _WORDS or left.min(initial=_WORDS) < _WORDS % count:
            return None
        return (product >> np.uint64(32)).astype(np.int64)

    def points(self, cloud: Cloud, z_range_m: tuple[float, float]) -> Floats:
        """Return those points (k, 3) that a cloud of these heights allows, in order."""
        z_low, z_high = z_range_m
        kind = cloud.points.dtype["z"].newbyteorder("=")
        z_m = (z_low + (z_high - z_low) * self.height).astype(kind).astype(np.float64)
        xyz = np.empty((3, len(z_m)))
        xyz[:2], xyz[2] = self.xy.T, z_m
        allowed = self.reached_m2 + z_m * z_m <= limit_m2(self.space)
        return xyz.T if allowed.all() else xyz.T[allowed]
