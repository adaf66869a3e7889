# SPDX-License-Identifier: Apache-2.0
"""A cloud as a network takes it: raw, in pillars, or as maps seen from above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Ints, Singles
from mt_nodes.base.errors import UsageError
from mt_nodes.base.network_file import Tensor, TensorPort
from mt_nodes.base.params import param

Points = npt.NDArray[np.float32]

#: With so many returns in a cell its density is 1.
_DENSE = 64


@dataclass(frozen=True)
class CloudForm:
    """How a cloud is made into the network's input; rows of grids go along y and columns along x, both rising."""

    layout: str = param(
        "raw",
        choices=("raw", "pillars", "maps"),
        help="points (N, 4); or pillars (P, M, 4), counts (P,), places (P, 4: 0, 0, row, column); or maps (1, K, H, W)",
    )
    x_m: tuple[float, float] = param((0.0, 69.12), unit="m", help="from, to: farther points are left out")
    y_m: tuple[float, float] = param((-39.68, 39.68), unit="m", help="from, to")
    z_m: tuple[float, float] = param((-3.0, 1.0), unit="m", help="from, to")
    cell_m: float = param(0.16, low=0.01, high=10.0, unit="m", help="side of a cell or pillar")
    intensity_full_scale: float = param(1.0, low=0.001, high=1e6, help="intensity that is 1 to the network")
    max_pillars: int = param(40_000, low=1, high=10_000_000, help="pillars in all; those nearest to the sensor count")
    max_points: int = param(32, low=1, high=1000, help="points of a pillar; the first in order of x, y, z count")
    maps: tuple[str, ...] = param(
        ("height", "intensity", "density"),
        help="height of the highest return as a share of z_m, its intensity, ln(1 + count) / ln(64) up to 1",
    )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the grid."""
        (x0, x1), (y0, y1) = self.x_m, self.y_m
        return round((y1 - y0) / self.cell_m), round((x1 - x0) / self.cell_m)

    def tensors(self, points: Points, ports: Sequence[TensorPort]) -> list[Tensor]:
        """Return the inputs of a network, in the order of its ports, of points (N, 4) x, y, z, intensity.

        The order in which points came is nothing to it.
        Raises UsageError: the network's file names other inputs than the layout makes.
        """
        inside = _in_order(self._inside(points))
        if self.layout == "raw":
            batched = bool(ports) and len(ports[0].shape) == 3
            return self._fitting([inside[None] if batched else inside], ports)
        if self.layout == "maps":
            return self._fitting([self._maps(inside)[None]], ports)
        return _by_port(self._pillars(inside), ports)

    def _inside(self, points: Points) -> Points:
        keep = np.isfinite(points[:, :3]).all(axis=1)
        for column, (low, high) in enumerate((self.x_m, self.y_m, self.z_m)):
            keep &= (points[:, column] >= low) & (points[:, column] < high)
        chosen = points[keep, :4].astype(np.float32)
        chosen[:, 3] = np.nan_to_num(chosen[:, 3]) / np.float32(self.intensity_full_scale)
        return chosen

    def _cells(self, points: Points) -> tuple[Ints, Ints]:
        rows, columns = self.shape
        column, row = (
            ((points[:, i].astype(np.float64) - low) / self.cell_m) for i, low in ((0, self.x_m[0]), (1, self.y_m[0]))
        )
        return np.minimum(row.astype(np.int64), rows - 1), np.minimum(column.astype(np.int64), columns - 1)

    def _maps(self, points: Points) -> Singles:
        rows, columns = self.shape
        row, column = self._cells(points)
        cell, size = row * columns + column, rows * columns
        # The last of each cell is its highest.
        order = np.lexsort((points[:, 3], points[:, 2], cell))
        last = order[np.flatnonzero(np.diff(cell[order], append=-1))]
        maps = {name: np.zeros(size, dtype=np.float32) for name in ("height", "intensity", "density")}
        low, high = self.z_m
        maps["height"][cell[last]] = (points[last, 2] - low) / (high - low)
        maps["intensity"][cell[last]] = points[last, 3]
        maps["density"][:] = np.minimum(np.log1p(np.bincount(cell, minlength=size)) / np.log(_DENSE), 1.0)
        if unknown := [name for name in self.maps if name not in maps]:
            raise UsageError(f"cloud.maps: got {unknown[0]!r}, expected some of {', '.join(maps)}")
        return np.stack([maps[name] for name in self.maps]).reshape(-1, rows, columns)

    def _pillars(self, points: Points) -> list[Tensor]:
        row, column = self._cells(points)
        pillar, first, member = np.unique(row * self.shape[1] + column, return_index=True, return_inverse=True)
        order = np.argsort(member, kind="stable")
        start = np.searchsorted(member[order], np.arange(len(pillar)))
        place = np.arange(len(points)) - start[member[order]]
        near = np.argsort(np.hypot(points[first, 0], points[first, 1]), kind="stable")[: self.max_pillars]
        rank = np.full(len(pillar), -1, dtype=np.int64)
        rank[near] = np.arange(len(near))
        valid = (place < self.max_points) & (rank[member[order]] >= 0)
        voxels = np.zeros((len(near), self.max_points, 4), dtype=np.float32)
        voxels[rank[member[order]][valid], place[valid]] = points[order][valid]
        counts = np.minimum(np.bincount(member, minlength=len(pillar)), self.max_points)[near]
        places = np.zeros((len(near), 4), dtype=np.int64)
        places[:, 2], places[:, 3] = np.divmod(pillar[near], self.shape[1])
        return [voxels, counts.astype(np.int64), places]

    def _fitting(self, tensors: list[Tensor], ports: Sequence[TensorPort]) -> list[Tensor]:
        if ports and len(ports) != len(tensors):
            names = ", ".join(port.name for port in ports)
            raise UsageError(f"cloud.layout {self.layout} makes {len(tensors)} input, but the network takes {names}")
        return tensors


def _in_order(points: Points) -> Points:
    x, y, z, intensity = points.T
    return points[np.lexsort((intensity, z, y, x))]


def _by_port(tensors: list[Tensor], ports: Sequence[TensorPort]) -> list[Tensor]:
    """Return pillars, counts and places in a network's order, told apart by their numbers of dimensions."""
    if not ports:
        return tensors
    by_dimensions = {3: tensors[0], 1: tensors[1], 2: tensors[2]}
    if sorted(len(port.shape) for port in ports) != [1, 2, 3]:
        got = ", ".join(f"{port.name} {port.shape}" for port in ports)
        raise UsageError(f"cloud.layout pillars: the network takes {got}, expected pillars, counts and places")
    return [by_dimensions[len(port.shape)] for port in ports]
