# SPDX-License-Identifier: Apache-2.0
"""Triangle meshes of a street's objects, made from Open3D's primitives.

Every object is built around its own origin: on the ground, x forward, y left, z up, metres.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.base.open3d_late import open3d

Vector = tuple[float, float, float]

#: Reflectivities by which paint tells the materials of meshes apart.
TYRE, GLASS, SKIN, CHROME = 0.04, 0.08, 0.45, 0.62
RETRO, FILM, PLASTIC, STEEL, HORSE, SLEEVE, CLOTH, WOOD, DARK = 1.0, 0.95, 0.9, 0.4, 0.37, 0.34, 0.33, 0.28, 0.1


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles with a diffuse reflectivity each.

    ``vertices_m``: (V, 3) float64. ``triangles``: (T, 3) indices. ``reflectivity``: (T,) in 0..1.
    """

    vertices_m: Floats
    triangles: npt.NDArray[np.uint32]
    reflectivity: Floats

    def placed(self, x_m: float, y_m: float, yaw_rad: float = 0.0) -> Mesh:
        """Return the mesh rotated about z, then moved over the ground."""
        c, s = np.cos(yaw_rad), np.sin(yaw_rad)
        turned = self.vertices_m @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
        return Mesh(turned + np.array([x_m, y_m, 0.0]), self.triangles, self.reflectivity)


def merged(meshes: Iterable[Mesh]) -> Mesh:
    """Join meshes into one, keeping their order."""
    parts = list(meshes)
    counts = [len(part.vertices_m) for part in parts]
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.uint32)
    return Mesh(
        np.concatenate([part.vertices_m for part in parts]),
        np.concatenate([part.triangles + start for part, start in zip(parts, starts, strict=True)]),
        np.concatenate([part.reflectivity for part in parts]),
    )


def box(size_m: Vector, center_m: Vector, reflectivity: float) -> Mesh:
    """Return an axis-aligned box."""
    return _affine("box", np.diag(size_m), center_m, reflectivity)


def ellipsoid(radii_m: Vector, center_m: Vector, reflectivity: float) -> Mesh:
    """Return an axis-aligned ellipsoid."""
    return _affine("sphere", np.diag(radii_m), center_m, reflectivity)


def rod(start_m: Vector, end_m: Vector, radius_m: float, reflectivity: float) -> Mesh:
    """Return a cylinder between two points."""
    start, end = np.array(start_m), np.array(end_m)
    axis = end - start
    along = axis / np.linalg.norm(axis)
    across = _cross(along, np.array([0.0, 1.0, 0.0] if abs(along[1]) < 0.9 else [1.0, 0.0, 0.0]))
    across /= np.linalg.norm(across)
    columns = np.column_stack([across * radius_m, _cross(along, across) * radius_m, axis])
    return _affine("cylinder", columns, (start + end) / 2, reflectivity)


def _cross(one: Floats, other: Floats) -> Floats:
    """Return the cross product of two vectors (3,): what ``np.cross`` does, in a tenth of its time."""
    (a, b, c), (x, y, z) = one.tolist(), other.tolist()
    return np.array([b * z - c * y, c * x - a * z, a * y - b * x])


def cone(base_m: Vector, radius_m: float, height_m: float, reflectivity: float) -> Mesh:
    """Return an upright cone over the centre of its base."""
    x, y, z = base_m
    return _affine("cone", np.diag([radius_m, radius_m, height_m]), (x, y, z + height_m / 2), reflectivity)


def prism(profile_m: Sequence[tuple[float, float]], width_m: float, reflectivity: float) -> Mesh:
    """Return a side view (x, z), star-shaped about its mean, extruded along y."""
    n = len(profile_m)
    side = np.array([*profile_m, np.mean(profile_m, axis=0)])
    vertices = np.concatenate([np.column_stack([side[:, 0], np.full(n + 1, y), side[:, 1]]) for y in (-0.5, 0.5)])
    i = np.arange(n)
    j, far = (i + 1) % n, n + 1
    faces = [(i, j, np.full(n, n)), (i + far, j + far, np.full(n, n + far)), (i, j, i + far), (j, j + far, i + far)]
    triangles = np.concatenate([np.column_stack(face) for face in faces]).astype(np.uint32)
    return Mesh(vertices * (1.0, width_m, 1.0), triangles, np.full(len(triangles), reflectivity))


def car(reflectivity: float, length_m: float = 4.4, width_m: float = 1.8, height_m: float = 1.5) -> Mesh:
    """Return a passenger car: body with a sloping bonnet, glass, roof, four wheels."""
    body = [(-0.5, 0.15), (0.5, 0.15), (0.5, 0.42), (0.45, 0.52), (0.25, 0.65), (-0.47, 0.65), (-0.5, 0.6)]
    cabin = [(-0.46, 0.62), (0.3, 0.62), (0.08, 0.96), (-0.32, 0.96)]
    roof = [(-0.32, 0.96), (0.08, 0.96), (0.06, 1.0), (-0.3, 1.0)]
    parts = ((body, width_m, reflectivity), (cabin, 0.9 * width_m, GLASS), (roof, 0.88 * width_m, reflectivity))
    return merged(
        [
            *(prism([(x * length_m, z * height_m) for x, z in view], wide, shine) for view, wide, shine in parts),
            *_wheels(length_m, width_m, 0.32),
        ]
    )


def van(reflectivity: float, length_m: float = 5.6, width_m: float = 2.0, height_m: float = 2.4) -> Mesh:
    """Return a delivery van: cargo box, lower bonnet, four wheels."""
    bonnet = 0.18 * length_m
    return merged(
        [
            box((length_m - bonnet, width_m, height_m - 0.3), (-bonnet / 2, 0.0, (height_m + 0.3) / 2), reflectivity),
            box((bonnet, width_m, 0.9), ((length_m - bonnet) / 2, 0.0, 0.75), reflectivity),
            *_wheels(length_m, width_m, 0.36),
        ]
    )


def pedestrian(reflectivity: float, height_m: float = 1.75, phase_rad: float = 0.0) -> Mesh:
    """Return a walker: two legs and two arms that swing with ``phase_rad``, trunk, head."""
    h, swing = height_m, 0.16 * height_m * np.sin(phase_rad)
    limbs = []
    for side, reach in ((0.09, swing), (-0.09, -swing)):
        limbs.append(rod((reach, side, 0.0), (0.0, side, 0.48 * h), 0.075, reflectivity))
        limbs.append(rod((-reach, 2.6 * side, 0.45 * h), (0.0, 2.4 * side, 0.8 * h), 0.045, reflectivity))
    trunk = ellipsoid((0.15, 0.22, 0.21 * h), (0.0, 0.0, 0.65 * h), reflectivity)
    return merged([*limbs, trunk, ellipsoid((0.1, 0.09, 0.07 * h), (0.0, 0.0, 0.93 * h), SKIN)])


def cyclist(reflectivity: float, phase_rad: float = 0.0) -> Mesh:
    """Return a bicycle with its rider, 1.75 m long and high."""
    pedal = 0.15 * np.array([np.cos(phase_rad), np.sin(phase_rad)])
    saddle, bars, crank = (-0.2, 0.0, 0.95), (0.45, 0.0, 1.0), (0.0, 0.0, 0.3)
    frame = [rod(a, b, 0.025, 0.3) for a, b in ((saddle, crank), (crank, bars), (saddle, bars))]
    wheels = [rod((x, -0.02, 0.34), (x, 0.02, 0.34), 0.34, TYRE) for x in (-0.53, 0.53)]
    legs = []
    for side in (1.0, -1.0):
        foot = (side * float(pedal[0]), 0.12 * side, 0.3 + side * float(pedal[1]))
        knee = (0.22, 0.12 * side, 0.68 + 0.5 * side * float(pedal[1]))
        legs += [rod((-0.18, 0.1 * side, 0.98), knee, 0.075, reflectivity), rod(knee, foot, 0.06, reflectivity)]
    arms = [rod((0.08, 0.2 * s, 1.42), (0.42, 0.25 * s, 1.02), 0.05, reflectivity) for s in (1.0, -1.0)]
    trunk = [rod((-0.18, 0.0, 0.98), (0.08, 0.0, 1.46), 0.18, reflectivity)]
    head = [ellipsoid((0.12, 0.1, 0.13), (0.18, 0.0, 1.62), SKIN)]
    return merged([*frame, *wheels, *legs, *arms, *trunk, *head])


def pole(reflectivity: float, height_m: float = 5.0, radius_m: float = 0.08) -> Mesh:
    """Return a lamp post."""
    return rod((0.0, 0.0, 0.0), (0.0, 0.0, height_m), radius_m, reflectivity)


def building(size_m: Vector, reflectivity: float) -> Mesh:
    """Return a house: a box that stands on the ground."""
    return box(size_m, (0.0, 0.0, size_m[2] / 2), reflectivity)


def _wheels(length_m: float, width_m: float, radius_m: float) -> list[Mesh]:
    edge = width_m / 2
    return [
        rod((x, y - 0.1 * np.sign(y), radius_m), (x, y + 0.01 * np.sign(y), radius_m), radius_m, TYRE)
        for x in (0.3 * length_m, -0.3 * length_m)
        for y in (edge, -edge)
    ]


def _affine(name: str, columns: Floats, center: Iterable[float], reflectivity: float) -> Mesh:
    vertices, triangles = _primitive(name)
    return Mesh(vertices @ columns.T + tuple(center), triangles, np.full(len(triangles), reflectivity))


@lru_cache
def _primitive(name: str) -> tuple[Floats, npt.NDArray[np.uint32]]:
    """Vertices and triangles of a unit primitive centred on the origin."""
    make = open3d().geometry.TriangleMesh
    mesh = {
        "box": lambda: make.create_box(1.0, 1.0, 1.0),
        "sphere": lambda: make.create_sphere(1.0, resolution=8),
        "cylinder": lambda: make.create_cylinder(1.0, 1.0, resolution=12, split=1),
        "cone": lambda: make.create_cone(1.0, 1.0, resolution=12, split=1),
    }[name]()
    vertices = np.asarray(mesh.vertices)
    return vertices - (vertices.min(axis=0) + vertices.max(axis=0)) / 2, np.asarray(mesh.triangles).astype(np.uint32)
