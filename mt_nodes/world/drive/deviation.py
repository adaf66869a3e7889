# SPDX-License-Identifier: Apache-2.0
"""Distance between two ways that were driven at about the same time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mt_nodes.base.arrays import Floats

#: Distance measures between two ways; see :func:`apart_m`.
ALIGNMENTS = ("frechet", "dtw", "time")


def apart_m(one: Floats, other: Floats, alignment: str, within_rows: int) -> float:
    """Return the distance of two ways, (N, 2) and (M, 2) places at even times, in metres.

    ``time``: the largest distance at one time. ``frechet``: the least possible largest distance when both ways are
    traversed forwards, at most ``within_rows`` out of step (the discrete Fréchet distance: Eiter and Mannila, Technical
    Report CD-TR 94/64, TU Vienna, 1994). ``dtw``: the least possible mean distance (dynamic time warping with a band, a
    diagonal step counting twice: Sakoe and Chiba, IEEE Transactions on Acoustics, Speech, and Signal Processing 26(1),
    1978). The longer way counts up to where the shorter one ends, within the band: of two drives that end for the same
    reason, one may end a little later. Infinite if the lengths differ by more.
    """
    if abs(len(one) - len(other)) > within_rows:
        return float("inf")
    if alignment == "time":
        rows = min(len(one), len(other))
        return float(np.linalg.norm(one[:rows] - other[:rows], axis=1).max())
    cost = np.linalg.norm(one[:, None] - other[None], axis=-1)
    off = np.arange(len(one))[:, None] - np.arange(len(other))[None]
    cost[np.abs(off) > within_rows] = np.inf
    if alignment == "frechet":
        return float(_ends(_walked(cost, np.maximum, 1.0)).min())
    steps = np.add.outer(np.arange(1, len(one) + 1), np.arange(1, len(other) + 1))
    return float(_ends(_walked(cost, np.add, 2.0) / steps).min())


def _walked(cost: Floats, join: Callable[[Floats, Floats], Floats], diagonal: float) -> Floats:
    """Return (N, M) the least joined cost of a path from the first corner to each cell.

    Cells of one antidiagonal depend on the two before only, so each is one step for NumPy.
    """
    rows, columns = cost.shape
    best = np.full((rows + 1, columns + 1), np.inf)
    best[0, 0] = 0.0
    for total in range(2, rows + columns + 1):
        i = np.arange(max(1, total - columns), min(rows, total - 1) + 1)
        j = total - i
        cell_cost = cost[i - 1, j - 1]
        straight = join(np.minimum(best[i - 1, j], best[i, j - 1]), cell_cost)
        best[i, j] = np.minimum(straight, join(best[i - 1, j - 1], diagonal * cell_cost))
    return best[1:, 1:]


def _ends(walked: Floats) -> Floats:
    return np.concatenate([walked[-1], walked[:, -1]])
