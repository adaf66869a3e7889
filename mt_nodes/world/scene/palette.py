# SPDX-License-Identifier: Apache-2.0
"""Shared colours of the catalogue, and paints of people and cars."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mt_nodes.base.arrays import Singles
from mt_nodes.world.scene.meshes import SKIN, TYRE

Rgb = tuple[float, float, float]
#: Changes colours (n, 3) in place by x, y, z and the reflectivity of the mesh (n,) there.
Details = Callable[[Singles, Singles, Singles, Singles, Singles], None]

RUBBER, PANE, FACE, METAL = (0.02, 0.02, 0.02), (0.06, 0.07, 0.08), (0.5, 0.3, 0.21), (0.32, 0.33, 0.34)
HAIR, SHOES, BLACK, WHITE = (0.035, 0.022, 0.015), (0.03, 0.025, 0.02), (0.012, 0.012, 0.014), (0.75, 0.75, 0.73)
RED, YELLOW, ORANGE, BLUE = (0.5, 0.03, 0.025), (0.72, 0.45, 0.02), (0.75, 0.2, 0.02), (0.03, 0.09, 0.4)
JEANS: Rgb = (0.03, 0.045, 0.1)


def person(jacket: Rgb, trousers: Rgb, height_m: float) -> Details:
    """Return the paint of a standing person: jacket, trousers, shoes, hands and hair."""

    def paint(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
        skin = np.abs(material - SKIN) < 1e-4
        clothes = ~skin & (colours[:, 0] != RUBBER[0])
        colours[clothes] = jacket
        colours[clothes & (z < 0.49 * height_m)] = trousers
        colours[clothes & (z < 0.045 * height_m)] = SHOES
        colours[clothes & (z > 0.44 * height_m) & (z < 0.49 * height_m) & (np.abs(y) > 0.11 * height_m)] = FACE
        colours[skin & ((z > 0.95 * height_m) | (x < -0.03))] = HAIR

    return paint


def seated(jacket: Rgb, trousers: Rgb, waist_m: float, top_m: float) -> Details:
    """Return the paint of a rider: jacket above the waist, hair above ``top_m``, metal frame."""

    def paint(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
        skin = np.abs(material - SKIN) < 1e-4
        frame = (np.abs(material - 0.3) < 1e-4) | (np.abs(material - 0.4) < 1e-4)
        clothes = ~skin & ~frame & (np.abs(material - TYRE) > 1e-4)
        colours[clothes] = trousers
        colours[clothes & (z > waist_m)] = jacket
        colours[frame] = METAL
        colours[skin & (z > top_m)] = HAIR

    return paint


def car_body(length_m: float, lamps_z_m: tuple[float, float], half_m: float) -> Details:
    """Lamps, number plates, the dark gap under the sills."""

    def paint(colours: Singles, x: Singles, y: Singles, z: Singles, material: Singles) -> None:
        body, end = np.abs(material - TYRE) > 1e-4, length_m / 2 - 0.12
        lamp = (z > lamps_z_m[0]) & (z < lamps_z_m[1]) & (np.abs(y) > 0.55 * half_m)
        colours[lamp & (x < -end)] = (0.4, 0.01, 0.01)
        colours[lamp & (x > end)] = (0.8, 0.8, 0.78)
        plate = (np.abs(x) > end) & (np.abs(y) < 0.26) & (np.abs(z - lamps_z_m[0] + 0.12) < 0.06)
        colours[plate] = WHITE
        colours[body & (z < 0.26)] = BLACK

    return paint
