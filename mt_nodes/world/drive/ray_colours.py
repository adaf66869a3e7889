# SPDX-License-Identifier: Apache-2.0
"""Colours and normals at the ends of rays; those of the ground (grain, paint, water, snow) are assumed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import cv2
import numpy as np

from mt_nodes.base.arrays import Ints, Rows, Singles
from mt_nodes.world.drive.ground import ROADWAY, Ground, interpolated
from mt_nodes.world.drive.solids import Hits, Solids, turned
from mt_nodes.world.scene.appearance import Paint, Surface

#: Asphalt, paving, grass; paint; snow.
_BARE = np.array([(0.13, 0.13, 0.135), (0.24, 0.23, 0.215), (0.09, 0.13, 0.04)], np.float32)
_PAINT, _SNOW = 0.7, 0.85
#: Share of each surface that full snow cover hides: cars clear the road.
_SNOWED = np.array([0.35, 0.9, 1.0], np.float32)
#: A wet road is darker by this share.
_DARKER = 0.45
#: Grain is visible up to this range; a tile of it has this many pixels, at this resolution per metre.
_GRAINY_M, _TILE, _PER_M = 12.0, 512, 30.0


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


def ground_colours(
    ground: Ground,
    triangle: Ints,
    x_m: Singles,
    y_m: Singles,
    range_m: Singles,
    pixel_rad: float,
    white: float,
    wet: float,
) -> Singles:
    """Return albedos (n, 3) at places (n,) of ``map``.

    Args:
        triangle: (n,) of the ground. range_m: (n,) from the camera. pixel_rad: angle of a pixel.
        white: share covered by snow. wet: wetness of the road, 0 to 1.
    """
    material = ground.materials.take(triangle)
    table = _BARE * np.array([1.0 - _DARKER * wet, 1.0 - 0.5 * _DARKER * wet, 1.0], np.float32)[:, None]
    table = table + (white * _SNOWED)[:, None] * (_SNOW - table)
    colours = np.asarray(table.astype(np.float32).take(material, axis=0))
    near = np.flatnonzero(range_m < _GRAINY_M)
    fading = np.float32(0.35) * (1.0 - range_m[near] * np.float32(1.0 / _GRAINY_M))
    colours[near] *= (1.0 + fading * _grain(x_m[near], y_m[near]))[:, None]
    road = np.flatnonzero(material == ROADWAY)
    # A pixel covers more length than width of the road: the lookup uses a size in between.
    share = ground.painted(x_m[road], y_m[road], range_m[road] * np.float32(1.5 * pixel_rad))
    share *= np.float32(1.0 - white * float(_SNOWED[ROADWAY]))
    painted = np.flatnonzero(share > 0.0)
    rows = road[painted]
    colours[rows] += share[painted, None] * (np.float32(_PAINT) - colours[rows])
    return colours


def _grain(x_m: Singles, y_m: Singles) -> Singles:
    """Return noise (n,) of mean 0, always the same at the same place."""
    column, row = (np.mod(at, np.float32(_TILE / _PER_M)) * np.float32(_PER_M) for at in (x_m, y_m))
    return interpolated(_tile(), column, row, cv2.BORDER_WRAP)


@lru_cache
def _tile() -> Singles:
    """Return grain of two sizes, the same for every map: the ground is not random."""
    rng = np.random.Generator(np.random.PCG64(0))
    fine, coarse = (rng.standard_normal((n, n)).astype(np.float32) for n in (_TILE, _TILE // 32))
    wide = cv2.resize(np.pad(coarse, ((0, 1), (0, 1)), mode="wrap"), (_TILE, _TILE), interpolation=cv2.INTER_LINEAR)
    return np.asarray(np.clip(0.5 * fine + 0.35 * wide, -1.0, 1.0), np.float32)
