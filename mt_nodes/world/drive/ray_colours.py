# SPDX-License-Identifier: Apache-2.0
"""Colours and normals at the ends of rays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mt_nodes.base.arrays import Rows, Singles
from mt_nodes.world.drive.solids import Hits, Solids, turned
from mt_nodes.world.scene.appearance import Paint, Surface


def painted(
    solids: Solids, triangle: Rows, places: Singles, range_m: Singles, pixel_rad: float, other: Mapping[int, Paint]
) -> tuple[Singles, Singles]:
    """Return albedo and glow (n, 3) of places (n, 3) on triangles (n,) at ranges (n,) from the camera.

    ``pixel_rad``: angle of a pixel. ``other``: replacements for the paints of some bodies, by number.
    """
    albedo, glow = np.empty((len(places), 3), np.float32), np.zeros((len(places), 3), np.float32)
    of = solids.of.take(triangle)
    order = np.argsort(of, kind="stable")
    numbers, counts = np.unique(of, return_counts=True)
    for number, rows in zip(numbers.tolist(), np.split(order, np.cumsum(counts))[:-1], strict=True):
        paint = other.get(number, solids.bodies[number].paint)
        own = solids.own_places(number, places.take(rows, axis=0))
        pixel_m = float(range_m.take(rows).mean()) * pixel_rad
        reflectivity = solids.reflectivity.take(triangle.take(rows)).astype(np.float32)
        colours = paint(Surface(own, reflectivity, pixel_m))
        albedo[rows] = colours.albedo
        if colours.glow is not None:
            glow[rows] = colours.glow
    return albedo, glow


def facing(normal: Singles, directions: Singles) -> Singles:
    """Return normals (n, 3) at the ends of rays, on the visible side."""
    away = np.einsum("ij,ij->i", normal, directions) > 0.0
    return np.where(away[:, None], -normal, normal)


def smooth_normals(solids: Solids, hits: Hits, directions: Singles) -> Singles:
    """Return interpolated unit normals (n, 3) between the triangles' corners, on the visible side."""
    flat = facing(hits.normal, directions)
    a, b, c = np.moveaxis(solids.smooth.take(hits.triangle, axis=0), 1, 0)
    u, v = hits.weights.T[:, :, None]
    normal = a + u * (b - a) + v * (c - a)
    normal = turned(normal, solids.poses[:, 3].take(solids.of.take(hits.triangle)))
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-6)
    away = np.einsum("ij,ij->i", normal, flat) < 0.0
    normal[away] = flat[away]
    return np.asarray(normal, np.float32)
