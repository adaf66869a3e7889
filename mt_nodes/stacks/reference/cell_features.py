# SPDX-License-Identifier: Apache-2.0
"""A cloud as a bird's-eye picture for a convolutional network: eight features per grid cell.

The numbers, their order and the grid are those of Apollo's segmentation network (ApolloAuto/apollo,
``docs/specs/3d_obstacle_perception.md`` and the feature generator of ``cnn_segmentation``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Cells = npt.NDArray[np.int64]

MAX_HEIGHT, MEAN_HEIGHT, COUNT, DIRECTION, TOP_INTENSITY, MEAN_INTENSITY, DISTANCE, OCCUPIED = range(8)
FEATURES = 8
#: Returns farther below or above the sensor are left out.
HEIGHT_LIMIT_M = 5.0
#: Intensities are told apart in so many steps.
_STEPS = 1 << 12
_MM = 1000.0


@dataclass(frozen=True)
class CellGrid:
    """A square grid around the sensor; the first row is farthest ahead, the first column farthest left.

    ``cells``: along each side. ``range_m``: from the sensor to each side.
    """

    cells: int = 640
    range_m: float = 60.0

    @property
    def cell_m(self) -> float:
        """Side length of a cell."""
        return 2.0 * self.range_m / self.cells

    def cell_of(self, x_m: npt.NDArray[np.floating], y_m: npt.NDArray[np.floating]) -> Cells:
        """Return the cell number (N,) of each point, row by row; −1 outside the grid and for non-finite points."""
        row, column = (np.floor((self.range_m - v.astype(np.float64)) / self.cell_m) for v in (x_m, y_m))
        inside = (row >= 0) & (row < self.cells) & (column >= 0) & (column < self.cells)
        return np.where(inside, np.where(inside, row, 0) * self.cells + np.where(inside, column, 0), -1).astype(
            np.int64
        )

    @cached_property
    def centres_m(self) -> npt.NDArray[np.float64]:
        """Coordinates of the cell centres (cells,): ahead for rows, to the left for columns."""
        return np.asarray(self.range_m - (np.arange(self.cells) + 0.5) * self.cell_m)

    @cached_property
    def _empty(self) -> Floats:
        """Features (8, cells²) of an empty cloud: direction and distance."""
        x, y = self.centres_m[:, None], self.centres_m[None, :]
        out = np.zeros((FEATURES, self.cells**2), dtype=np.float32)
        out[DIRECTION] = (np.arctan2(y, x) / (2.0 * np.pi)).ravel()
        out[DISTANCE] = (np.hypot(x, y) / 60.0 - 0.5).ravel()
        return out

    def features(self, points: Floats, intensity_full_scale: float) -> Floats:
        """Return the features (8, cells, cells) of a cloud; they do not depend on the order of its points.

        Heights are in metres, the count is ln(1 + n), intensities are shares of the full scale, the direction is
        in turns, the distance in 60 m less a half.
        ``points``: (N, 4) x, y, z, intensity in the frame of the sensor.
        """
        low_or_high = ~(np.abs(points[:, 2]) < HEIGHT_LIMIT_M)
        cell = self.cell_of(points[:, 0], points[:, 1])
        cell[low_or_high] = -1
        valid = cell >= 0
        cell = cell[valid]
        # Whole numbers: their sums are the same in any order.
        z_mm = np.rint(points[valid, 2].astype(np.float64) * _MM).astype(np.int64)
        share = np.nan_to_num(np.clip(points[valid, 3].astype(np.float64) / intensity_full_scale, 0.0, 1.0))
        step = np.rint(share * (_STEPS - 1)).astype(np.int64)
        return self._gathered(cell, z_mm, step).reshape(FEATURES, self.cells, self.cells)

    def _gathered(self, cell: Cells, z_mm: Cells, step: Cells) -> Floats:
        size, lowest = self.cells**2, -round(HEIGHT_LIMIT_M * _MM)
        count = np.bincount(cell, minlength=size)
        full = np.flatnonzero(count)
        some = count[full]
        top = np.zeros(size, dtype=np.int64)
        # Of the highest returns the brightest.
        np.maximum.at(top, cell, (z_mm - lowest) * _STEPS + step)
        height, brightness = np.divmod(top[full], _STEPS)
        out = self._empty.copy()
        out[MAX_HEIGHT, full] = (height + lowest) / _MM
        out[MEAN_HEIGHT, full] = np.bincount(cell, z_mm, size)[full] / some / _MM
        out[COUNT, full] = np.log1p(some)
        out[TOP_INTENSITY, full] = brightness / (_STEPS - 1)
        out[MEAN_INTENSITY, full] = np.bincount(cell, step, size)[full] / some / (_STEPS - 1)
        out[OCCUPIED, full] = 1.0
        return out
