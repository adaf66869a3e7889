# SPDX-License-Identifier: Apache-2.0
"""The ground around the ego vehicle in cells of range and bearing, for the obstacles of verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Ints

#: Size of a cell.
RANGE_M, BEARING_DEG = 10, 30
#: Key in the detail of a verdict: class -> rows [nearest m, rightmost deg, obstacles].
JUDGED_IN = "judged_in"


class Polar(NamedTuple):
    """A cell: from ``range_m`` on, 10 m deep, and from ``bearing_deg`` on, 30° to the left; 0° is ahead."""

    range_m: int
    bearing_deg: int


def polar_of(xy_m: npt.ArrayLike) -> Ints:
    """Return the cells (N, 2) of places (N, 2), x ahead and y to the left in metres, as :class:`Polar` has them."""
    places = np.asarray(xy_m, dtype=np.float64).reshape(-1, 2)
    ranges = np.hypot(places[:, 0], places[:, 1]) // RANGE_M * RANGE_M
    bearings = np.degrees(np.arctan2(places[:, 1], places[:, 0])) // BEARING_DEG * BEARING_DEG
    # Straight behind is one place, whether arctan2 calls it 180° or -180°.
    bearings = np.where(bearings >= 180, -180, bearings)
    return np.stack([ranges, bearings], axis=1).astype(np.int64)


def counted_cells(xy_m: npt.ArrayLike, labels: npt.ArrayLike) -> dict[str, list[list[int]]]:
    """Return the cells of obstacles (N, 2), by class (N,), each with its number of obstacles; sorted."""
    cells, names = polar_of(xy_m), np.asarray(labels, dtype=str).reshape(-1)
    counted: dict[str, list[list[int]]] = {}
    for label in np.unique(names).tolist():
        rows, counts = np.unique(cells[names == label], axis=0, return_counts=True)
        counted[label] = [[*row, count] for row, count in zip(rows.tolist(), counts.tolist(), strict=True)]
    return counted


def cells_in(detail: Mapping[str, Any]) -> list[tuple[str, Polar]]:
    """Return class and cell of the obstacles that a verdict's detail lists as judged."""
    return [(label, _cell(row[0], row[1])) for label, rows in detail.get(JUDGED_IN, {}).items() for row in rows]


@lru_cache(maxsize=4096)
def _cell(range_m: int, bearing_deg: int) -> Polar:
    """Return a cell; the same one each time, as a report of a million pairs names ten million."""
    return Polar(range_m, bearing_deg)
