# SPDX-License-Identifier: Apache-2.0
"""Triangle meshes of large and special vehicles.

Directive 96/53/EC allows rigid lorries and buses of 2.55 m width, 4 m height and 12 m length everywhere in the Union.
Truck and bus are within; the other sizes are assumed, typical of their class.
"""

from __future__ import annotations

from mt_nodes.world.scene.meshes import GLASS, TYRE, Mesh, box, merged, rod, van

RETRO_REFLECTIVE = 1.0
DARK = 0.1
#: What lies on a side stands before it by so much.
_PROUD_M = 0.005


def truck(reflectivity: float, length_m: float = 8.5, width_m: float = 2.5, height_m: float = 3.6) -> Mesh:
    """Return a rigid lorry: cab with windscreen, box body, chassis, three axles, plates at the rear."""
    cab, front, side_m = 2.0, length_m / 2, width_m - 2 * _PROUD_M
    body_m = length_m - cab - 0.3
    middle = -front + body_m / 2
    return merged(
        [
            box((cab, side_m, 2.2), (front - cab / 2, 0.0, 1.7), reflectivity),
            box((0.04, 0.9 * width_m, 0.8), (front + 0.02, 0.0, 2.2), GLASS),
            box((1.0, width_m, 0.75), (front - 0.7, 0.0, 2.25), GLASS),
            box((body_m, side_m, height_m - 1.1), (middle, 0.0, (height_m + 1.1) / 2), 0.5),
            box((length_m - 0.4, 0.9, 0.5), (0.0, 0.0, 0.85), DARK),
            box((0.04, 0.9 * width_m, 0.15), (-front - 0.02, 0.0, 1.2), RETRO_REFLECTIVE),
            *wheels((front - 1.2, -0.25 * length_m, -0.25 * length_m - 1.35), width_m, 0.5),
        ]
    )


def bus(reflectivity: float, length_m: float = 12.0, width_m: float = 2.55, height_m: float = 3.1) -> Mesh:
    """Return a city bus: low floor, a band of windows around, two axles."""
    side_m = width_m - 2 * _PROUD_M
    return merged(
        [
            box((length_m, side_m, 0.9), (0.0, 0.0, 0.75), reflectivity),
            box((0.99 * length_m, 0.985 * width_m, 1.4), (0.0, 0.0, 1.9), GLASS),
            box((length_m, side_m, height_m - 2.6), (0.0, 0.0, (height_m + 2.6) / 2), reflectivity),
            *wheels((0.27 * length_m, -0.24 * length_m), width_m, 0.48),
        ]
    )


def school_bus(reflectivity: float) -> Mesh:
    """Return a North American school bus with a bonnet: 11 m long, stop arm folded out to the left."""
    arm = box((0.03, 0.45, 0.45), (2.0, 1.47, 1.6), RETRO_REFLECTIVE)
    bonnet = box((1.6, 2.0, 1.0), (4.7, 0.0, 1.2), reflectivity)
    return merged([bus(reflectivity, 9.4, 2.44, 3.1).placed(-0.8, 0.0), bonnet, arm, *wheels((4.5,), 2.2, 0.48)])


def emergency_vehicle(reflectivity: float) -> Mesh:
    """Return an ambulance: a van of 6 m with a light bar and retro-reflective stripes."""
    stripes = [box((5.0, 0.02, 0.25), (-0.4, y, 1.2), RETRO_REFLECTIVE) for y in (1.03, -1.03)]
    bar = box((0.3, 1.4, 0.18), (1.2, 0.0, 2.69), 0.3)
    return merged([van(reflectivity, 6.0, 2.04, 2.6), *stripes, bar])


def construction_vehicle(reflectivity: float) -> Mesh:
    """Return a wheel loader of 7 m, bucket near the ground."""
    return merged(
        [
            box((2.6, 1.8, 1.0), (-1.9, 0.0, 1.4), reflectivity),
            box((1.4, 1.5, 1.5), (-0.3, 0.0, 2.45), GLASS),
            box((1.5, 1.6, 0.15), (-0.3, 0.0, 3.22), reflectivity),
            box((1.6, 1.0, 0.8), (0.9, 0.0, 1.0), reflectivity),
            *(rod((1.2, y, 1.5), (2.8, y, 0.6), 0.14, reflectivity) for y in (0.45, -0.45)),
            box((1.0, 2.5, 0.9), (3.1, 0.0, 0.55), 0.3),
            *wheels((1.2, -1.8), 2.4, 0.75),
        ]
    )


def wheels(axles_x_m: tuple[float, ...], width_m: float, radius_m: float) -> list[Mesh]:
    """Return two wheels an axle, 0.25 m wide, flush with the whole width."""
    outer_m = width_m / 2
    return [
        rod((x, side * (outer_m - 0.25), radius_m), (x, side * outer_m, radius_m), radius_m, TYRE)
        for x in axles_x_m
        for side in (1.0, -1.0)
    ]
