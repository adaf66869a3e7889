# SPDX-License-Identifier: Apache-2.0
"""Sparse ray casting: every second pixel in each direction, and pixels in between only where neighbours differ."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Mask, Rows, Singles
from mt_nodes.world.drive.solids import Solids, rays_of

Shape = tuple[int, int]
#: No triangle; unknown.
_SKY, _UNKNOWN = -1, 2


def cast_sparingly(
    solids: Solids, origin_m: Singles, directions: Singles, shape: Shape, fine: Mask
) -> tuple[Singles, Rows]:
    """Cast the rays of a picture of h × w pixels; pixels between four that hit the same triangle hit it, too.

    Args:
        origin_m: (3,) of all rays. directions: (h·w, 3).
        fine: (h·w,) pixels that are always cast, because narrow bodies may be visible there.

    Returns:
        range in metres (h·w,), infinite without a hit; triangle (h·w,), 0 without a hit.
    """
    cell, on_lattice = _cells(shape)
    range_m, triangle = np.full(len(cell), np.inf, np.float32), np.zeros(len(cell), np.int64)

    def cast(rows: Rows) -> None:
        hits = solids.cast(rays_of(origin_m, directions.take(rows, axis=0)))
        range_m[rows], triangle[rows] = hits.range_m, hits.triangle

    lattice = np.flatnonzero(on_lattice)
    cast(lattice)
    node_label = np.where(np.isfinite(range_m.take(lattice)), triangle.take(lattice), _SKY).astype(np.int32)
    agrees, label = (values.take(cell) for values in (_agrees(node_label, shape), node_label))
    known = agrees & ~fine & ~on_lattice
    rows = np.flatnonzero(known & (label != _SKY))
    triangle[rows] = label.take(rows)
    range_m[rows] = solids.planes_m(origin_m, directions.take(rows, axis=0), triangle.take(rows))
    cast(np.flatnonzero(~known & ~on_lattice))
    return range_m, triangle


def sampled_sparsely(rows: Rows, shape: Shape, ask: Callable[[Rows], Mask]) -> Mask:
    """Return the values (n,) at ascending pixels (n,) of a picture of h × w; interpolated where neighbours agree.

    ``ask``: values of ``rows`` at these indices (k,).
    """
    cell, on_lattice = _cells(shape)
    cell, on_lattice = cell.take(rows), on_lattice.take(rows)
    answers = np.zeros(len(rows), bool)
    first = np.flatnonzero(on_lattice)
    answers[first] = ask(first)
    label = np.full(((shape[0] + 1) // 2) * ((shape[1] + 1) // 2), _UNKNOWN, np.int32)
    label[cell.take(first)] = answers.take(first)
    known = _agrees(label, shape) & (label != _UNKNOWN)
    others = np.flatnonzero(known.take(cell) & ~on_lattice)
    answers[others] = label.take(cell.take(others)) == 1
    rest = np.flatnonzero(~known.take(cell) & ~on_lattice)
    answers[rest] = ask(rest)
    return answers


def _agrees(label: npt.NDArray[np.int32], shape: Shape) -> Mask:
    """Return whether each node (n,) of the lattice has the label of those to the right, below, and diagonal."""
    grid = label.reshape((shape[0] + 1) // 2, (shape[1] + 1) // 2)
    right = np.concatenate([grid[:, 1:], grid[:, -1:]], axis=1) == grid
    below = np.concatenate([grid[1:], grid[-1:]]) == grid
    both = right & below
    both[:-1] &= right[1:]
    return np.asarray(both.reshape(-1))


@lru_cache(maxsize=8)
def _cells(shape: Shape) -> tuple[Rows, Mask]:
    """Return for each pixel (h·w,) the lattice node at it or next to it above and left, and whether it is at it."""
    row, column = np.indices(shape)
    cell = row // 2 * ((shape[1] + 1) // 2) + column // 2
    return cell.reshape(-1), ((row % 2 == 0) & (column % 2 == 0)).reshape(-1)
