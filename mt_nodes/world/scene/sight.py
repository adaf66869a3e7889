# SPDX-License-Identifier: Apache-2.0
"""Casts the rays of a cloud to an added object.

A ray starts at the origin of the cloud's frame and goes through its return. Only rays within the cone around the
object's bounding sphere are cast, in the object's own frame, so that the object is prepared for casting once. A ray
that meets glass goes on to what is behind it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats, Mask, Rows, Singles
from mt_nodes.base.open3d_late import open3d, tensor
from mt_nodes.data.messages import Cloud
from mt_nodes.data.transforms import Matrix, move
from mt_nodes.world.modelling.model_variants import detailed_mesh, is_detailed
from mt_nodes.world.scene.fittings import with_fittings
from mt_nodes.world.scene.materials import MATTE, PAINTS, Faces, Material, finish_of
from mt_nodes.world.scene.meshes import Mesh
from mt_nodes.world.scene.objects import KINDS, mesh_of
from mt_nodes.world.scene.returns import lengths, places, returns_at, within_cone
from mt_nodes.world.scene.silent_rays import SilentRays, silent_rays

#: The cone is this much wider than the bounding sphere, so that rounding never excludes a ray.
_SLACK = 1.01


@dataclass(frozen=True, eq=False)
class Hits:
    """Rays that hit an object.

    Attributes:
        rows: (n,) of the cloud, ascending. range_m: (n,) from the sensor to the surface. own_m: (n,) range of the
            cloud's return on that ray. brightness: (n,) of the surface's echo (:mod:`.materials`).
        transmission: (n,) share of light that a pane there lets through, 0 for what is not glass.
        behind_m: (n,) range to the first surface behind the pane that is not glass, infinite for none, and for what is
            not glass. behind: (n,) brightness of that surface, without the pane.
    """

    rows: Rows
    range_m: Floats
    own_m: Floats
    brightness: Floats
    transmission: Floats
    behind_m: Floats
    behind: Floats

    @property
    def visible(self) -> Mask:
        """Whether the object is nearer than the cloud's return (n,)."""
        return np.asarray(self.range_m < self.own_m)


class RaycastBody:
    """An object prepared for ray casting; its own frame is that of its mesh."""

    def __init__(self, mesh: Mesh, finish: Material = MATTE) -> None:
        self._faces = Faces(mesh.reflectivity, finish)
        self._solid = np.flatnonzero(~self._faces.glass)
        self._scene = self._opaque = _scene(mesh, slice(None))
        if len(self._solid) < len(mesh.triangles):
            self._opaque = _scene(mesh, self._solid)
        self.vertices_m = mesh.vertices_m
        self.low_m, self.high_m = mesh.vertices_m.min(axis=0), mesh.vertices_m.max(axis=0)
        self.center_m = (self.low_m + self.high_m) / 2
        self.radius_m = float(np.linalg.norm(mesh.vertices_m - self.center_m, axis=1).max())

    @property
    def size_m(self) -> tuple[float, float, float]:
        """Length, width and height."""
        length, width, height = (self.high_m - self.low_m).tolist()
        return length, width, height

    def around(self, cloud: Cloud, pose: Matrix) -> Rows:
        """Return the rows (n,) of returns within the cone around the object; ``pose`` is body to cloud."""
        center, radius = move(pose, self.center_m[None])[0], _SLACK * self.radius_m
        distance_m = float(np.linalg.norm(center))
        if distance_m <= radius:
            return returns_at(cloud, np.arange(len(cloud)))[0]
        return within_cone(cloud, center / distance_m, float(np.sqrt(1.0 - (radius / distance_m) ** 2)))

    def cast(self, cloud: Cloud, pose: Matrix, own_time: Mask | None = None) -> Hits:
        """Cast the cloud's rays to the object; ``pose`` is object to cloud.

        ``own_time``: (N,) which of the cloud's rays meet it there; None: all.
        """
        rows = self.around(cloud, pose)
        rows = rows if own_time is None else rows[own_time[rows]]
        direction, own = _directions(cloud, rows)
        return self._hits(rows, direction, own, pose)

    def silent_around(self, cloud: Cloud, pose: Matrix, slack_m: float = 0.0) -> SilentRays:
        """Return the rays without a return that may hit the object, or would if it were displaced by ``slack_m``."""
        x, y, _ = move(pose, self.center_m[None])[0].tolist()
        distance_m, radius_m = float(np.hypot(x, y)), self.radius_m + slack_m
        half = float(np.arcsin(min(1.0, radius_m / distance_m))) if distance_m > 0 else np.pi
        return silent_rays(cloud, float(np.arctan2(y, x)), half)

    def cast_silent(self, rays: SilentRays, pose: Matrix) -> tuple[Hits, Floats]:
        """Cast rays without a return; also return the directions (n, 3) of those that hit the object.

        ``own_m`` of these hits is the range of the neighbouring return: beyond it, something else may be in the way.
        """
        hits = self._hits(np.arange(len(rays.rows)), rays.direction, rays.clear_m, pose)
        return replace(hits, rows=rays.rows[hits.rows]), rays.direction[hits.rows]

    def _hits(self, rows: Rows, direction: Floats, own: Floats, pose: Matrix) -> Hits:
        rays = _into(pose, direction)
        range_m, triangle, cosine = _first(self._scene, rays)
        hit = np.flatnonzero(np.isfinite(range_m))
        triangle, cosine = triangle[hit], cosine[hit]
        through, behind_m = np.zeros(len(hit)), np.full(len(hit), np.inf)
        bright, behind = self._faces.brightness(triangle, cosine), np.zeros(len(hit))
        pane = np.flatnonzero(self._faces.glass[triangle])
        if len(pane):
            through[pane] = self._faces.transmission(triangle[pane], cosine[pane])
            behind_m[pane], second, inner = _first(self._opaque, rays[hit[pane]])
            met = np.flatnonzero(np.isfinite(behind_m[pane]))
            behind[pane[met]] = self._faces.brightness(self._solid[second[met]], inner[met])
        return Hits(rows[hit], range_m[hit], own[hit], bright, through, behind_m, behind)

    def hides(self, cloud: Cloud, pose: Matrix, slack_m: float) -> Rows:
        """Return the rows (n,) of returns that lie more than ``slack_m`` behind the object's surface on their ray.

        Glass does not hide.
        """
        rows = self.around(cloud, pose)
        direction, own = _directions(cloud, rows)
        first = self._opaque.cast_rays(tensor(_into(pose, direction)), nthreads=1)["t_hit"].numpy()
        return np.asarray(rows[first < own - slack_m])

    def ranges(self, direction: Floats, pose: Matrix) -> Floats:
        """Return the range (n,) to the surface along unit vectors (n, 3) from a sensor, infinite without a hit."""
        answer = self._scene.cast_rays(tensor(_into(pose, direction)), nthreads=1)
        return np.asarray(answer["t_hit"].numpy(), dtype=np.float64)

    def off_surface_m(self, xyz: Floats, pose: Matrix) -> Floats:
        """Return the distance (n,) of points (n, 3) of the cloud's frame from the object's surface."""
        inside = move(np.asarray(np.linalg.inv(pose), dtype=np.float64), xyz).astype(np.float32)
        return np.asarray(self._scene.compute_distance(tensor(inside), nthreads=1).numpy(), dtype=np.float64)


@lru_cache(maxsize=64)
def body_of(kind: str, paint: str = "", variant: int = 1) -> RaycastBody:
    """Return an object of the catalogue, cached; ``paint`` is one of :data:`.materials.PAINTS`, else its own."""
    if is_detailed(kind):
        return RaycastBody(detailed_mesh(kind, variant, paint), finish_of(KINDS[kind].label))
    reflectivity = PAINTS.get(paint, KINDS[kind].reflectivity)
    mesh = KINDS[kind].build(reflectivity) if paint else mesh_of(kind)
    return RaycastBody(with_fittings(kind, mesh, reflectivity), finish_of(KINDS[kind].label))


def _scene(mesh: Mesh, triangles: Rows | slice) -> Any:
    scene = open3d().t.geometry.RaycastingScene(nthreads=1)
    scene.add_triangles(tensor(mesh.vertices_m.astype(np.float32)), tensor(mesh.triangles[triangles]))
    return scene


def _first(scene: Any, rays: Singles) -> tuple[Floats, Rows, Floats]:
    """Return range (n,), infinite without a hit, triangle, and cosine of incidence of rays (n, 6) that are cast."""
    answer = scene.cast_rays(tensor(rays), nthreads=1)
    cosine = np.abs(np.einsum("ij,ij->i", answer["primitive_normals"].numpy(), rays[:, 3:]))
    triangle = answer["primitive_ids"].numpy().astype(np.int64)
    return answer["t_hit"].numpy().astype(np.float64), triangle, cosine.astype(np.float64)


def _directions(cloud: Cloud, rows: Rows) -> tuple[Floats, Floats]:
    """Unit vectors (n, 3) towards returns, and their ranges (n,)."""
    xyz = places(cloud, rows)
    own = lengths(xyz)
    return xyz / own[:, None], own


def _into(pose: Matrix, direction: Floats) -> Singles:
    """Rays (n, 6) from the sensor, in the object's frame."""
    back = np.linalg.inv(pose)
    rays = np.empty((len(direction), 6), dtype=np.float32)
    rays[:, :3] = back[:3, 3]
    rays[:, 3:] = direction @ back[:3, :3].T
    return rays
