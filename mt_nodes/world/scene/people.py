# SPDX-License-Identifier: Apache-2.0
"""Triangle meshes of people: on foot, on wheels, with a stick.

Statures: adult 1.75 m (median of men, DIN 33402-2:2005). Assumed: child of about seven 1.21 m, elderly person bent to
1.6 m. A wheelchair takes up to 1.20 m by 0.70 m, as designers cite ISO 7193.
"""

from __future__ import annotations

from mt_nodes.world.scene.meshes import SKIN, TYRE, Mesh, Vector, box, ellipsoid, merged, pedestrian, rod

METAL = 0.4


def child(reflectivity: float) -> Mesh:
    """Return a child of seven in mid-stride."""
    return pedestrian(reflectivity, 1.21, 1.0)


def elderly(reflectivity: float) -> Mesh:
    """Return an elderly person, bent a little, with a walking stick in the right hand."""
    stick = rod((0.4, -0.3, 0.0), (0.3, -0.28, 0.82), 0.015, METAL)
    arm = rod((0.3, -0.28, 0.8), (0.1, -0.22, 1.2), 0.045, reflectivity)
    left = rod((0.08, 0.24, 0.7), (0.08, 0.22, 1.2), 0.045, reflectivity)
    legs = [rod((x, y, 0.0), (0.0, y, 0.76), 0.075, reflectivity) for x, y in ((0.08, 0.09), (-0.08, -0.09))]
    trunk = rod((0.0, 0.0, 0.74), (0.12, 0.0, 1.32), 0.19, reflectivity)
    return merged([*legs, trunk, left, arm, stick, _head(0.2, 1.46)])


def roller_skater(reflectivity: float) -> Mesh:
    """Return an inline skater, legs apart, arms swinging: an adult 0.1 m above the road."""
    legs, skates = [], []
    for side, reach in ((1.0, 0.25), (-1.0, -0.3)):
        legs.append(rod((reach, side * 0.2, 0.1), (0.0, side * 0.1, 0.9), 0.075, reflectivity))
        skates.append(box((0.32, 0.06, 0.12), (reach + 0.04, side * 0.2, 0.06), TYRE))
    arms = [rod((-0.3 * s, 0.42 * s, 1.1), (0.1, 0.22 * s, 1.45), 0.045, reflectivity) for s in (1.0, -1.0)]
    trunk = rod((0.0, 0.0, 0.88), (0.14, 0.0, 1.52), 0.19, reflectivity)
    return merged([*legs, *skates, *arms, trunk, _head(0.2, 1.68)])


def wheelchair_user(reflectivity: float) -> Mesh:
    """Return a seated adult in a hand-driven wheelchair."""
    wheels = [rod((-0.15, y - 0.02, 0.31), (-0.15, y + 0.02, 0.31), 0.31, TYRE) for y in (0.3, -0.3)]
    castors = [rod((0.35, y - 0.015, 0.09), (0.35, y + 0.015, 0.09), 0.09, TYRE) for y in (0.22, -0.22)]
    seat = [box((0.5, 0.45, 0.05), (0.0, 0.0, 0.5), METAL), box((0.05, 0.45, 0.5), (-0.25, 0.0, 0.72), METAL)]
    thighs = [rod((-0.15, y, 0.6), (0.35, y, 0.6), 0.075, reflectivity) for y in (0.1, -0.1)]
    shins = [rod((0.35, y, 0.6), (0.48, y, 0.1), 0.06, reflectivity) for y in (0.1, -0.1)]
    arms = [rod((-0.1, y, 1.05), (0.05, y * 1.2, 0.65), 0.045, reflectivity) for y in (0.24, -0.24)]
    trunk = rod((-0.12, 0.0, 0.55), (-0.12, 0.0, 1.12), 0.19, reflectivity)
    return merged([*wheels, *castors, *seat, *thighs, *shins, *arms, trunk, _head(-0.1, 1.27)])


def motor_cyclist(reflectivity: float) -> Mesh:
    """Return a motor cycle of 2.1 m with its rider."""
    wheels = [rod((x, -0.07, 0.31), (x, 0.07, 0.31), 0.31, TYRE) for x in (-0.7, 0.72)]
    machine = [box((0.7, 0.36, 0.42), (0.0, 0.0, 0.48), 0.25), box((0.95, 0.28, 0.2), (-0.3, 0.0, 0.75), reflectivity)]
    fork = [
        rod((0.72, 0.0, 0.31), (0.45, 0.0, 0.98), 0.06, METAL),
        rod((0.42, -0.38, 1.0), (0.42, 0.38, 1.0), 0.03, METAL),
    ]
    legs, arms = [], []
    for side in (1.0, -1.0):
        legs.append(rod((-0.3, 0.14 * side, 0.86), (0.1, 0.24 * side, 0.75), 0.09, reflectivity))
        legs.append(rod((0.1, 0.24 * side, 0.75), (-0.1, 0.24 * side, 0.35), 0.08, reflectivity))
        arms.append(rod((-0.02, 0.22 * side, 1.3), (0.4, 0.34 * side, 1.02), 0.06, reflectivity))
    return merged(
        [
            *wheels,
            *machine,
            *fork,
            *legs,
            *arms,
            rod((-0.3, 0.0, 0.84), (0.0, 0.0, 1.38), 0.2, reflectivity),
            _head(0.1, 1.52),
        ]
    )


def _head(x_m: float, z_m: float) -> Mesh:
    center: Vector = (x_m, 0.0, z_m)
    return ellipsoid((0.1, 0.09, 0.12), center, SKIN)
