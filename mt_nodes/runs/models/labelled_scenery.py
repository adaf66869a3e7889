# SPDX-License-Identifier: Apache-2.0
"""What stands in a made-up street: vehicles and people in sizes of their own, and what is behind them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mt_nodes.world.scene import meshes
from mt_nodes.world.scene.meshes import Mesh
from mt_nodes.world.scene.objects import mesh_of


def vehicle(rng: np.random.Generator, name: str) -> Mesh:
    """Return the mesh of a kind in a size and a paint of its own."""
    paint = float(rng.uniform(0.05, 0.6))
    if name == "car":
        return meshes.car(paint, rng.uniform(3.5, 5.0), rng.uniform(1.55, 1.95), rng.uniform(1.35, 1.9))
    if name == "van":
        return meshes.van(paint, rng.uniform(4.4, 6.5), rng.uniform(1.8, 2.1), rng.uniform(1.9, 2.7))
    if name == "adult":
        return meshes.pedestrian(paint, rng.uniform(1.5, 1.95), rng.uniform(0.0, 2.0 * np.pi))
    mesh = mesh_of(name)
    stretch = np.append(rng.uniform(0.9, 1.1, 2), rng.uniform(0.9, 1.1))
    return replace(mesh, vertices_m=mesh.vertices_m * stretch)


def backdrop(rng: np.random.Generator, length_m: float) -> Iterator[tuple[str, Mesh]]:
    """Draw what stands along so much of a road, each with its surface; the road is on its right, y towards −∞."""
    what = rng.choice(["house", "wall", "hedge", "trees", "bank", "nothing"], p=[0.3, 0.1, 0.2, 0.2, 0.15, 0.05])
    if what == "house":
        depth = rng.uniform(4.0, 10.0)
        house = meshes.building((length_m, depth, rng.uniform(3.0, 14.0)), rng.uniform(0.1, 0.6))
        yield "facade", house.placed(0.0, depth / 2.0)
    elif what == "wall":
        yield "wall", meshes.building((length_m, rng.uniform(0.1, 0.4), rng.uniform(0.5, 2.5)), rng.uniform(0.1, 0.6))
    elif what == "hedge":
        yield from (("leaves", bush) for bush in _foliage(rng, length_m, (0.2, 0.9), (0.0, rng.uniform(0.6, 2.5))))
    elif what == "trees":
        for x in np.arange(-length_m / 2, length_m / 2, rng.uniform(4.0, 8.0)):
            trunk, high = rng.uniform(0.08, 0.35), rng.uniform(1.5, 3.5)
            yield "bark", meshes.rod((x, 0.0, 0.0), (x, 0.0, high + 1.0), trunk, rng.uniform(0.1, 0.4))
            crown = meshes.merged(_foliage(rng, 3.0, (0.5, 1.3), (high, high + 2.5)))
            yield "leaves", crown.placed(x, 0.0)
    elif what == "bank":
        yield "soil", _bank(rng, length_m)
        if rng.random() < 0.5:
            yield "leaves", meshes.merged(_foliage(rng, length_m, (0.2, 0.7), (0.3, 2.0))).placed(0.0, 2.0)


def _bank(rng: np.random.Generator, length_m: float) -> Mesh:
    """Return rough ground that rises away from the road, or falls a little."""
    step, width = 0.4, 10.0
    x, y = np.meshgrid(np.arange(0.0, length_m, step) - length_m / 2, np.arange(0.0, width, step), indexing="ij")
    z = np.maximum(rng.uniform(0.0, 0.7) * y, 0.0) + rng.normal(0.0, rng.uniform(0.02, 0.25), x.shape)
    corner = np.arange(x.size).reshape(x.shape)
    a, b, c, d = (corner[i : i - 1 or None, j : j - 1 or None] for i in (0, 1) for j in (0, 1))
    triangles = np.concatenate([np.stack(t, axis=-1).reshape(-1, 3) for t in ((a, c, b), (b, c, d))])
    vertices = np.stack([x, y, np.where(y > 0.0, z, 0.0)], axis=-1).reshape(-1, 3)
    return Mesh(vertices, triangles.astype(np.uint32), np.full(len(triangles), rng.uniform(0.1, 0.5)))


def _foliage(
    rng: np.random.Generator, length_m: float, radius_m: tuple[float, float], z_m: tuple[float, float]
) -> list[Mesh]:
    return [
        meshes.ellipsoid(
            tuple(rng.uniform(*radius_m, 3)),
            (rng.uniform(-length_m / 2, length_m / 2), rng.normal(0.0, 0.4), rng.uniform(*z_m)),
            rng.uniform(0.1, 0.5),
        )
        for _ in range(max(4, round(1.2 * length_m)))
    ]


def post(rng: np.random.Generator) -> Mesh:
    """Draw what stands upright at a kerb: posts, and signs on them."""
    if rng.random() < 0.7:
        return meshes.pole(rng.uniform(0.1, 0.5), rng.uniform(0.8, 7.0), rng.uniform(0.03, 0.25))
    return mesh_of(str(rng.choice(["traffic_sign", "traffic_light", "delineator"])))
