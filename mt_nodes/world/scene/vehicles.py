# SPDX-License-Identifier: Apache-2.0
"""Triangle meshes of large and special vehicles.

Directive 96/53/EC allows rigid lorries and buses of 2.55 m width, 4 m height and 12 m length everywhere in the Union.
Truck and bus are within; the other sizes are assumed, typical of their class: a tow truck
with its boom has 7 m. The tram has the size of the most widely built one, Tatra's T3: 14.0 m long, 2.5 m wide and
3.05 m high, bogies 6.4 m apart with axles of 1.9 m.
"""

from __future__ import annotations

import numpy as np

from mt_nodes.world.scene.meshes import DARK, GLASS, STEEL, TYRE, Mesh, box, merged, prism, rod, van

RETRO_REFLECTIVE = 1.0
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


def tow_truck(reflectivity: float) -> Mesh:
    """Return a tow truck: cab, flat rear, a boom over its tail, a light bar."""
    return merged(
        [
            box((2.0, 2.3, 1.9), (2.5, 0.0, 1.5), reflectivity),
            box((0.04, 2.0, 0.7), (3.52, 0.0, 2.0), GLASS),
            box((4.9, 2.3, 0.45), (-1.0, 0.0, 0.95), reflectivity),
            rod((0.8, 0.0, 1.1), (-3.2, 0.0, 2.6), 0.12, DARK),
            rod((-0.6, 0.0, 1.1), (-1.6, 0.0, 2.0), 0.08, DARK),
            box((0.04, 0.9, 0.5), (-3.42, 0.0, 0.7), DARK),
            box((0.3, 1.5, 0.16), (2.6, 0.0, 2.53), 0.3),
            *wheels((2.4, -1.6), 2.3, 0.45),
        ]
    )


_TRAM_LENGTH_M, _TRAM_WIDTH_M, _TRAM_PIVOT_M, _TRAM_AXLES_M = 14.0, 2.5, 6.4, 1.9


def tram(reflectivity: float) -> Mesh:
    """Return a tram with its pantograph up: rounded ends, a band of windows around, two bogies."""
    half = _TRAM_LENGTH_M / 2.0
    skirt = [
        (-half, 0.6),
        (-half + 0.25, 0.34),
        (half - 0.25, 0.34),
        (half, 0.6),
        (half - 0.05, 1.3),
        (-half + 0.05, 1.3),
    ]
    panes = [(-half + 0.05, 1.29), (half - 0.05, 1.29), (half - 0.5, 2.36), (-half + 0.3, 2.36)]
    crown = [(half - 0.62, 2.8), (half - 1.2, 3.05), (-half + 1.0, 3.05), (-half + 0.4, 2.8)]
    roof = [(-half + 0.3, 2.35), (half - 0.5, 2.35), *crown]
    wheels = [
        rod((x, side * 0.62, 0.34), (x, side * 0.78, 0.34), 0.34, TYRE)
        for x in (
            np.array([1.0, 1.0, -1.0, -1.0]) * _TRAM_PIVOT_M / 2.0 + np.array([0.5, -0.5, 0.5, -0.5]) * _TRAM_AXLES_M
        ).tolist()
        for side in (1.0, -1.0)
    ]
    return merged(
        [
            prism(skirt, _TRAM_WIDTH_M, reflectivity),
            prism(panes, 0.985 * _TRAM_WIDTH_M, GLASS),
            prism(roof, _TRAM_WIDTH_M, reflectivity),
            *(box((2.9, 1.7, 0.3), (x, 0.0, 0.42), DARK) for x in (_TRAM_PIVOT_M / 2.0, -_TRAM_PIVOT_M / 2.0)),
            *wheels,
            *_pantograph(),
        ]
    )


def _pantograph() -> list[Mesh]:
    """Return the bars that take current from a wire 4.7 m above the rails."""
    bars = [rod((1.4, y, 3.05), (0.5, y, 3.9), 0.03, STEEL) for y in (0.5, -0.5)]
    bars += [rod((0.5, y, 3.9), (1.3, y, 4.65), 0.03, STEEL) for y in (0.5, -0.5)]
    return [
        *bars,
        rod((1.3, -0.85, 4.66), (1.3, 0.85, 4.66), 0.04, STEEL),
        box((1.6, 1.0, 0.14), (1.3, 0.0, 3.12), DARK),
    ]
