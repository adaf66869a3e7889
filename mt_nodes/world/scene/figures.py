# SPDX-License-Identifier: Apache-2.0
"""Objects for cameras: triangles, smooth normals, colours, and how open sky and ground are to each place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from mt_nodes.base.arrays import Floats, Ints, Mask, Singles
from mt_nodes.base.open3d_late import open3d, tensor
from mt_nodes.world.modelling.model_variants import detailed_object, is_detailed
from mt_nodes.world.modelling.shading import DetailedMesh, VertexLight, interpolated, irradiance
from mt_nodes.world.scene.appearance import Paint, Surface, paint_of
from mt_nodes.world.scene.lamps import OFF
from mt_nodes.world.scene.meshes import GLASS, Mesh
from mt_nodes.world.scene.objects import mesh_of

_EDGE_M = 0.3
_SMOOTH_COS = 0.5  # triangles that meet at a sharper angle keep their edge
_GLASS_TOLERANCE, _OFF_M = 1e-4, 0.004
#: Cells of the map of open sky on the ground around an object, how far it reaches, and rays a cell.
_CELL_M, _AROUND_M, _RAYS = 0.05, 0.5, 24


@dataclass(frozen=True, eq=False)
class Places:
    """Places on an object that rays hit.

    Attributes:
        rays: (n,) which rays. range_m: (n,). xyz_m: (n, 3) in the object's frame. normal: (n, 3) unit, on the side that
            is seen. albedo: (n, 3). mirror: (n,) reflectance at normal incidence. sky, ground: (n,) irradiance from
            both, relative to level ground's from the sky. glow: (n, 3) emitted, None for none. glass: (n,).
        cover: (n,) opacity, None for 1.
    """

    rays: Ints
    range_m: Singles
    xyz_m: Singles
    normal: Singles
    albedo: Singles
    mirror: Singles
    sky: Singles
    ground: Singles
    glow: Singles | None
    glass: Mask
    cover: Singles | None = None


class Figure:
    """An object for cameras.

    ``mesh``: its triangles; a detailed mesh brings its own colours. ``paint``: colours of a plain mesh, and what glows.
    """

    def __init__(self, mesh: Mesh, paint: Paint) -> None:
        mesh = mesh if isinstance(mesh, DetailedMesh) else subdivided(mesh, _EDGE_M)
        self.paint, self.mesh = paint, mesh
        self._reflectivity = mesh.reflectivity.astype(np.float32)
        self._scene = open3d().t.geometry.RaycastingScene(nthreads=1)
        self._scene.add_triangles(tensor(mesh.vertices_m.astype(np.float32)), tensor(mesh.triangles))
        self.low_m, self.high_m = mesh.vertices_m.min(axis=0), mesh.vertices_m.max(axis=0)
        self.center_m, self.top_m = (self.low_m + self.high_m) / 2.0, float(self.high_m[2])
        feet = mesh.vertices_m[mesh.vertices_m[:, 2] < 0.35]
        self.feet_m = np.array([feet[:, :2].min(axis=0), feet[:, :2].max(axis=0)])
        corners = np.array(np.meshgrid(*zip(self.low_m, self.high_m, strict=True), indexing="ij"))
        self.box_m = corners.reshape(3, -1).T

    @cached_property
    def hull_m(self) -> Floats:
        """Vertices (k, 3) of the convex hull: what they project to bounds the object."""
        from scipy.spatial import ConvexHull

        return np.asarray(self.mesh.vertices_m[ConvexHull(self.mesh.vertices_m).vertices])

    @cached_property
    def _corners(self) -> tuple[Ints, Singles, VertexLight, int]:
        """Rows (T, 3) of the corners of triangles in a table of normals (V, 3), and of light.

        The last is by how much more the rows of light are on the side away from the normals. Triangles of plain meshes
        may be wound either way, and share no corners.
        """
        if isinstance(self.mesh, DetailedMesh):
            assert self.mesh.light is not None
            return self.mesh.triangles.astype(np.int64), self.mesh.normals, self.mesh.light, 0
        normals = smooth_normals(self.mesh).reshape(-1, 3)
        places = self.mesh.vertices_m[self.mesh.triangles].reshape(-1, 3).astype(np.float32)
        light = VertexLight(np.concatenate([places, places]), np.concatenate([normals, -normals]))
        return np.arange(len(places)).reshape(-1, 3), normals, light, len(places)

    def cast(self, rays: Singles, pixel_m: float) -> tuple[Singles, Places]:
        """Cast rays (N, 6) in the object's frame; ``pixel_m`` is the width of a pixel there.

        Returns:
            range (N,), infinite without a hit, and the places that are hit.
        """
        answer = self._scene.cast_rays(tensor(rays), nthreads=1)
        range_m = answer["t_hit"].numpy()
        hit = np.flatnonzero(np.isfinite(range_m))
        triangle, along = answer["primitive_ids"].numpy()[hit].astype(np.int64), rays[hit, 3:]
        u, v = answer["primitive_uvs"].numpy()[hit].T
        share = np.stack([1.0 - u - v, u, v], axis=1)
        flat = answer["primitive_normals"].numpy()[hit]
        flat *= np.where(np.einsum("ij,ij->i", flat, along) > 0.0, np.float32(-1.0), np.float32(1.0))[:, None]
        corners, normals, light, beyond = self._corners
        normal, wound = _smooth(normals, corners[triangle], share, flat)
        lit = corners[triangle] + np.where(wound, beyond, 0)[:, None]
        sky, ground = interpolated(light.at(lit, self._scene), lit, share).T
        xyz = rays[hit, :3] + along * range_m[hit, None]
        colours = self.paint(Surface(xyz, self._reflectivity[triangle], pixel_m, triangle, share, normal))
        glass, mirror = colours.glass, colours.mirror
        if glass is None:
            glass = np.abs(self._reflectivity[triangle] - GLASS) < _GLASS_TOLERANCE
        if mirror is None:
            mirror = np.zeros(len(hit), np.float32)
        return range_m, Places(hit, range_m[hit], xyz, normal, colours.albedo, mirror, sky, ground, colours.glow, glass)

    def behind_glass(self, places: Places, along: Singles) -> tuple[Ints, Singles, Singles]:
        """Return which places (k,) are glass of a hollow body, the albedo (k, 3) behind it, and the share that is free.

        A pane on the far side lets light of the scene behind pass.
        """
        at = np.flatnonzero(places.glass)
        if not len(at) or not isinstance(self.mesh, DetailedMesh):
            return at[:0], np.zeros((0, 3), np.float32), np.zeros(0, np.float32)
        rays = np.concatenate([places.xyz_m[at] + _OFF_M * 4 * along[at], along[at]], axis=1).astype(np.float32)
        answer = self._scene.cast_rays(tensor(rays), nthreads=1)
        found = np.isfinite(answer["t_hit"].numpy())
        triangle = np.where(found, answer["primitive_ids"].numpy(), 0).astype(np.int64)
        through = found & (np.abs(self._reflectivity[triangle] - GLASS) < _GLASS_TOLERANCE) | ~found
        albedo = self.mesh.albedo[self.mesh.triangles[triangle, 0]]
        return at, np.where(through[:, None], np.float32(0.0), np.minimum(albedo, 0.06)), through.astype(np.float32)

    def lit(self, places: Places, to_sun: Floats) -> Mask:
        """Return which places (n,) the object itself does not hide from the sun in a direction (3,) of its frame."""
        rays = np.empty((len(places.xyz_m), 6), np.float32)
        rays[:, :3] = places.xyz_m + _OFF_M * places.normal
        rays[:, 3:] = to_sun
        return np.asarray(~self._scene.test_occlusions(tensor(rays), nthreads=1).numpy())

    #: Whether its colours were recorded by a camera that had balanced them.
    balanced = False

    def added_detail(self, pixel_m: float) -> float:
        """Return the share of the host camera's blur and noise that a picture of it does not have yet: all."""
        return 1.0

    def hides_sun(self, ground_m: Singles, to_sun: Floats) -> Mask:
        """Return which places of the ground (n, 2) lie in the object's shadow."""
        rays = np.zeros((len(ground_m), 6), np.float32)
        rays[:, :2], rays[:, 2], rays[:, 3:] = ground_m, 1e-3, to_sun
        return np.asarray(self._scene.test_occlusions(tensor(rays), nthreads=1).numpy())

    @cached_property
    def open_sky(self) -> tuple[Singles, Floats]:
        """Open sky (rows, columns) on the ground around the object, 1 for all, and (2,) x and y of its first cell."""
        low, high = self.feet_m[0] - _AROUND_M, self.feet_m[1] + _AROUND_M
        x, y = (np.arange(a, b + _CELL_M, _CELL_M, dtype=np.float32) for a, b in zip(low, high, strict=True))
        places = np.stack([*np.meshgrid(x, y), np.full((len(y), len(x)), 2e-3, np.float32)], axis=-1).reshape(-1, 3)
        up = np.tile(np.array([0.0, 0.0, 1.0], np.float32), (len(places), 1))
        sky, _ = irradiance(self._scene, places, up, _RAYS)
        return sky.reshape(len(y), len(x)), np.array([x[0], y[0]], np.float64)

    @property
    def cell_m(self) -> float:
        """Width of the cells of ``open_sky``."""
        return _CELL_M


def _smooth(normals: Singles, corners: Ints, share: Singles, flat: Singles) -> tuple[Singles, Mask]:
    """Return unit normals (n, 3) between corners (n, 3) with shares (n, 3), and whether (n,) they are seen from behind.

    ``normals``: (V, 3). ``flat``: (n, 3) of the triangles, on the side that is seen.
    """
    between = interpolated(normals, corners, share)
    normal = between / np.maximum(np.linalg.norm(between, axis=1), 1e-6)[:, None]
    # At the rim of a smooth surface the interpolated normal may look away: the triangle's own then holds.
    wound = np.einsum("nj,nj->n", normals[corners[:, 0]], flat) < 0.0
    away = np.flatnonzero(np.einsum("ij,ij->i", normal, flat) < 0.0)
    normal[away] = np.where(wound[away, None], -normal[away], flat[away])
    return normal, wound


@lru_cache(maxsize=64)
def figure_of(kind: str, lamps: str = OFF, paint: str = "", variant: int = 1) -> Figure:
    """Return an object of the catalogue, cached; ``lamps`` selects the lit ones, ``paint`` another colour."""
    if is_detailed(kind):
        return Figure(*detailed_object(kind, variant, lamps, paint))
    return Figure(mesh_of(kind), paint_of(kind, lamps, paint))


def subdivided(mesh: Mesh, edge_m: float) -> Mesh:
    """Return a mesh without edges longer than ``edge_m``: light is interpolated between the corners of triangles."""
    corners, number = mesh.vertices_m[mesh.triangles], np.arange(len(mesh.triangles))
    while True:
        length_m = np.linalg.norm(np.roll(corners, -1, axis=1) - corners, axis=2)
        long = length_m.max(axis=1) > edge_m
        if not long.any():
            break
        first = length_m[long].argmax(axis=1)[:, None] + np.arange(3)
        a, b, c = np.moveaxis(np.take_along_axis(corners[long], (first % 3)[:, :, None], axis=1), 1, 0)
        middle = (a + b) / 2.0
        corners = np.concatenate([corners[~long], np.stack([a, middle, c], 1), np.stack([middle, b, c], 1)])
        number = np.concatenate([number[~long], number[long], number[long]])
    flat, triangles = np.unique(np.round(corners.reshape(-1, 3), 6), axis=0, return_inverse=True)
    return Mesh(flat, triangles.reshape(-1, 3).astype(np.uint32), mesh.reflectivity[number])


def smooth_normals(mesh: Mesh) -> Singles:
    """Return a normal for each corner of each triangle (T, 3, 3), averaged over nearly coplanar neighbours."""
    a, b, c = np.moveaxis(mesh.vertices_m[mesh.triangles], 1, 0)
    facing = np.cross(b - a, c - a)
    unit = facing / np.maximum(np.linalg.norm(facing, axis=1, keepdims=True), 1e-12)
    corner, other = _meeting(mesh.triangles.ravel().astype(np.int64))
    triangle, other_triangle = corner // 3, other // 3
    even = np.einsum("ij,ij->i", unit[triangle], unit[other_triangle]) > _SMOOTH_COS
    sums = [np.bincount(corner, even * facing[other_triangle, axis], minlength=3 * len(unit)) for axis in range(3)]
    normals = np.stack(sums, axis=1).reshape(-1, 3, 3)
    return np.asarray(normals / np.maximum(np.linalg.norm(normals, axis=2, keepdims=True), 1e-12), np.float32)


def _meeting(vertex: Ints) -> tuple[Ints, Ints]:
    """Return all pairs (p,), (p,) of corners (n,) that share a vertex, including each with itself."""
    order = np.argsort(vertex, kind="stable")
    _, start, count = np.unique(vertex[order], return_index=True, return_counts=True)
    many = np.repeat(count, count)  # how many meet each corner, in that order
    first = np.repeat(np.repeat(start, count), many)
    within = np.arange(len(first)) - np.repeat(np.cumsum(many) - many, many)
    return np.repeat(order, many), order[first + within]
