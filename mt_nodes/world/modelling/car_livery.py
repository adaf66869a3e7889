# SPDX-License-Identifier: Apache-2.0
"""What is on a car's body: glass, lamps, plates, grille, shut lines, handles, drawn from four sides."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Ints, Singles
from mt_nodes.world.modelling.car_shapes import OUTLINE_M, CarShape, half_width, outline
from mt_nodes.world.modelling.decals import Decal
from mt_nodes.world.scene.appearance import SurfaceColours
from mt_nodes.world.scene.lamps import LAMPS, OFF

Flags = npt.NDArray[np.bool_]
Rgb = tuple[float, float, float]
Points = list[tuple[float, float]]

#: Reflectance at normal incidence of clear coat and of glass (refractive index 1.5), and of chromium.
COAT_F0, GLASS_F0, METAL_F0 = 0.04, 0.043, 0.5
BLACK: Rgb = (0.012, 0.012, 0.013)
_DARK, _PANE, _RED, _LENS = (0.025, 0.025, 0.027), (0.02, 0.022, 0.024), (0.33, 0.008, 0.008), (0.5, 0.51, 0.52)
#: Width of a gap between panels, and radius of a lit lamp, in metres.
_SEAM_M, _LAMP_M = 0.007, 0.13


@dataclass(frozen=True, eq=False)
class Livery:
    """The four pictures on a car's body, in its frame, and the colour of its paint.

    ``body_vertices``: number of the first vertices of the mesh, which are the body's.
    """

    paint: Rgb
    side: Decal
    front: Decal
    rear: Decal
    top: Decal
    shape: CarShape
    body_vertices: int = 0

    def colours(
        self,
        places: Singles,
        normals: Singles,
        pixel_m: float,
        vertex: Ints,
        albedo: Singles,
        mirror: Singles,
        lamps: str,
    ) -> SurfaceColours:
        """Return the colours at places (n, 3); ``albedo`` and ``mirror`` are those of the mesh there."""
        glass = np.zeros(len(places), bool)
        own = np.flatnonzero((vertex < self.body_vertices) & (mirror > 0.02))
        marks = self.chosen(places[own], normals[own], pixel_m)
        base = np.array(self.paint, np.float32)
        albedo[own] = base + marks[:, 3:4] * (marks[:, :3] - base)
        mirror[own] = np.where(marks[:, 3] > 0.5, marks[:, 4], COAT_F0)
        glass[own] = marks[:, 5] > 0.5
        dark = own[in_arch(self.shape, places[own])]
        albedo[dark], mirror[dark], glass[dark] = BLACK, 0.0, False
        return SurfaceColours(albedo, None if lamps == OFF else self._glow(places, lamps), mirror, glass)

    def _glow(self, places: Singles, lamps: str) -> Singles:
        """Return the light (n, 3) of lit lamps: flashers at four corners, head lamps at two, or the right one."""
        s, glow = self.shape, np.zeros((len(places), 3), np.float32)
        low, high = tail_heights(s)
        ends = [(0.97 * s.length_m / 2, 0.47 * s.height_m, 1.0 if lamps == "hazard" else 0.72)]
        if lamps == "hazard":
            ends.append((-0.98 * s.length_m / 2, 0.5 * (low + high), 0.9))
        for x, z, share in ends:
            for side in (-1.0,) if lamps == "one_headlamp" else (1.0, -1.0):
                center = np.array([x, side * share * s.width_m / 2 * 0.93, z], np.float32)
                glow[np.linalg.norm(places - center, axis=1) < _LAMP_M] = LAMPS["car"][lamps].colour
        return glow

    def chosen(self, places: Singles, normals: Singles, pixel_m: float) -> Singles:
        """Return what the pictures show (n, 7) at places (n, 3) of the body with these normals."""
        x, y, z = places.T
        found = np.zeros((len(places), 7), np.float32)
        lateral, ahead, up = np.abs(normals[:, 1]), normals[:, 0], normals[:, 2]
        flank = (lateral > 0.62) | ((lateral > np.abs(ahead)) & (up < 0.75) & (lateral > 0.3))
        level = ~flank & (up > np.where(z > self.shape.belt * self.shape.height_m, 0.975, 0.8))
        front, rear = ~flank & ~level & (ahead > 0.15) & (x > 0), ~flank & ~level & (ahead < -0.15) & (x < 0)
        above = ~flank & ~front & ~rear & (up > 0.0)
        sides = ((flank, self.side, x, z), (front, self.front, y, z), (rear, self.rear, y, z), (above, self.top, x, y))
        for where, decal, right, upward in sides:
            if len(at := np.flatnonzero(where)):
                found[at] = decal.sampled(right[at], upward[at], pixel_m)
        return found


def livery(shape: CarShape, paint: Rgb, plate: str) -> Livery:
    """Draw what is on a car's body."""
    half, width, height = shape.length_m / 2.0, shape.width_m / 2.0, shape.height_m
    side = Decal((-half - 0.1, 0.0), (half + 0.1, height + 0.15))
    front, rear = (Decal((-width - 0.2, 0.0), (width + 0.2, height + 0.15)) for _ in range(2))
    top = Decal((-half - 0.1, -width - 0.2), (half + 0.1, width + 0.2))
    _draw_side(side, shape)
    _draw_doors(side, shape)
    _draw_front(front, shape, plate)
    _draw_rear(rear, shape, plate)
    _draw_top(top, shape)
    return Livery(paint, side, front, rear, top, shape)


def in_arch(shape: CarShape, places: Singles) -> Flags:
    """Return which places (n, 3) of the body lie in a wheel's arch."""
    inside = np.zeros(len(places), bool)
    for axle in shape.axles:
        away = np.hypot(places[:, 0] - axle * shape.length_m / 2.0, places[:, 2] - shape.wheel_m)
        inside |= (away < shape.wheel_m + 0.07) & (places[:, 2] < 2.0 * shape.wheel_m + 0.08)
    return inside


def tail_heights(s: CarShape) -> tuple[float, float]:
    """Return the heights of the lower and the upper edge of the rear lamps."""
    low, high = {"high": (0.52, 0.74), "wide": (0.5, 0.6), "low": (0.46, 0.6)}[s.tail_lamps]
    return low * s.height_m, high * s.height_m


def _draw_side(d: Decal, s: CarShape) -> None:
    """Draw windows, sill, and the lamps that reach around the corners."""
    half, height = s.length_m / 2.0, s.height_m
    profile, x0, z0 = outline(s)
    x, z = d.grid()
    depth = cv2.remap(profile, (x - x0) / np.float32(OUTLINE_M), (z - z0) / np.float32(OUTLINE_M), cv2.INTER_LINEAR)
    belt = s.belt * height + 0.03 * (-x / half)
    d.fill((depth < -0.05) & (z > belt) & (x > -0.93 * half), BLACK, 0.02)
    glass = (depth < -0.075) & (z > belt + 0.025) & (x > -0.9 * half)
    for post in s.pillars:
        glass &= np.abs(x - post * half) > 0.035
    d.fill(glass, _PANE, GLASS_F0, 1.0)
    d.fill((z < 0.27) & (depth < 0.1), _DARK)
    lens = [(0.86, 0.485), (1.02, 0.42), (1.02, 0.52), (0.86, 0.545)]
    d.polygon([(half * a, height * b) for a, b in lens], _LENS, 0.1)
    low, high = tail_heights(s)
    d.polygon([(-half * 0.9, low + 0.03), (-half * 1.02, low), (-half * 1.02, high), (-half * 0.93, high)], _RED, 0.05)


def _draw_doors(d: Decal, s: CarShape) -> None:
    """Draw the gaps around doors and bumpers, handles, and a crease."""
    half, low, high = s.length_m / 2.0, 0.3, s.belt * s.height_m
    front, middle = s.axles[0] * half - s.wheel_m - 0.13, s.pillars[0] * half
    rear = s.pillars[1] * half if len(s.pillars) > 1 else None
    gaps: list[Points] = [
        [(front, low), (front + 0.03, 0.5 * (low + high)), (front - 0.05, high + 0.02)],
        [(middle, low), (middle, high)],
        [(front, low), (middle if rear is None else rear, low)],
    ]
    if rear is not None:
        arch = s.axles[1] * half + s.wheel_m
        gaps.append([(rear, high), (rear, 0.55), (arch + 0.14, low + 0.05), (arch + 0.12, low)])
    for end in (1, -1):
        gaps.append([(end * half * 0.83, 0.3), (end * half * 0.83, 0.46 * s.height_m), (end * half, 0.44 * s.height_m)])
    for gap in gaps:
        d.line(gap, _SEAM_M, BLACK)
    for at in (middle + 0.16, *(() if rear is None else (rear + 0.16,))):
        d.polygon(_box(at - 0.09, high - 0.1, at + 0.09, high - 0.072), BLACK, 0.1)
    d.line([(-0.9 * half, 0.55), (0.9 * half, 0.52)], 0.012, (0.0, 0.0, 0.0), 0.35)


def _draw_front(d: Decal, s: CarShape, plate: str) -> None:
    w, h = s.width_m / 2.0, s.height_m
    _, z = d.grid()
    _windscreen(d, s, 0.675 * h + 0.015, 0.935 * h)
    d.polygon([(-0.42 * w, 0.5 * h), (0.42 * w, 0.5 * h), (0.36 * w, 0.4 * h), (-0.36 * w, 0.4 * h)], BLACK, 0.02)
    for k in range(4):
        d.line([(-0.37 * w, (0.41 + 0.026 * k) * h), (0.37 * w, (0.41 + 0.026 * k) * h)], 0.008, (0.25, 0.25, 0.26))
    for side in (1.0, -1.0):
        lens = [(0.5, 0.41), (0.99, 0.435), (0.99, 0.53), (0.55, 0.495)]
        d.polygon([(side * a * w, b * h) for a, b in lens], _LENS, 0.12, 1.0)
        d.disc((side * 0.72 * w, 0.465 * h), 0.045, (0.75, 0.76, 0.76), 0.3)
        scoop = [(0.6, 0.2), (0.88, 0.22), (0.86, 0.28), (0.62, 0.27)]
        d.polygon([(side * a * w, b * h) for a, b in scoop], BLACK, 0.03)
    d.polygon([(-0.5 * w, 0.19 * h), (0.5 * w, 0.19 * h), (0.55 * w, 0.28 * h), (-0.55 * w, 0.28 * h)], BLACK)
    d.fill(z < 0.25, _DARK)
    _plate(d, 0.335 * h, plate, False)


def _draw_rear(d: Decal, s: CarShape, plate: str) -> None:
    w, h = s.width_m / 2.0, s.height_m
    y, z = d.grid()
    saloon = s.tail_lamps == "wide" and s.length_m > 4.4
    _windscreen(d, s, (0.735 if saloon else 0.67) * h, 0.915 * h)
    low, high = tail_heights(s)
    inner = {"high": 0.8, "wide": 0.5, "low": 0.68}[s.tail_lamps] * w
    for side in (1.0, -1.0):
        lens = [(inner, low), (1.02 * w, low), (1.02 * w, high), (inner + 0.05 * w, high)]
        d.polygon([(side * a, b) for a, b in lens], _RED, 0.06, 1.0)
        middle = 0.5 * (low + high)
        strip = _box(inner + 0.05 * w, middle - 0.02, 0.93 * w, middle + 0.03)
        d.polygon([(side * a, b) for a, b in strip], (0.55, 0.16, 0.1), 0.1, 1.0)
        reflector = _box(0.55 * w, 0.25 * h, 0.8 * w, 0.27 * h)
        d.polygon([(side * a, b) for a, b in reflector], (0.3, 0.01, 0.01), 0.0, 1.0)
    d.line([(-0.72 * w, high), (-0.72 * w, 0.375 * h), (0.72 * w, 0.375 * h), (0.72 * w, high)], _SEAM_M, BLACK)
    d.line([(-w, 0.36 * h), (w, 0.36 * h)], _SEAM_M, BLACK)
    d.fill(z < 0.2 * h, _DARK)
    # The recess of the plate lies in the shade of its edge.
    recess = [(-0.34, 0.415 * h), (0.34, 0.415 * h), (0.31, 0.51 * h), (-0.31, 0.51 * h)]
    d.polygon(recess, (0.0, 0.0, 0.0), COAT_F0)
    within = (np.abs(y) < 0.34) & (z > 0.415 * h) & (z < 0.51 * h) & (d.pixels[..., 3] > 0.0)
    d.pixels[within, 3] = 0.25
    _plate(d, 0.455 * h, plate, True)
    d.disc((0.0, 0.57 * h), 0.04, (0.3, 0.3, 0.31), METAL_F0)


def _windscreen(d: Decal, s: CarShape, low: float, high: float) -> None:
    """Draw a windscreen: as wide as the roof allows, with a dark frame around, and a wiper."""
    y, z = d.grid()
    wide = half_width(s, np.zeros_like(z), z)
    d.fill((z > low - 0.03) & (z < high + 0.02) & (np.abs(y) < wide - 0.045), BLACK, 0.03)
    d.fill((z > low) & (z < high) & (np.abs(y) < wide - 0.075), _PANE, GLASS_F0, 1.0)
    d.line([(-0.25 * s.width_m, low + 0.02), (0.1, low + 0.05)], 0.012, BLACK)


def _plate(d: Decal, middle_m: float, plate: str, mirrored: bool) -> None:
    """Draw a number plate of 0.52 m x 0.11 m, as in most states of the European Union."""
    d.polygon(_box(-0.27, middle_m - 0.06, 0.27, middle_m + 0.06), BLACK)
    d.polygon(_box(-0.26, middle_m - 0.055, 0.26, middle_m + 0.055), (0.7, 0.7, 0.68), 0.0, 1.0)
    edge = 0.26 if mirrored else -0.26
    d.polygon(_box(edge, middle_m - 0.055, edge * 0.83, middle_m + 0.055), (0.01, 0.03, 0.25), 0.0, 1.0)
    d.text(plate, (-0.02 if mirrored else 0.02, middle_m), (0.41, 0.078), (0.02, 0.02, 0.02), mirrored)


def _draw_top(d: Decal, s: CarShape) -> None:
    half, w = s.length_m / 2.0, s.width_m / 2.0
    bonnet = [(0.4, -0.8), (0.9, -0.62), (0.93, 0.0), (0.9, 0.62), (0.4, 0.8)]
    d.line([(a * half, b * w) for a, b in bonnet], _SEAM_M, BLACK)
    x, y = d.grid()
    cowl = next(a for a, b in s.roof if b > 0.675) * half
    d.fill((x < cowl + 0.1) & (x > cowl - 0.05) & (np.abs(y) < 0.75 * w), _DARK)
    for side in (1.0, -1.0):
        d.line([(-0.1 * half, side * 0.62 * w), (-0.8 * half, side * 0.62 * w)], 0.012, BLACK)


def _box(x0: float, z0: float, x1: float, z1: float) -> Points:
    return [(x0, z0), (x1, z0), (x1, z1), (x0, z1)]
