# SPDX-License-Identifier: Apache-2.0
"""The surface that an object's returns span, and what rays measure of it after a change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial import Delaunay, cKDTree

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.open3d_late import open3d, tensor
from mt_nodes.data.messages import Cloud
from mt_nodes.world.scene.returns import lengths, places, returns_at, within_cone

Clock = Callable[[Rows], Floats]

#: Neighbours among returns are at most this far apart, in metres across their rays and as an angle (the widest spacing
#: of rings in use is 2 degrees, of the VLP-16, half of which is a gap already in finer ones), and along their rays: a
#: roof or a road at glancing incidence. A wider gap is a gap of the object.
_LEAST_REACH_M, _REACH_RAD, _DEPTH_M = 0.12, 0.018, 0.4
_FEWEST, _ENOUGH = 4, 1500
#: The cone around the object is this much wider, so that rounding never excludes a ray.
_SLACK = 1.01
#: Half a step, and rounding.
_HALF_STEP = 0.5 + 1e-3
#: The proof: triangles tried for a ray; how near an edge, as a share, a ray is not judged; what is behind.
_TRIED, _EDGE, _BEHIND_M = 12, 0.02, 0.05


def spanning(rows: Rows) -> Rows:
    """Return the returns of an object (n,) that span its surface: where they are dense, one in some is enough."""
    return rows[:: 1 + len(rows) // _ENOUGH]


def separation(some: Floats, others: Floats) -> Floats:
    """Return the distance (n, k) of returns (n, 3) from others (n, k, 3), 1 for the farthest neighbours.

    Across and along the ray are compared with different limits.
    """
    range_m, other_m = _lengths(some)[:, None], _lengths(others.reshape(-1, 3)).reshape(others.shape[:2])
    turn = np.linalg.norm(others / other_m[..., None] - (some / range_m)[:, None], axis=2)
    reach = np.maximum(_LEAST_REACH_M / range_m, _REACH_RAD)
    return np.asarray(np.hypot(turn / reach, (other_m - range_m) / _DEPTH_M))


@dataclass(frozen=True, eq=False)
class SurfaceHits:
    """Rays that hit a surface.

    Attributes:
        rays: (n,) indices of the rays that were cast. rows: (n,) of the cloud. range_m: (n,) to the surface.
        own_m: (n,) to the cloud's return on that ray, or to what its neighbours tell of a ray without.
        vertex: (n,) the nearest of the returns that span the surface.
    """

    rays: Rows
    rows: Rows
    range_m: Floats
    own_m: Floats
    vertex: Rows


class ReturnSurface:
    """Triangles between neighbouring returns of an object, whose corners may be somewhere else now.

    Raises NotApplicable: the returns span no surface.

    Args:
        xyz: (n, 3) where the corners are. measured: (n, 3) where the sensor measured them, which tells neighbours: a
            Delaunay triangulation of their directions, without triangles that reach over a gap.
        steps_rad: (2,) from ray to ray of one ring, and from ring to ring.
    """

    def __init__(self, xyz: Floats, measured: Floats, steps_rad: Floats) -> None:
        triangles = _triangles(measured)
        self._xyz, self._scene = xyz, open3d().t.geometry.RaycastingScene(nthreads=1)
        self._scene.add_triangles(tensor(xyz.astype(np.float32)), tensor(triangles.astype(np.uint32)))
        self._corners = triangles
        self._steps, self._distance_m = steps_rad, float(_lengths(xyz).mean())
        self._bearing_rad = float(np.arctan2(*xyz[:, 1::-1].mean(axis=0)))
        self._tree = cKDTree(self._in_steps(xyz), compact_nodes=False, balanced_tree=False)

    @property
    def window(self) -> tuple[float, float]:
        """Bearing and half width of the surface, in radians."""
        return self._bearing_rad, float(np.abs(self._tree.data[:, 0]).max()) * float(self._steps[0])

    def hits(self, cloud: Cloud, drift_mps: Floats, clock: Clock, drift_m: float = 0.0) -> SurfaceHits:
        """Cast the rays of a cloud; at time t of the sweep the surface is displaced by ``drift_mps`` (3,) times t.

        ``drift_m`` is the largest displacement.
        """
        rows = self._around(cloud, drift_m)
        xyz = places(cloud, rows)
        own = lengths(xyz)
        return self.meet(rows, xyz / own[:, None], own, drift_mps, clock)

    def _around(self, cloud: Cloud, drift_m: float) -> Rows:
        """Return the returns (n,) within a cone around the surface, wherever it may be during a sweep."""
        middle = self._xyz.mean(axis=0)
        distance_m = float(np.linalg.norm(middle))
        radius = _SLACK * float(_lengths(self._xyz - middle).max()) + drift_m
        if distance_m <= radius:
            return returns_at(cloud, np.arange(len(cloud)))[0]
        return within_cone(cloud, middle / distance_m, float(np.sqrt(1.0 - (radius / distance_m) ** 2)))

    def meet(self, rows: Rows, direction: Floats, own: Floats, drift_mps: Floats, clock: Clock) -> SurfaceHits:
        """Cast rays in directions (n, 3), each with the row of its time and with ``own_m`` (n,)."""
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
        return SurfaceHits(chosen, rows[chosen], range_m[chosen], own[chosen], vertex[chosen])

    def _at_edge(self, rays: Floats) -> tuple[Rows, Rows, Floats]:
        """Return which rays (n, 6) meet a return right beside the triangles, which return (k,), and at what range (k,).

        A return stands for the part of the object around its ray, half-way to the next: without that, every edge would
        lose half a step, and what is one ray wide would vanish.
        """
        moved, ray = -rays[:, :3], rays[:, 3:]
        towards = self._in_steps(ray - moved / self._distance_m)
        low, high = self._tree.mins - _HALF_STEP, self._tree.maxes + _HALF_STEP
        may = np.flatnonzero(((towards >= low) & (towards <= high)).all(axis=1))
        away, vertex = self._tree.query(towards[may], p=np.inf, distance_upper_bound=_HALF_STEP)
        near = np.isfinite(away)
        at, vertex = may[near], vertex[near]
        corner = self._xyz[vertex] + moved[at]
        # The object may be nearer there than its middle, which was taken to find the return.
        off = np.abs(self._in_steps(corner) - self._in_steps(ray[at])).max(axis=1) <= _HALF_STEP
        at, vertex, corner = at[off], vertex[off], corner[off]
        return at, vertex, (corner * ray[at]).sum(axis=1)

    def _in_steps(self, xyz: Floats) -> Floats:
        """Return azimuth from the object's middle and elevation (n, 2) of points (n, 3), in steps."""
        x, y, z = xyz.T
        azimuth = np.arctan2(y, x) - self._bearing_rad
        azimuth -= 2.0 * np.pi * np.rint(azimuth / (2.0 * np.pi))
        return np.column_stack([azimuth, np.arctan2(z, np.hypot(x, y))]) / self._steps


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
    longest = np.max([separation(corner[:, i - 1], corner[:, [i]])[:, 0] for i in range(3)], axis=0)
    triangles = triangles[longest <= 1.0]
    if not len(triangles):
        raise NotApplicable("no three of the object's returns are neighbours on one surface")
    return np.asarray(triangles)


def behind(cloud: Cloud, but: Rows, xyz: Floats, measured: Floats, drift: tuple[Floats, Clock]) -> Rows:
    """Return the returns (n,), except some (k,), that lie behind the surface of :class:`ReturnSurface` on their rays.

    Found without casting: a ray is a sum of the corners a, b, c of a triangle that it meets, ``u a + v b + w c`` with
    positive shares, and reaches it at the range ``1 / (u + v + w)``; the shares are ratios of triple products. Only
    triangles whose middle is near a ray are tried, and rays right at an edge are left out.
    ``xyz``, ``measured``: (m, 3) as for the surface. ``drift``: its velocity (3,), and the time of rows of the cloud.
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
    return np.asarray(near[met.any(axis=1)])


def _triple(a: Floats, b: Floats, c: Floats) -> Floats:
    """Return the triple products (n, k) of vectors (n, k, 3)."""
    return np.asarray((a * np.cross(b, c)).sum(axis=-1))


def _lengths(xyz: Floats) -> Floats:
    return lengths(np.ascontiguousarray(xyz.T).T)
