# SPDX-License-Identifier: Apache-2.0
"""A mesh that cameras see in detail: colours, normals and open sky at each of its vertices."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Ints, Mask, Singles
from mt_nodes.base.open3d_late import tensor
from mt_nodes.world.modelling.fields import Net
from mt_nodes.world.scene.meshes import Mesh

#: Directions in which open sky and ground are looked for from a vertex, and how far something hides them.
_DIRECTIONS, _REACH_M, _OFF_M = 24, 2.5, 0.012
#: Share of light that comes from what hides sky or ground, and reach of the object's own shade on it.
_BACK, _SHADE_M = 0.25, 1.4
#: How far soles, hooves and tyres are below the plane of the ground: it gives, or they do (assumed).
_SUNK_M = 0.008


@dataclass(frozen=True, eq=False)
class VertexLight:
    """Light that reaches places (V, 3) with unit normals (V, 3): computed where a camera first sees it."""

    places_m: Singles
    normals: Singles

    def at(self, rows: Ints, scene: Any) -> Singles:
        """Return irradiance (V, 2) from sky and ground, see :func:`irradiance`, of which these rows (…) are known.

        ``scene``: what hides the light, always the same.
        """
        known, table = self._known
        asked = np.zeros(len(known), bool)
        asked[rows] = True
        fresh = np.flatnonzero(asked & ~known)
        if len(fresh):
            table[fresh] = np.column_stack(irradiance(scene, self.places_m[fresh], self.normals[fresh]))
            known[fresh] = True
        return table

    @cached_property
    def _known(self) -> tuple[Mask, Singles]:
        return np.zeros(len(self.places_m), bool), np.zeros((len(self.places_m), 2), np.float32)


@dataclass(frozen=True, eq=False)
class DetailedMesh(Mesh):
    """A mesh with properties of its vertices.

    ``albedo``: (V, 3) linear red, green, blue. ``mirror``: (V,) reflectance at normal incidence of a smooth coat, 0 for
    none. ``normals``: (V, 3). ``light``: from a uniform sky, and from the ground, relative to that of a level place
    under an open sky; what the object itself hides is left out. Copies in other colours share it.
    """

    albedo: Singles = field(default_factory=lambda: np.zeros((0, 3), np.float32))
    mirror: Singles = field(default_factory=lambda: np.zeros(0, np.float32))
    normals: Singles = field(default_factory=lambda: np.zeros((0, 3), np.float32))
    light: VertexLight | None = None


@dataclass(frozen=True, eq=False)
class Shell:
    """A net with its colours: albedo (V, 3), mirror (V,) and the LiDAR's reflectivity (V,)."""

    net: Net
    albedo: Singles
    mirror: Singles
    reflectivity: Singles


def detailed(shells: list[Shell]) -> DetailedMesh:
    """Return shells as one mesh."""
    starts = np.cumsum([0, *(len(shell.net.vertices_m) for shell in shells)])
    triangles = np.concatenate([s.net.triangles + np.uint32(at) for s, at in zip(shells, starts[:-1], strict=True)])
    vertices, normals = (np.concatenate([getattr(s.net, name) for s in shells]) for name in ("vertices_m", "normals"))
    albedo, mirror, shine = (
        np.concatenate([getattr(s, name) for s in shells]) for name in ("albedo", "mirror", "reflectivity")
    )
    vertices = vertices - np.array([0.0, 0.0, vertices[:, 2].min() + _SUNK_M], np.float32)
    return DetailedMesh(
        vertices.astype(np.float64),
        triangles,
        shine[triangles[:, 0]].astype(np.float64),
        albedo.astype(np.float32),
        mirror.astype(np.float32),
        normals.astype(np.float32),
        VertexLight(vertices, normals),
    )


def interpolated(table: Singles, corners: Ints, share: Singles) -> Singles:
    """Return rows of a table (V, k) between three corners (n, 3) each, with shares (n, 3): (n, k)."""
    found = table[corners[:, 0]] * share[:, :1]
    for i in (1, 2):
        found += table[corners[:, i]] * share[:, i : i + 1]
    return np.asarray(found, np.float32)


def irradiance(
    scene: Any, vertices_m: Singles, normals: Singles, directions: int = _DIRECTIONS
) -> tuple[Singles, Singles]:
    """Return the light from sky and ground (V,), (V,) at places, relative to level ground's under an open sky.

    Rays go out into directions spread by the cosine law around each normal, the same ones for every run. Of what hides
    the sky, or the ground, a share comes back by reflection (assumed: 0.25). Ground near the object lies in its shade.
    """
    rays = np.empty((len(vertices_m), directions, 6), np.float32)
    rays[..., :3] = (vertices_m + _OFF_M * normals)[:, None]
    steps, frames = _cosine_directions(directions), _frames(normals)
    for axis in range(3):  # a quarter of the time of np.einsum, with the same sums
        x, y, z = (np.multiply.outer(frames[:, k, axis], steps[:, k]) for k in range(3))
        rays[..., 3 + axis] = x + y + z
    up = np.ascontiguousarray(rays[..., 5])
    hidden = scene.test_occlusions(tensor(rays.reshape(-1, 6)), 0.0, _REACH_M, nthreads=1).numpy()
    clear = np.where(hidden.reshape(up.shape), np.float32(_BACK), np.float32(1.0))
    down = up < 0.0
    reach_m = np.maximum(vertices_m[:, 2:], 0.0) / np.maximum(-up, 1e-3)
    lit = np.clip(reach_m / _SHADE_M, 0.25, 1.0)
    sky = np.where(down, 0.0, clear).mean(axis=1)
    ground = np.where(down, clear * lit, 0.0).mean(axis=1)
    return sky.astype(np.float32), ground.astype(np.float32)


def _frames(normals: Singles) -> Singles:
    """Return two tangents and the normal (V, 3, 3) at each place."""
    across = np.where(np.abs(normals[:, 2:]) < 0.9, np.array([[0.0, 0.0, 1.0]]), np.array([[1.0, 0.0, 0.0]]))
    tangent = np.cross(normals, across)
    tangent /= np.maximum(np.linalg.norm(tangent, axis=1, keepdims=True), 1e-9)
    return np.stack([tangent, np.cross(normals, tangent), normals], axis=1).astype(np.float32)


def _cosine_directions(count: int) -> Singles:
    """Return unit vectors (n, 3) spread over the upper half by the cosine law, on a golden spiral."""
    i = np.arange(count) + 0.5
    r, turn = np.sqrt(i / count), i * np.pi * (3.0 - np.sqrt(5.0))
    return np.column_stack([r * np.cos(turn), r * np.sin(turn), np.sqrt(1.0 - r * r)]).astype(np.float32)
