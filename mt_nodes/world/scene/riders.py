# SPDX-License-Identifier: Apache-2.0
"""Triangle meshes of people on small vehicles and with a flag, and of a tow truck.

Sizes are assumed, of the middle of what is sold: electric scooter 1.1 m long and 1.13 m high, skateboard 0.8 m, adult
tricycle 1.7 m with a track of 0.7 m, four-wheeled pedal cycle 1.9 m; tow truck with a boom 7 m.
"""

from __future__ import annotations

from mt_nodes.world.scene.meshes import GLASS, SKIN, TYRE, Mesh, Vector, box, ellipsoid, merged, pedestrian, rod
from mt_nodes.world.scene.vehicles import wheels

_METAL, _DARK = 0.4, 0.1


def scooter_rider(reflectivity: float) -> Mesh:
    """Return an adult who stands on an electric scooter."""
    rolls = [rod((x, -0.02, 0.1), (x, 0.02, 0.1), 0.1, TYRE) for x in (-0.42, 0.48)]
    frame = [
        box((0.8, 0.16, 0.05), (0.0, 0.0, 0.14), _DARK),
        rod((0.46, 0.0, 0.12), (0.4, 0.0, 1.13), 0.02, _METAL),
        rod((0.4, -0.24, 1.13), (0.4, 0.24, 1.13), 0.015, _METAL),
    ]
    feet: tuple[tuple[float, float], ...] = ((0.12, 0.05), (-0.18, -0.05))
    legs = [rod((x, y, 0.17), (0.0, 2 * y, 1.0), 0.075, reflectivity) for x, y in feet]
    arms = [rod((0.06, 0.2 * s, 1.58), (0.38, 0.2 * s, 1.14), 0.045, reflectivity) for s in (1.0, -1.0)]
    return merged([*rolls, *frame, *legs, *arms, _trunk(1.0, 1.66, reflectivity), _head(0.08, 1.82)])


def skateboarder(reflectivity: float) -> Mesh:
    """Return a young adult side-on on a skateboard, knees bent, arms out."""
    rolls = [rod((x, y - 0.02, 0.03), (x, y + 0.02, 0.03), 0.03, TYRE) for x in (-0.25, 0.25) for y in (-0.08, 0.08)]
    board = box((0.8, 0.2, 0.02), (0.0, 0.0, 0.08), _DARK)
    legs = []
    for side in (1.0, -1.0):
        knee: Vector = (0.3 * side, 0.1, 0.46)
        legs.append(rod((0.24 * side, 0.0, 0.09), knee, 0.07, reflectivity))
        legs.append(rod(knee, (0.07 * side, -0.06, 0.8), 0.08, reflectivity))
    arms = [rod((0.12 * s, 0.02, 1.3), (0.5 * s, 0.06, 1.2), 0.045, reflectivity) for s in (1.0, -1.0)]
    return merged([*rolls, board, *legs, *arms, _trunk(0.8, 1.4, reflectivity), _head(0.08, 1.54)])


def tricycle_rider(reflectivity: float) -> Mesh:
    """Return an adult on a tricycle with two wheels behind."""
    return _cycle(reflectivity, 0.7, ((0.62, (0.0,)), (-0.6, (0.33, -0.33))))


def quadricycle_rider(reflectivity: float) -> Mesh:
    """Return an adult on a pedal cycle of four wheels."""
    return _cycle(reflectivity, 0.76, ((0.68, (0.36, -0.36)), (-0.68, (0.36, -0.36))))


def flag_bearer(reflectivity: float) -> Mesh:
    """Return a standing adult who holds a flag out to the side."""
    arm = rod((0.0, 0.25, 1.4), (0.15, 0.62, 1.35), 0.045, reflectivity)
    staff = rod((0.15, 0.64, 1.25), (0.15, 0.64, 1.95), 0.012, _METAL)
    return merged([pedestrian(reflectivity), arm, staff, box((0.02, 0.4, 0.3), (0.15, 0.86, 1.79), 0.5)])


def tow_truck(reflectivity: float) -> Mesh:
    """Return a tow truck: cab, flat rear, a boom over its tail, a light bar."""
    return merged(
        [
            box((2.0, 2.3, 1.9), (2.5, 0.0, 1.5), reflectivity),
            box((0.04, 2.0, 0.7), (3.52, 0.0, 2.0), GLASS),
            box((4.9, 2.3, 0.45), (-1.0, 0.0, 0.95), reflectivity),
            rod((0.8, 0.0, 1.1), (-3.2, 0.0, 2.6), 0.12, _DARK),
            rod((-0.6, 0.0, 1.1), (-1.6, 0.0, 2.0), 0.08, _DARK),
            box((0.04, 0.9, 0.5), (-3.42, 0.0, 0.7), _DARK),
            box((0.3, 1.5, 0.16), (2.6, 0.0, 2.53), 0.3),
            *wheels((2.4, -1.6), 2.3, 0.45),
        ]
    )


def _cycle(reflectivity: float, width_m: float, axles: tuple[tuple[float, tuple[float, ...]], ...]) -> Mesh:
    rolls = [rod((x, y - 0.02, 0.25), (x, y + 0.02, 0.25), 0.25, TYRE) for x, sides in axles for y in sides]
    front, rear = axles[0][0], axles[1][0]
    beams = [
        rod((front, 0.0, 0.28), (rear, 0.0, 0.28), 0.03, 0.3),
        rod((front, 0.0, 0.28), (0.35, 0.0, 0.95), 0.025, 0.3),
    ]
    beams += [
        rod((x, -width_m / 2 + 0.02, 0.25), (x, width_m / 2 - 0.02, 0.25), 0.02, 0.3)
        for x, sides in axles
        if len(sides) > 1
    ]
    seat = box((0.35, 0.4, 0.06), (-0.3, 0.0, 0.6), _DARK)
    legs, arms = [], []
    for side in (1.0, -1.0):
        legs.append(rod((-0.25, 0.12 * side, 0.68), (0.15, 0.14 * side, 0.66), 0.075, reflectivity))
        legs.append(rod((0.15, 0.14 * side, 0.66), (0.3, 0.12 * side, 0.28), 0.06, reflectivity))
        arms.append(rod((-0.2, 0.2 * side, 1.15), (0.33, 0.2 * side, 0.95), 0.045, reflectivity))
    trunk = rod((-0.28, 0.0, 0.62), (-0.22, 0.0, 1.24), 0.18, reflectivity)
    return merged([*rolls, *beams, seat, *legs, *arms, trunk, _head(-0.16, 1.38)])


def _trunk(from_m: float, to_m: float, reflectivity: float) -> Mesh:
    return rod((0.0, 0.0, from_m - 0.04), (0.04, 0.0, to_m), 0.18, reflectivity)


def _head(x_m: float, z_m: float) -> Mesh:
    return ellipsoid((0.1, 0.09, 0.12), (x_m, 0.0, z_m), SKIN)
