# SPDX-License-Identifier: Apache-2.0
"""The surface that an object's returns span, and what rays measure of it after a change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial import Delaunay, cKDTree

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.open3d_late import open3d, tensor
from mt_nodes.data.messages import Cloud
from mt_nodes.world.scene.returns import lengths, places, returns_at, within_cone
from mt_nodes.world.scene.silent_rays import silent_rays

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
Clock = Callable[[Rows], Floats]

#: Neighbours among returns are at most this far apart, in metres, and as a share of their range: the widest spacing of
#: rings in use is 2 degrees (VLP-16). A wider gap is a gap of the object.
_LEAST_REACH_M, _REACH = 0.12, 0.018
_FEWEST, _ENOUGH = 4, 2500
#: The cone around the object is this much wider, so that rounding never excludes a ray.
_SLACK = 1.01
#: Half of the widest step between rays of one ring, as a chord, and the rounding of single precision.
_WIDEST_HALF_STEP, _ROUNDING = 0.005, 1e-6
#: The proof: triangles tried for a ray; how near an edge, as a share, a ray is not judged; what is behind.
_TRIED, _EDGE, _BEHIND_M = 12, 0.02, 0.05


def spanning(rows: Rows) -> Rows:
    """Return the returns of an object (n,) that span its surface: where they are dense, one in some is enough."""
    return rows[:: 1 + len(rows) // _ENOUGH]


def reach_m(xyz: Floats) -> Floats:
    """Return how far neighbours of returns (n, 3) may be from them (n,), over the frame's origin."""
    return np.maximum(_LEAST_REACH_M, _REACH * _lengths(xyz))


@dataclass(frozen=True, eq=False)
class SurfaceHits:
    """Rays that hit a surface.

    Attributes:
        rows: (n,) of the cloud. range_m: (n,) to the surface. own_m: (n,) to the cloud's return on that ray, or to what
            its neighbours tell of a ray without. vertex: (n,) the nearest of the returns that span the surface.
    """

    rows: Rows
    range_m: Floats
    own_m: Floats
    vertex: Rows


@dataclass(frozen=True, eq=False)
class SurfaceLook:
    """Hits of rays with a return, of rays without, and the directions (n, 3) of the latter."""

    hits: SurfaceHits
    silent: SurfaceHits
    direction: Floats


class ReturnSurface:
    """Triangles between neighbouring returns of an object, whose corners may be somewhere else now.

    Args:
        xyz: (n, 3) where the corners are. measured: (n, 3) where the sensor measured them, which tells neighbours: a
            Delaunay triangulation of their directions, without triangles that reach over a gap.

    Raises:
        NotApplicable: the returns span no surface.
    """

    def __init__(self, xyz: Floats, measured: Floats) -> None:
        triangles = _triangles(measured)
        self._xyz, self._scene = xyz, open3d().t.geometry.RaycastingScene(nthreads=1)
        self._scene.add_triangles(tensor(xyz.astype(np.float32)), tensor(triangles.astype(np.uint32)))
        self._corners = triangles
        direction = xyz / _lengths(xyz)[:, None]
        self._tree, self._distance_m = cKDTree(direction), float(_lengths(xyz).mean())
        self._half_step = np.minimum(0.5 * self._tree.query(direction, k=2)[0][:, 1], _WIDEST_HALF_STEP) + _ROUNDING

    def look(self, cloud: Cloud, drift_mps: Floats, clock: Clock, drift_m: float = 0.0) -> SurfaceLook:
        """Cast the rays of a cloud; at time t of the sweep the surface is displaced by ``drift_mps`` (3,) times t.

        ``drift_m`` is the largest displacement.
        """
        rows = self._around(cloud, drift_m)
        xyz = places(cloud, rows)
        own = lengths(xyz)
        hits = self._hits(rows, xyz / own[:, None], own, drift_mps, clock)
        x, y, _ = self._xyz.mean(axis=0).tolist()
        away = np.arctan2(self._xyz[:, 1], self._xyz[:, 0]) - np.arctan2(y, x)
        half = float(np.abs(away - 2.0 * np.pi * np.rint(away / (2.0 * np.pi))).max())
        rays = silent_rays(cloud, float(np.arctan2(y, x)), half)
        silent = self._hits(
            np.arange(len(rays.rows)), rays.direction, rays.clear_m, drift_mps, lambda at: clock(rays.rows[at])
        )
        chosen = silent.rows
        of_cloud = SurfaceHits(rays.rows[chosen], silent.range_m, silent.own_m, silent.vertex)
        return SurfaceLook(hits, of_cloud, rays.direction[chosen])

    def _around(self, cloud: Cloud, drift_m: float) -> Rows:
        """Return the returns (n,) within a cone around the surface, wherever it may be during a sweep."""
        middle = self._xyz.mean(axis=0)
        distance_m = float(np.linalg.norm(middle))
        radius = _SLACK * float(_lengths(self._xyz - middle).max()) + drift_m
        if distance_m <= radius:
            return returns_at(cloud, np.arange(len(cloud)))[0]
        return within_cone(cloud, middle / distance_m, float(np.sqrt(1.0 - (radius / distance_m) ** 2)))

    def _hits(self, rows: Rows, direction: Floats, own: Floats, drift_mps: Floats, clock: Clock) -> SurfaceHits:
        rays = np.zeros((len(rows), 6), dtype=np.float32)
        rays[:, 3:] = direction
        if drift_mps.any() and len(rows):
            rays[:, :3] = -np.outer(clock(rows), drift_mps)
        answer = self._scene.cast_rays(tensor(rays), nthreads=1)
        range_m = answer["t_hit"].numpy().astype(np.float64)
        hit = np.isfinite(range_m)
        vertex = np.full(len(rows), -1)
        corners = self._corners[answer["primitive_ids"].numpy()[hit].astype(np.int64)]
        u, v = answer["primitive_uvs"].numpy()[hit].T
        vertex[hit] = corners[np.arange(len(corners)), np.argmax(np.stack([1.0 - u - v, u, v]), axis=0)]
        missed = np.flatnonzero(~hit)
        if len(missed):
            at, found, reached_m = self._at_edge(rays[missed].astype(np.float64))
            vertex[missed[at]], range_m[missed[at]] = found, reached_m
        chosen = np.flatnonzero(vertex >= 0)
        return SurfaceHits(rows[chosen], range_m[chosen], own[chosen], vertex[chosen])

    def _at_edge(self, rays: Floats) -> tuple[Rows, Rows, Floats]:
        """Return which rays (n, 6) meet a return right beside the triangles, which return (k,), and at what range (k,).

        A return stands for the part of the object around its ray, half-way to the next: without that, every edge would
        lose half a step, and what is one ray wide would vanish.
        """
        moved, ray = -rays[:, :3], rays[:, 3:]
        towards = ray - moved / self._distance_m
        away, vertex = self._tree.query(towards / _lengths(towards)[:, None], distance_upper_bound=_WIDEST_HALF_STEP)
        near = np.flatnonzero(np.isfinite(away))
        # Now with the object's distance there, not its mean distance.
        corner = self._xyz[vertex[near]] + moved[near]
        off = _lengths(np.cross(corner, ray[near])) / _lengths(corner)
        at = off <= self._half_step[vertex[near]]
        return near[at], vertex[near[at]], (corner[at] * ray[near[at]]).sum(axis=1)


def _triangles(xyz: Floats) -> Rows:
    """Return the triangles (t, 3) between neighbouring returns (n, 3) of one object."""
    if len(xyz) < _FEWEST:
        raise NotApplicable(f"{len(xyz)} returns span no surface, at least {_FEWEST} are needed")
    x, y, z = xyz.T
    level = np.hypot(x, y)
    middle = np.arctan2(y.mean(), x.mean())
    azimuth = np.arctan2(y, x) - middle
    azimuth -= 2.0 * np.pi * np.rint(azimuth / (2.0 * np.pi))
    try:
        triangles = Delaunay(np.column_stack([azimuth, np.arctan2(z, level)])).simplices.astype(np.int64)
    except ValueError as error:  # QhullError: all on one line
        raise NotApplicable("the object's returns lie on one line and span no surface") from error
    corner = xyz[triangles]
    longest = np.max([_lengths(corner[:, i] - corner[:, i - 1]) for i in range(3)], axis=0)
    triangles = triangles[longest <= reach_m(corner.mean(axis=1))]
    if not len(triangles):
        raise NotApplicable("no three of the object's returns are neighbours on one surface")
    return triangles


def behind(cloud: Cloud, but: Rows, xyz: Floats, measured: Floats, drift: tuple[Floats, Clock]) -> Rows:
    """Return the returns (n,), except some (k,), that lie behind the surface of :class:`ReturnSurface` on their rays.

    Found without casting: a ray is a sum of the corners a, b, c of a triangle that it meets, ``u a + v b + w c`` with
    positive shares, and reaches it at the range ``1 / (u + v + w)``; the shares are ratios of triple products. Only
    triangles whose middle is near a ray are tried, and rays right at an edge are left out.

    Args:
        xyz, measured: (m, 3) as for the surface. drift: its velocity (3,), and the time of rows of the cloud.
    """
    own, (velocity, clock) = _lengths(xyz), drift
    axis = (xyz / own[:, None]).mean(axis=0)
    axis /= np.linalg.norm(axis)
    near = within_cone(cloud, axis, max(1e-3, float((xyz @ axis / own).min())))
    near = near[np.isin(near, but, invert=True)]
    corners = xyz[_triangles(measured)]
    middle = corners.mean(axis=1)
    if not len(near):
        return near
    at = places(cloud, near)
    range_m = lengths(at)
    ray = at / range_m[:, None]
    moved = np.outer(clock(near), velocity) if velocity.any() else np.zeros_like(ray)
    towards = ray - moved / own.mean()
    count = min(_TRIED, len(middle))
    _, tried = cKDTree(middle / _lengths(middle)[:, None]).query(
        towards / _lengths(towards)[:, None], k=[*range(1, count + 1)]
    )
    a, b, c = np.moveaxis(corners[tried] + moved[:, None, None], 2, 0)
    whole = _triple(a, b, c)
    shares = np.stack([_triple(ray[:, None], b, c), _triple(a, ray[:, None], c), _triple(a, b, ray[:, None])])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares /= whole
        total = shares.sum(axis=0)
        met = (shares >= _EDGE * total).all(axis=0) & (total > 0.0) & (1.0 / total < range_m[:, None] - _BEHIND_M)
    return near[met.any(axis=1)]


def _triple(a: Floats, b: Floats, c: Floats) -> Floats:
    """Return the triple products (n, k) of vectors (n, k, 3)."""
    return np.asarray((a * np.cross(b, c)).sum(axis=-1))


def _lengths(xyz: Floats) -> Floats:
    return lengths(np.ascontiguousarray(xyz.T).T)
