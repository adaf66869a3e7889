# SPDX-License-Identifier: Apache-2.0
"""Solid modelling with distance fields: round cones, ellipsoids and boxes, blended, then meshed.

A field is sampled on a grid. Parts are blended by the polynomial smooth minimum (I. Quilez, "Smooth minimum", 2013),
and its zero surface becomes triangles by naive surface nets (S. F. F. Gibson, "Constrained elastic surface nets",
MICCAI 1998): one vertex per cell that the surface crosses, at the mean of its crossings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Ints, Mask, Singles

Vector = tuple[float, float, float]
#: Distance (…) of places (…, 3) from the surface of a part, negative inside.
Distance = Callable[[Singles], Singles]

_FAR_M = 1.0
_CORNERS = np.array(list(product((0, 1), repeat=3)))
#: The twelve edges of a cell as pairs of its corners.
_EDGES = [(a, b) for a in range(8) for b in range(a + 1, 8) if np.abs(_CORNERS[a] - _CORNERS[b]).sum() == 1]


@dataclass(frozen=True, eq=False)
class Net:
    """A surface: vertices (V, 3), triangles (T, 3), unit normals (V, 3), and the part that each vertex is of (V,)."""

    vertices_m: Singles
    triangles: npt.NDArray[np.uint32]
    normals: Singles
    part: npt.NDArray[np.int16]


class SolidField:
    """A solid, part by part, sampled on a grid.

    ``low_m``, ``high_m``: corners of the box that contains it. ``step_m``: of the grid.
    """

    def __init__(self, low_m: Vector, high_m: Vector, step_m: float) -> None:
        self._low, self._step = np.array(low_m, np.float32), step_m
        self._shape = tuple(int(np.ceil((h - lo) / step_m)) + 1 for lo, h in zip(low_m, high_m, strict=True))
        self._distance = np.full(self._shape, _FAR_M, np.float32)
        self._part = np.full(self._shape, -1, np.int16)

    def add(self, part: int, distance: Distance, low_m: Singles, high_m: Singles, blend_m: float = 0.0) -> None:
        """Unite the solid with a part within a box; ``blend_m`` is the width over which both melt."""
        box = self._box(low_m - blend_m - 2 * self._step, high_m + blend_m + 2 * self._step)
        if any(s.start >= s.stop for s in box):
            return
        new, old = distance(self._places(box)), self._distance[box]
        nearer = new < old
        self._part[box][nearer] = part
        mix = np.maximum(blend_m - np.abs(old - new), 0.0)
        self._distance[box] = np.minimum(old, new) - (mix * mix / (4.0 * blend_m) if blend_m > 0.0 else 0.0)

    def carve(self, distance: Distance, low_m: Singles, high_m: Singles) -> None:
        """Take a part out of the solid."""
        box = self._box(low_m - 2 * self._step, high_m + 2 * self._step)
        self._distance[box] = np.maximum(self._distance[box], -distance(self._places(box)))

    def displace(self, shift: Callable[[Singles, npt.NDArray[np.int16]], Singles]) -> None:
        """Move the surface outwards by ``shift(places, part)`` metres, which must be small."""
        near = np.abs(self._distance) < 3.0 * self._step
        places = np.argwhere(near).astype(np.float32) * np.float32(self._step) + self._low
        self._distance[near] -= shift(places, self._part[near])

    def net(self) -> Net:
        """Return the surface."""
        # A border outside the solid closes what reaches the end of the grid.
        vertices, triangles, cells = surface_net(np.pad(self._distance, 1, constant_values=_FAR_M))
        vertices, cells = vertices - np.float32(1.0), np.clip(cells - 1, 0, np.array(self._shape) - 2)
        part = self._part[tuple((cells + 1).T)]
        low = self._part[tuple(cells.T)]
        part = np.where(part < 0, low, part)
        normals = _gradient(self._distance, vertices)
        return Net(vertices * np.float32(self._step) + self._low, triangles, normals, part)

    def _box(self, low_m: Singles, high_m: Singles) -> tuple[slice, ...]:
        low = np.floor((low_m - self._low) / self._step).astype(int)
        high = np.ceil((high_m - self._low) / self._step).astype(int) + 1
        return tuple(slice(max(0, a), min(n, b)) for a, b, n in zip(low, high, self._shape, strict=True))

    def _places(self, box: tuple[slice, ...]) -> Singles:
        axes = [
            np.arange(s.start, s.stop, dtype=np.float32) * np.float32(self._step) + lo
            for s, lo in zip(box, self._low, strict=True)
        ]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)

    def round_cone(
        self,
        part: int,
        ends_m: tuple[Vector, Vector],
        radii_m: tuple[float, float],
        blend_m: float = 0.0,
        wide: Vector = (1.0, 1.0, 1.0),
        above_m: float = -np.inf,
    ) -> None:
        """Add a limb between two points with a radius at each; ``wide`` stretches its section along each axis.

        What would be below ``above_m`` is cut off, as the hem of a skirt.
        """
        a, b = (np.array(end, np.float32) for end in ends_m)
        stretch = np.array(wide, np.float32)
        axis = (b - a) / stretch
        length2 = max(float(axis @ axis), 1e-12)
        r0, r1 = radii_m
        thin = np.float32(stretch.min())

        def distance(places: Singles) -> Singles:
            p = (places - a) / stretch
            h = np.clip((p @ axis) / np.float32(length2), 0.0, 1.0)
            away = np.linalg.norm(p - h[..., None] * axis, axis=-1)
            limb = (away - (r0 + (r1 - r0) * h)) * thin
            return np.asarray(np.maximum(limb, above_m - places[..., 2]) if np.isfinite(above_m) else limb)

        reach = max(radii_m) * stretch
        self.add(part, distance, np.minimum(a, b) - reach, np.maximum(a, b) + reach, blend_m)

    def ellipsoid(
        self, part: int, center_m: Vector, radii_m: Vector, blend_m: float = 0.0, pitch_rad: float = 0.0
    ) -> None:
        """Add an ellipsoid; ``pitch_rad`` turns it about y, its nose down."""
        center, radii = np.array(center_m, np.float32), np.array(radii_m, np.float32)
        c, s = np.float32(np.cos(pitch_rad)), np.float32(np.sin(pitch_rad))
        turn = np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]], np.float32)

        def distance(places: Singles) -> Singles:
            p = (places - center) @ turn.T
            k0 = np.linalg.norm(p / radii, axis=-1)
            k1 = np.linalg.norm(p / (radii * radii), axis=-1)
            # In the very middle both vanish: it is as deep as the shortest radius.
            return np.asarray(np.where(k0 < 1e-3, -radii.min(), k0 * (k0 - 1.0) / np.maximum(k1, 1e-6)))

        reach = np.full(3, radii.max(), np.float32) if pitch_rad else radii
        self.add(part, distance, center - reach, center + reach, blend_m)

    def block(
        self, part: int, center_m: Vector, half_m: Vector, round_m: float, blend_m: float = 0.0, pitch_rad: float = 0.0
    ) -> None:
        """Add a box with round edges; ``pitch_rad`` turns it about y, its nose down."""
        center, half = np.array(center_m, np.float32), np.array(half_m, np.float32) - np.float32(round_m)
        c, s = np.float32(np.cos(pitch_rad)), np.float32(np.sin(pitch_rad))
        turn = np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]], np.float32)

        def distance(places: Singles) -> Singles:
            q = np.abs((places - center) @ turn.T) - half
            outside = np.linalg.norm(np.maximum(q, 0.0), axis=-1)
            return np.asarray(outside + np.minimum(q.max(axis=-1), 0.0) - np.float32(round_m))

        reach = np.abs(turn).T @ np.array(half_m, np.float32)
        self.add(part, distance, center - reach, center + reach, blend_m)


def relaxed(net: Net, rounds: int) -> Net:
    """Return a net with vertices and normals averaged over their neighbours, so that smooth coats mirror evenly."""
    corners, count = net.triangles.astype(np.int64), len(net.vertices_m)
    number = np.maximum(np.bincount(corners.ravel(), minlength=count), 1)[:, None]
    vertices, normals = net.vertices_m.astype(np.float64), net.normals.astype(np.float64)
    for _ in range(rounds):
        for values in (vertices, normals):
            middle = values[corners].mean(axis=1)
            total = [np.bincount(corners.ravel(), np.repeat(middle[:, k], 3), minlength=count) for k in range(3)]
            values[:] = 0.3 * values + 0.7 * np.stack(total, axis=1) / number
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-9)
    return Net(vertices.astype(np.float32), net.triangles, normals.astype(np.float32), net.part)


def surface_net(values: Singles) -> tuple[Singles, npt.NDArray[np.uint32], Ints]:
    """Return vertices (V, 3) in steps of a grid (x, y, z), triangles (T, 3), and the cell of each vertex (V, 3)."""
    inside = values < 0.0
    count = sum(
        inside[tuple(slice(c, n - 1 + c) for c, n in zip(corner, values.shape, strict=True))].astype(np.int8)
        for corner in _CORNERS
    )
    cells = np.argwhere((count > 0) & (count < 8))
    corners = np.stack([values[tuple((cells + corner).T)] for corner in _CORNERS], axis=1)
    total, crossings = np.zeros((len(cells), 3), np.float32), np.zeros(len(cells), np.float32)
    for a, b in _EDGES:
        va, vb = corners[:, a], corners[:, b]
        crosses = (va < 0.0) != (vb < 0.0)
        at = np.where(crosses, va / np.where(crosses, va - vb, 1.0), 0.0)[:, None]
        total += np.where(crosses[:, None], _CORNERS[a] + at * (_CORNERS[b] - _CORNERS[a]), 0.0).astype(np.float32)
        crossings += crosses
    number = np.full(np.array(values.shape) - 1, -1, np.int64)
    number[tuple(cells.T)] = np.arange(len(cells))
    quads = np.concatenate([_quads(inside, number, axis) for axis in range(3)])
    triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]).astype(np.uint32)
    return cells + total / crossings[:, None], triangles, cells


def _quads(inside: Mask, number: Ints, axis: int) -> Ints:
    """Return the cells (Q, 4) around each edge along an axis that the surface crosses, anticlockwise from outside."""
    low, high = (np.take(inside, range(s, inside.shape[axis] - 1 + s), axis) for s in (0, 1))
    edges = np.argwhere(low != high)
    u, v = (axis + 1) % 3, (axis + 2) % 3
    edges = edges[(edges[:, u] > 0) & (edges[:, v] > 0)]
    edges = edges[(edges[:, u] < number.shape[u]) & (edges[:, v] < number.shape[v])]
    around = []
    for du, dv in ((1, 1), (0, 1), (0, 0), (1, 0)):
        cell = edges.copy()
        cell[:, u] -= du
        cell[:, v] -= dv
        around.append(number[tuple(cell.T)])
    quads = np.stack(around, axis=1)
    out = low[tuple(edges.T)]
    return np.where(out[:, None], quads, quads[:, ::-1])


def _gradient(values: Singles, at: Singles) -> Singles:
    """Return unit gradients (n, 3) of grid values at places (n, 3) in steps."""
    from scipy.ndimage import map_coordinates

    normals = np.empty_like(at)
    for axis in range(3):
        step = np.zeros(3, np.float32)
        step[axis] = 0.7
        ahead, behind = (map_coordinates(values, (at + sign * step).T, order=1, mode="nearest") for sign in (1, -1))
        normals[:, axis] = ahead - behind
    return np.asarray(normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-9), np.float32)
