# SPDX-License-Identifier: Apache-2.0
"""Outlines of cars, of no particular make, and how wide they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np

from mt_nodes.base.arrays import Floats, Singles

#: Step of the outline's map of distances, in metres.
OUTLINE_M = 0.01


@dataclass(frozen=True)
class CarShape:
    """A car's outline.

    Attributes:
        roof: points (x, z) of the outline from the side, from the front bumper over the roof to the rear one, as shares
            of half the length (1 ahead) and of the height. belt: share of the height at which the side windows begin.
        pillars: x of the posts between side windows, as shares of half the length. wheel_m: radius of the wheels.
        axles: x of both, as shares of half the length. tail_lamps: high, wide or low.
    """

    length_m: float
    width_m: float
    height_m: float
    roof: tuple[tuple[float, float], ...]
    belt: float = 0.62
    pillars: tuple[float, ...] = (0.02, -0.5)
    wheel_m: float = 0.315
    axles: tuple[float, float] = (0.62, -0.6)
    tail_lamps: str = "wide"
    spokes: int = 5
    roof_rails: bool = False


# fmt: off
SALOON = CarShape(
    4.65, 1.8, 1.44,
    ((1.0, 0.3), (0.99, 0.46), (0.92, 0.54), (0.42, 0.665), (0.34, 0.69), (0.0, 0.955), (-0.18, 1.0), (-0.4, 0.985),
     (-0.5, 0.94), (-0.74, 0.73), (-0.95, 0.7), (-0.99, 0.6), (-1.0, 0.45), (-0.98, 0.3)),
    pillars=(-0.04, -0.44),
)
ESTATE = CarShape(
    4.7, 1.8, 1.48,
    ((1.0, 0.3), (0.99, 0.46), (0.92, 0.54), (0.42, 0.65), (0.34, 0.68), (0.0, 0.95), (-0.18, 1.0), (-0.6, 0.99),
     (-0.82, 0.95), (-0.96, 0.7), (-0.99, 0.55), (-0.985, 0.3)),
    pillars=(-0.04, -0.42, -0.5), tail_lamps="high", roof_rails=True, spokes=7,
)
SUV = CarShape(
    4.55, 1.86, 1.68,
    ((1.0, 0.36), (0.995, 0.5), (0.94, 0.58), (0.44, 0.67), (0.36, 0.7), (0.06, 0.955), (-0.14, 1.0), (-0.6, 0.99),
     (-0.84, 0.95), (-0.95, 0.7), (-0.99, 0.58), (-0.985, 0.34)),
    belt=0.64, pillars=(0.0, -0.45, -0.52), wheel_m=0.355, tail_lamps="high", roof_rails=True,
)
SMALL = CarShape(
    3.6, 1.64, 1.5,
    ((1.0, 0.3), (0.985, 0.46), (0.9, 0.56), (0.56, 0.66), (0.48, 0.69), (0.12, 0.95), (-0.1, 1.0), (-0.6, 0.985),
     (-0.88, 0.92), (-0.985, 0.64), (-1.0, 0.48), (-0.98, 0.3)),
    pillars=(-0.1,), wheel_m=0.29, axles=(0.66, -0.68), tail_lamps="low", spokes=8,
)
# fmt: on


@lru_cache
def outline(shape: CarShape) -> tuple[Singles, float, float]:
    """Return the signed distance (rows, columns) from the outline at the side, and the x and z of its first sample."""
    half, height = shape.length_m / 2.0, shape.height_m
    sill = 0.2 if shape.height_m < 1.6 else 0.25
    ring = np.array([(x * half, z * height) for x, z in shape.roof] + [(-half * 0.93, sill), (half * 0.93, sill)])
    smooth = _spline(ring)
    x0, z0 = -half - 0.3, -0.2
    size = int((height + 0.5) / OUTLINE_M), int((2 * half + 0.6) / OUTLINE_M)
    mask = np.zeros(size, np.uint8)
    cv2.fillPoly(mask, [np.rint((smooth - (x0, z0)) / OUTLINE_M * 16).astype(np.int32)], 1, cv2.LINE_8, 4)
    inside, outside = (cv2.distanceTransform(m, cv2.DIST_L2, 5) for m in (mask, 1 - mask))
    signed = ((outside - inside) * OUTLINE_M).astype(np.float32)
    return np.asarray(cv2.GaussianBlur(signed, (0, 0), 3.0), np.float32), x0, z0


def _spline(ring: Floats) -> Floats:
    """Return a dense closed curve through points, smooth by Catmull and Rom's spline with centripetal tension."""
    dense = []
    for i in range(len(ring)):
        p0, p1, p2, p3 = (ring[(i + j) % len(ring)] for j in (-1, 0, 1, 2))
        t = np.linspace(0, 1, 12, endpoint=False)[:, None]
        m1, m2 = 0.3 * (p2 - p0), 0.3 * (p3 - p1)
        limit = 0.9 * float(np.linalg.norm(p2 - p1))
        m1, m2 = (m * min(1.0, limit / max(float(np.linalg.norm(m)), 1e-9)) for m in (m1, m2))
        dense.append(
            (2 * t**3 - 3 * t**2 + 1) * p1
            + (t**3 - 2 * t**2 + t) * m1
            + (3 * t**2 - 2 * t**3) * p2
            + (t**3 - t**2) * m2
        )
    return np.concatenate(dense)


def half_width(shape: CarShape, x: Singles, z: Singles) -> Singles:
    """Return half the width at places: narrower at both ends, at the sill, and above the belt."""
    half, width = shape.length_m / 2.0, shape.width_m / 2.0
    u = np.clip(x / half, -1.0, 1.0)
    plan = 1.0 - 0.13 * np.clip((np.abs(u) - 0.55) / 0.45, 0.0, 1.0) ** 2.2
    belt = shape.belt * shape.height_m
    above = np.clip((z - belt) / (shape.height_m - belt), 0.0, 1.2)
    below = np.clip((0.45 - z) / 0.35, 0.0, 1.0)
    crease = 0.012 * np.exp(-(((z - belt + 0.09) / 0.05) ** 2)) + 0.008 * np.exp(-(((z - 0.42) / 0.06) ** 2))
    return np.asarray(
        width * plan * (1.0 - 0.2 * above - 0.05 * above**2 - 0.06 * below**2) - 0.015 + crease, np.float32
    )
