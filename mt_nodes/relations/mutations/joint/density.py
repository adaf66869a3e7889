# SPDX-License-Identifier: Apache-2.0
"""Air of varying density: a lattice of densities over the ground that drifts past the sensor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.relations.mutations.joint.chance import words

_NODES = 64
_BEARINGS, _BEARINGS_AT_ONCE = 512, 64
_STEP_M = 1.0


@dataclass(frozen=True)
class Patches:
    """Relative density of air, mean 1: bilinear over a periodic lattice of 64 x 64 nodes in the sensor's x-y plane.

    Nodes are uniform in 1 ± ``contrast``. The lattice is of columns: fog and dust lie in layers thicker than what
    a vehicle's LiDAR sees of them in height (assumed).
    ``key``: seed of the nodes, so that a draw need not hold them. ``size_m``: distance between nodes. ``moved_m``:
    drift of the air along x and y. ``turned_rad``: how far the sensor has turned to the left in the air.
    """

    key: int
    contrast: float
    size_m: float
    moved_m: tuple[float, float]
    turned_rad: float = 0.0

    def at(self, x_m: Floats, y_m: Floats) -> Floats:
        """Return the density (n,) at places (n,)."""
        nodes = _nodes(self.key, self.contrast)
        if self.turned_rad:
            c, s = np.cos(self.turned_rad), np.sin(self.turned_rad)
            x_m, y_m = c * x_m - s * y_m, s * x_m + c * y_m
        u, v = (np.asarray(p - moved) / self.size_m for p, moved in zip((x_m, y_m), self.moved_m, strict=True))
        i, j = np.floor(u), np.floor(v)
        s, t = u - i, v - j
        i0, j0 = (k.astype(np.int64) % _NODES for k in (i, j))
        i1, j1 = (i0 + 1) % _NODES, (j0 + 1) % _NODES
        low = nodes[i0, j0] * (1.0 - t) + nodes[i0, j1] * t
        high = nodes[i1, j0] * (1.0 - t) + nodes[i1, j1] * t
        return np.asarray(low * (1.0 - s) + high * s)

    def mean_to(self, azimuth_rad: Singles, range_m: Singles, farthest_m: float) -> Singles:
        """Return the mean density (n,) of beams from the sensor to ranges (n,), the farthest one's beyond it.

        From a table over bearing and range, bilinear. ``range_m`` is measured over ground, as in the proof.
        """
        table = _table(self, farthest_m)
        steps = table.shape[1] - 1
        a = (azimuth_rad + np.float32(np.pi)) * np.float32(_BEARINGS / (2.0 * np.pi))
        r = np.minimum(range_m * np.float32(1.0 / _STEP_M), np.float32(steps - 1e-3))
        i, j = a.astype(np.int32), r.astype(np.int32)
        a -= i
        r -= j
        at = (i % _BEARINGS) * (steps + 1) + j
        flat = table.reshape(-1)
        near, far = flat.take(at), flat.take(at + 1)
        near += r * (far - near)
        at += np.where(i % _BEARINGS == _BEARINGS - 1, -(_BEARINGS - 1) * (steps + 1), steps + 1)
        near_next, far = flat.take(at), flat.take(at + 1)
        near_next += r * (far - near_next)
        return np.asarray(near + a * (near_next - near))


@lru_cache(maxsize=8)
def _table(patches: Patches, farthest_m: float) -> Singles:
    """Mean density (bearings, ranges) from the sensor to each range, by the trapezoidal rule."""
    bearing = -np.pi + 2.0 * np.pi * np.arange(_BEARINGS) / _BEARINGS
    range_m = _STEP_M * np.arange(int(np.ceil(farthest_m / _STEP_M)) + 1)
    table = np.empty((_BEARINGS, len(range_m)), np.float32)
    # Some bearings at a time: every frame has its own table, because the air drifts.
    for start in range(0, _BEARINGS, _BEARINGS_AT_ONCE):
        some = slice(start, start + _BEARINGS_AT_ONCE)
        along = patches.at(np.cos(bearing[some, None]) * range_m, np.sin(bearing[some, None]) * range_m)
        table[some, 0] = along[:, 0]
        total = np.cumsum(0.5 * (along[:, 1:] + along[:, :-1]), axis=1)
        table[some, 1:] = total / np.arange(1, len(range_m))
    return table


@lru_cache(maxsize=8)
def _nodes(key: int, contrast: float) -> Floats:
    unit = words(key, _NODES * _NODES) * (2.0 / 2.0**64) - 1.0
    return np.asarray(1.0 + contrast * unit).reshape(_NODES, _NODES)
