# SPDX-License-Identifier: Apache-2.0
"""Ground removal by local cells: no plane fit, no random choice, nothing that a far point could shift."""

from __future__ import annotations

import numpy as np

from mt_nodes.base.arrays import Floats, Ints

CELL_MM = 1000
SUPPORT = 3
REACH_CELLS = 3
SLOPE_MM = 100.0
_Z_BITS = 21


def plausible_mm(xyz_mm: Ints) -> Floats:
    """Return how far (N,) from z = 0 the road can be at each point: 0.5 m plus 5 % of the distance."""
    return 500.0 + 0.05 * np.hypot(xyz_mm[:, 0], xyz_mm[:, 1])


def height_mm(xyz_mm: Ints) -> Floats:
    """Return (N,) the height of each point above the ground around it.

    A cell of 1 m takes its third-lowest point, so that one or two stray ones below the road do not count; a cell
    with fewer points, or whose value cannot be road, has none. Every cell then takes the lowest value within 3 cells,
    raised by 10 % of the way, so that a cell filled by an obstacle gets its neighbours' ground. Where there is
    none at all the ground is z = 0.
    ``xyz_mm``: (N, 3) points in a frame that stands on the road, N ≥ 1.
    """
    # Column by column: NumPy takes several times as long over rows of two.
    row, column = (xyz_mm[:, axis] // CELL_MM for axis in (0, 1))
    row, column = row - row.min(), column - column.min()
    rows, columns = int(row.max()) + 1, int(column.max()) + 1
    address = row * columns + column
    low = _third_lowest(address, xyz_mm[:, 2], rows * columns, plausible_mm(xyz_mm)).reshape(rows, columns)
    for _ in range(REACH_CELLS):
        low = np.minimum(low, _lowest_around(low) + SLOPE_MM)
    low[~np.isfinite(low)] = 0.0
    return np.asarray(xyz_mm[:, 2] - low.reshape(-1)[address])


def _lowest_around(values: Floats) -> Floats:
    """Return the minimum over each cell (R, C) and its eight neighbours.

    ``scipy.ndimage.minimum_filter`` returns the same, but its import takes longer than a stack's process otherwise
    needs to start.
    """
    for _ in range(2):
        low = values.copy()
        np.minimum(low[1:], values[:-1], out=low[1:])
        np.minimum(low[:-1], values[1:], out=low[:-1])
        values = low.T
    return values


def _third_lowest(address: Ints, z_mm: Ints, cells: int, plausible: Floats) -> Floats:
    """Return the third-lowest plausible z (cells,) of each cell; infinite where unknown."""
    usable = z_mm >= -plausible
    half = 1 << (_Z_BITS - 1)
    order = np.sort((address[usable] << _Z_BITS) + (z_mm[usable] + half))
    occupant = order >> _Z_BITS
    third = np.flatnonzero(np.diff(occupant, prepend=-1)) + SUPPORT - 1
    third = third[third < len(order)]
    third = third[occupant[third] == occupant[third - SUPPORT + 1]]
    limit = np.zeros(cells)
    limit[address] = plausible
    low = np.full(cells, np.inf)
    low[occupant[third]] = (order[third] & ((1 << _Z_BITS) - 1)) - half
    low[low > limit] = np.inf
    return low
