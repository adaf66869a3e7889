# SPDX-License-Identifier: Apache-2.0
"""Outputs of perception beside obstacles: free space, and the predicted paths of obstacles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Ints, Mask
from mt_nodes.data.detections import Detections

#: Value of a cell of which nothing is known, and the largest value, as in ``nav_msgs/OccupancyGrid``.
UNKNOWN_CELL, CERTAIN_CELL = -1, 100


@dataclass(frozen=True, eq=False)
class FreeSpace:
    """An occupancy grid on the ground.

    Attributes:
        stamp_ns: None where the message carries none.
        resolution_m: side of a cell. origin: x, y, yaw of the outer corner of cell (0, 0), in ``frame_id``.
        cells: (H, W) int8: occupied with 0 to 100 percent, or :data:`UNKNOWN_CELL`. Columns run along the grid's x,
            rows along its y.
    """

    frame_id: str
    stamp_ns: int | None
    resolution_m: float
    origin: tuple[float, float, float]
    cells: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return int(self.cells.size)

    @property
    def broken(self) -> str:
        """What of it means nothing; empty where all is sound."""
        if len(self) and not (np.isfinite(self.resolution_m) and self.resolution_m > 0.0):
            return f"a grid with cells of {self.resolution_m:g} m"
        if not np.isfinite(self.origin).all():
            return "a grid with an origin that is not finite"
        bad = int(((self.cells < UNKNOWN_CELL) | (self.cells > CERTAIN_CELL)).sum())
        return f"{bad} cells of its grid outside -1 to 100" if bad else ""

    def centers_m(self, mask: Mask) -> Floats:
        """Return the centres (N, 2) in ``frame_id`` of the cells of a mask (H, W)."""
        row, column = np.nonzero(mask)
        along = (np.column_stack([column, row]) + 0.5) * self.resolution_m
        x, y, yaw = self.origin
        turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
        return np.asarray(along @ turn.T + (x, y))

    def values_at(self, places_m: Floats) -> Ints:
        """Return the values (N,) of the cells at places (N, 2) in ``frame_id``; unknown outside of the grid."""
        x, y, yaw = self.origin
        turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
        # A centre of a cell of the same grid stays half a cell away from every edge, whatever is rounded.
        column, row = np.floor((places_m - (x, y)) @ turn / self.resolution_m).astype(np.int64).T
        height, width = self.cells.shape
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        values = np.full(len(places_m), UNKNOWN_CELL, dtype=np.int64)
        values[inside] = self.cells[row[inside], column[inside]]
        return values


class PredictedPath(NamedTuple):
    """One way that an obstacle may take: its probability, and (T,) times from now in s and (T, 2) places at them."""

    probability: float
    time_s: Floats
    place_m: Floats

    @property
    def finite(self) -> bool:
        """Whether it consists of finite numbers, in the order of time."""
        numbers = np.column_stack([self.time_s, self.place_m])
        return bool(np.isfinite([self.probability]).all() and np.isfinite(numbers).all() and _rises(self.time_s))


def _rises(time_s: Floats) -> bool:
    return bool((np.diff(time_s) > 0.0).all())


@dataclass(frozen=True, eq=False)
class PredictedObjects:
    """Obstacles with the ways that they may take.

    Attributes:
        objects: where they are now. paths: (M,) of each obstacle its paths, in ``frame_id``; none where none is given.
    """

    frame_id: str
    stamp_ns: int | None
    objects: Detections
    paths: tuple[tuple[PredictedPath, ...], ...]

    def __post_init__(self) -> None:
        if len(self.paths) != len(self.objects):
            raise ValueError(f"got paths of {len(self.paths)} obstacles for {len(self.objects)} obstacles")

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def score(self) -> Floats:
        """(M,) of the obstacles."""
        return self.objects.score

    @property
    def label(self) -> npt.NDArray[np.str_]:
        """(M,) of the obstacles."""
        return self.objects.label

    @property
    def broken(self) -> str:
        """What of it means nothing; empty where all is sound."""
        bad = sum(not path.finite for rows in self.paths for path in rows)
        if bad:
            return f"{bad} predicted paths with numbers that are not finite, or times out of order"
        likely = max((path.probability for rows in self.paths for path in rows), default=0.0)
        return f"predicted paths with a probability of up to {likely:g}, expected 0 to 1" if likely > 1.01 else ""

    def renamed(self, classes: Mapping[str, str]) -> PredictedObjects:
        """Return it with renamed classes; see :meth:`~mt_nodes.data.outputs.Output.renamed`."""
        return replace(self, objects=self.objects.renamed(classes))
