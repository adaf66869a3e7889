# SPDX-License-Identifier: Apache-2.0
"""Triangles of many bodies prepared for rays, and the hits of rays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask, Rows, Singles
from mt_nodes.base.open3d_late import open3d, tensor
from mt_nodes.world.drive.looks import BodyShape
from mt_nodes.world.scene.meshes import Mesh, merged


@dataclass(frozen=True, eq=False)
class Hits:
    """End points of rays (N,).

    Attributes:
        range_m: (N,), infinite without a hit. triangle: (N,) of :class:`Solids`, 0 without a hit.
        normal: (N, 3) of the triangle, on either side. weights: (N, 2) of its second and third corner.
    """

    range_m: Singles
    triangle: Rows
    normal: Singles
    weights: Singles

    def take(self, rows: Rows) -> Hits:
        """Return the hits of some rays (n,)."""
        range_m, triangle = self.range_m.take(rows), self.triangle.take(rows)
        return Hits(range_m, triangle, self.normal.take(rows, axis=0), self.weights.take(rows, axis=0))


class Solids:
    """Static bodies.

    Attributes:
        bodies: the bodies; ``poses`` (B, 4): x, y, z and yaw in ``map``.
        of: (T,) number of each triangle's body. reflectivity: (T,) of each triangle.
    """

    def __init__(self, bodies: Sequence[BodyShape], poses: Floats, shift_m: Floats) -> None:
        """Prepare bodies; ``shift_m`` (2,) of ``map`` is the nearby origin of rays, which have single precision.

        One thread sorts the triangles, so that a ray that hits two at once always finds the same.
        """
        self.bodies, self.poses, self._shift_m = tuple(bodies), poses, shift_m
        placed = [_placed(body.mesh, *pose) for body, pose in zip(bodies, poses.tolist(), strict=True)]
        self.of = np.repeat(np.arange(len(placed), dtype=np.int32), [len(mesh.triangles) for mesh in placed])
        self._mesh = merged(placed) if placed else Mesh(np.empty((0, 3)), np.empty((0, 3), np.uint32), np.empty(0))
        self.reflectivity = self._mesh.reflectivity
        self._scene = open3d().t.geometry.RaycastingScene(nthreads=1)
        if placed:
            vertices = self._mesh.vertices_m - (*shift_m, 0.0)
            self._scene.add_triangles(tensor(vertices.astype(np.float32)), tensor(self._mesh.triangles))

    def __len__(self) -> int:
        return len(self.bodies)

    @cached_property
    def flat(self) -> Singles:
        """(T, 3) unit normals of the triangles, on the side with counter-clockwise corners."""
        a, b, c = np.moveaxis(self._mesh.vertices_m[self._mesh.triangles], 1, 0)
        normal = np.cross(b - a, c - a)
        return np.asarray(normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12), np.float32)

    def planes_m(self, origin_m: Singles, directions: Singles, triangle: Rows) -> Singles:
        """Return the distance (n,) along rays from one origin (3,) to the planes of triangles (n,)."""
        ahead = self._offsets_m - self.flat @ np.asarray(origin_m, np.float64)
        flat = self.flat.take(triangle, axis=0)
        return np.asarray(ahead.astype(np.float32).take(triangle) / np.einsum("ij,ij->i", flat, directions))

    @cached_property
    def _offsets_m(self) -> Floats:
        """(T,) distance of the triangles' planes from the origin of rays, along their normals."""
        corner = self._mesh.vertices_m[self._mesh.triangles[:, 0]] - (*self._shift_m, 0.0)
        return np.asarray(np.einsum("ij,ij->i", corner, self.flat), np.float64)

    @cached_property
    def smooth(self) -> Singles:
        """(T, 3, 3) unit normals of the corners of the triangles, in the frames of their bodies."""
        return np.concatenate([np.empty((0, 3, 3), np.float32), *(body.normals for body in self.bodies)])

    def cast(self, rays: Singles) -> Hits:
        """Cast rays (N, 6), origin and direction, to the first triangle."""
        found = self._scene.cast_rays(tensor(rays))
        range_m, normal, weights = (found[key].numpy() for key in ("t_hit", "primitive_normals", "primitive_uvs"))
        triangle = np.where(np.isfinite(range_m), found["primitive_ids"].numpy(), 0).astype(np.int64)
        return Hits(range_m, triangle, normal, weights)

    def own_places(self, body: int, places: Singles) -> Singles:
        """Return places (n, 3) relative to the origin of rays in the frame of a body."""
        x, y, z, yaw = self.poses[body].tolist()
        relative = places - np.array([x - self._shift_m[0], y - self._shift_m[1], z], np.float32)
        return turned(relative, -yaw)

    def hides(self, rays: Singles) -> Mask:
        """Return whether rays (N, 6) hit anything."""
        return np.asarray(self._scene.test_occlusions(tensor(rays)).numpy())

    @cached_property
    def corners_m(self) -> Floats:
        """(B, 8, 3) corners of the boxes around the bodies, relative to the origin of rays."""
        corners = np.array([body.corners_m for body in self.bodies]).reshape(-1, 8, 3)
        places, yaw = self.poses[:, None, :3] - (*self._shift_m, 0.0), self.poses[:, 3, None]
        c, s = np.cos(yaw), np.sin(yaw)
        x, y, z = np.moveaxis(corners, 2, 0)
        return np.stack([c * x - s * y, s * x + c * y, z], axis=2) + places


def _placed(mesh: Mesh, x_m: float, y_m: float, z_m: float, yaw_rad: float) -> Mesh:
    placed = mesh.placed(x_m, y_m, yaw_rad)
    return replace(placed, vertices_m=placed.vertices_m + np.array((0.0, 0.0, z_m))) if z_m else placed


def rays_of(origins_m: npt.NDArray[Any], directions: npt.NDArray[Any]) -> Singles:
    """Return rays (n, 6) of origins and directions (n, 3); either may be (3,), the same for all."""
    rays = np.empty((*np.broadcast_shapes(origins_m.shape, directions.shape)[:-1], 6), np.float32)
    rays[..., :3], rays[..., 3:] = origins_m, directions
    return rays


def turned(vectors: Singles, yaw_rad: npt.ArrayLike) -> Singles:
    """Return vectors (n, 3) rotated about z, by one angle or one each (n,)."""
    c, s = np.cos(yaw_rad).astype(np.float32), np.sin(yaw_rad).astype(np.float32)
    x, y, z = vectors.T
    return np.stack([c * x - s * y, s * x + c * y, z], axis=1)
