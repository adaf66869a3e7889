# SPDX-License-Identifier: Apache-2.0
"""Houses of a map: walls with windows, some of them lit at night, and flat roofs. Colours are assumed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mt_nodes.base.arrays import Floats, Rows, Singles
from mt_nodes.world.drive.road_map import Building
from mt_nodes.world.scene import paint
from mt_nodes.world.scene.meshes import Mesh
from mt_nodes.world.scene.street import HOUSE, Piece

#: Reflectivity of walls; multiples of the golden ratio make neighbouring houses differ.
_WALL, _GOLDEN = 0.4, 0.6180339887
#: There are no windows below this height above the ground, or above a storey's floor.
_PLAIN_M = 0.6
_ROOF, _LAMPLIGHT, _LIT_SHARE = (0.1, 0.09, 0.09), (0.5, 0.33, 0.13), 0.3


class Houses:
    """All houses of a map as one mesh with outward faces. ``mesh``: in ``map``."""

    def __init__(self, buildings: Sequence[Building]) -> None:
        corners, frames, colours = [np.empty((0, 3, 3))], [np.empty((0, 6))], [np.empty((0, 3))]
        for number, house in enumerate(buildings):
            walls, own = _walls(np.asarray(house.outline_m, dtype=np.float64), house.height_m)
            roof = _roof(np.asarray(house.outline_m, dtype=np.float64), house.height_m)
            facade = paint.albedo(Piece(HOUSE, _mesh(walls[:1]), number * _GOLDEN % 1.0))[0]
            corners += [walls, roof]
            frames += [own, np.full((len(roof), 6), np.nan)]
            colours += [np.tile(facade, (len(walls), 1)), np.tile(_ROOF, (len(roof), 1))]
        self.mesh = _mesh(np.concatenate(corners))
        # For each triangle: start and direction of its wall, half its length, top of its last whole storey; NaN for
        # roofs.
        self._frames = np.concatenate(frames).astype(np.float32)
        self._colours = np.concatenate(colours).astype(np.float32)

    def colours(self, triangle: Rows, places: Singles) -> tuple[Singles, Singles]:
        """Return albedo (n, 3) at places (n, 3) of ``map`` on triangles (n,), and the light of lit windows (n, 3)."""
        frames = self._frames.take(triangle, axis=0)
        albedo, z = self._colours.take(triangle, axis=0), places[:, 2]
        # Windows are counted from the centre of each wall, so that they keep clear of its ends.
        along = (places[:, 0] - frames[:, 0]) * frames[:, 2] + (places[:, 1] - frames[:, 1]) * frames[:, 3]
        along -= frames[:, 4]
        walls = np.flatnonzero(np.isfinite(along))
        own, up = albedo.take(walls, axis=0), z.take(walls)
        facade = own[:, 0].copy()
        up[up > frames[walls, 5]] = _PLAIN_M
        paint.panes(own, along.take(walls), np.zeros_like(up), up)
        albedo[walls] = own
        panes = walls[(own[:, 0] != facade) & (up > _PLAIN_M)]
        return albedo, _lamplight(panes, along, z, triangle, len(places))


def _lamplight(panes: Rows, along: Singles, z: Singles, wall: Rows, n: int) -> Singles:
    """Return the light of windows (n, 3): a hash of storey, bay and wall decides which are lit."""
    glow = np.zeros((n, 3), np.float32)
    bay, storey = np.floor(along.take(panes) / paint.BAY_M), np.floor(z.take(panes) / paint.STOREY_M)
    number = 7.31 * bay + 3.77 * storey + 1.93 * (wall.take(panes) // 2)
    glow[panes[np.mod(number * _GOLDEN, 1.0) < _LIT_SHARE]] = _LAMPLIGHT
    return glow


def _walls(outline: Floats, height_m: float) -> tuple[Floats, Floats]:
    """Return the corners (T, 3, 3) of walls, two triangles each, and their frames (T, 6)."""
    following = np.roll(outline, -1, axis=0)
    low, low_next, top, top_next = (
        np.column_stack([corners, np.full(len(corners), z)])
        for corners, z in ((outline, 0.0), (following, 0.0), (outline, height_m), (following, height_m))
    )
    length = np.linalg.norm(following - outline, axis=1, keepdims=True)
    whole_m = np.full(len(outline), (height_m - _PLAIN_M) // paint.STOREY_M * paint.STOREY_M)
    frames = np.column_stack([outline, (following - outline) / length, length / 2.0, whole_m])
    triangles = np.stack([low, low_next, top_next, low, top_next, top], axis=1).reshape(-1, 3, 3)
    return triangles, np.repeat(frames, 2, axis=0)


def _roof(outline: Floats, height_m: float) -> Floats:
    """Return the corners (T, 3, 3) of a flat roof over a convex outline."""
    top = np.column_stack([outline, np.full(len(outline), height_m)])
    return np.stack([np.broadcast_to(top[0], (len(top) - 2, 3)), top[1:-1], top[2:]], axis=1)


def _mesh(corners: Floats) -> Mesh:
    triangles = np.arange(3 * len(corners), dtype=np.uint32).reshape(-1, 3)
    return Mesh(corners.reshape(-1, 3), triangles, np.full(len(triangles), _WALL))
