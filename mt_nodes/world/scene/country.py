# SPDX-License-Identifier: Apache-2.0
"""Triangle meshes of horses with riders or carriages, farm tractors, trailers and loads.

Sizes are assumed, of the middle of their class: horse 1.6 m at the shoulder, carriage of two axles, tractor 3.9 m long
and 2.8 m high, box trailer 3.9 m with its drawbar, planks that reach 1.7 m beyond the tail of a flat lorry.
"""

from __future__ import annotations

from mt_nodes.world.scene.animals import quadruped
from mt_nodes.world.scene.meshes import (
    CLOTH,
    DARK,
    GLASS,
    RETRO,
    SKIN,
    TYRE,
    WOOD,
    Mesh,
    box,
    ellipsoid,
    merged,
    prism,
    rod,
)
from mt_nodes.world.scene.vehicles import wheels


def horse_rider(reflectivity: float) -> Mesh:
    """Return a person on a horse."""
    legs, arms = [], []
    for side in (1.0, -1.0):
        legs.append(rod((0.0, 0.2 * side, 1.6), (0.28, 0.36 * side, 1.32), 0.09, CLOTH))
        legs.append(rod((0.28, 0.36 * side, 1.32), (0.12, 0.34 * side, 0.85), 0.075, CLOTH))
        arms.append(rod((0.06, 0.2 * side, 2.15), (0.35, 0.1 * side, 1.85), 0.05, CLOTH))
    trunk = rod((0.0, 0.0, 1.58), (0.06, 0.0, 2.24), 0.18, CLOTH)
    return merged([_horse(reflectivity), *legs, *arms, trunk, ellipsoid((0.12, 0.1, 0.14), (0.1, 0.0, 2.38), SKIN)])


def horse_carriage(reflectivity: float) -> Mesh:
    """Return a carriage of four wheels with its driver, drawn by one horse."""
    body = [(-1.0, 0.55), (0.9, 0.55), (1.05, 1.0), (-1.0, 1.2)]
    rolls = [
        rod((x, y - 0.03, radius), (x, y + 0.03, radius), radius, DARK)
        for x, radius in ((-0.75, 0.55), (0.75, 0.42))
        for y in (0.72, -0.72)
    ]
    shafts = [rod((0.8, y, 0.75), (3.1, y, 0.95), 0.035, WOOD) for y in (0.38, -0.38)]
    trunk, head = (
        rod((0.45, 0.0, 1.1), (0.5, 0.0, 1.75), 0.2, CLOTH),
        ellipsoid((0.11, 0.1, 0.13), (0.52, 0.0, 1.9), SKIN),
    )
    knees = [rod((0.5, y, 1.15), (0.95, y, 1.05), 0.085, CLOTH) for y in (0.13, -0.13)]
    seat = box((0.5, 1.2, 0.1), (0.4, 0.0, 1.1), WOOD)
    reflectors = [box((0.02, 0.1, 0.1), (-1.02, y, 0.8), RETRO) for y in (0.5, -0.5)]
    horse = _horse(reflectivity).placed(3.0, 0.0)
    return merged([prism(body, 1.25, WOOD), *rolls, *shafts, seat, trunk, head, *knees, *reflectors, horse]).placed(
        -1.5, 0.0
    )


def tractor(reflectivity: float) -> Mesh:
    """Return a farm tractor: large wheels behind, bonnet, cab with a roof, exhaust."""
    bonnet = [(0.15, 0.7), (1.95, 0.75), (1.95, 1.35), (0.15, 1.6)]
    tyres = [rod((-0.95, s * 0.62, 0.85), (-0.95, s * 1.15, 0.85), 0.85, TYRE) for s in (1.0, -1.0)]
    tyres += [rod((1.3, s * 0.65, 0.6), (1.3, s * 1.05, 0.6), 0.6, TYRE) for s in (1.0, -1.0)]
    guards = [box((1.2, 0.5, 0.08), (-0.85, s * 0.88, 1.76), reflectivity) for s in (1.0, -1.0)]
    return merged(
        [
            prism(bonnet, 0.75, reflectivity),
            box((1.7, 0.9, 0.7), (-0.75, 0.0, 0.95), DARK),
            box((1.5, 1.3, 1.0), (-0.7, 0.0, 2.15), GLASS),
            box((1.65, 1.45, 0.12), (-0.7, 0.0, 2.72), reflectivity),
            box((1.45, 1.25, 0.5), (-0.7, 0.0, 1.45), reflectivity),
            rod((1.1, 0.3, 1.4), (1.1, 0.3, 2.4), 0.05, DARK),
            *tyres,
            *guards,
        ]
    )


def trailer(reflectivity: float) -> Mesh:
    """Return a box trailer of one axle, set down on its drawbar's wheel."""
    return merged(
        [
            box((2.8, 1.8, 1.75), (-0.65, 0.0, 1.43), reflectivity),
            box((2.8, 1.5, 0.15), (-0.65, 0.0, 0.5), DARK),
            rod((0.7, 0.35, 0.5), (1.75, 0.0, 0.5), 0.04, DARK),
            rod((0.7, -0.35, 0.5), (1.75, 0.0, 0.5), 0.04, DARK),
            rod((1.65, 0.1, 0.1), (1.65, 0.14, 0.1), 0.1, TYRE),
            rod((1.65, 0.12, 0.1), (1.65, 0.12, 0.6), 0.03, DARK),
            *wheels((-0.75,), 2.1, 0.32),
        ]
    )


def load_carrier(reflectivity: float) -> Mesh:
    """Return a flat lorry with long planks that reach beyond its tail, a red flag at their end."""
    planks = [box((6.2, 0.34, 0.16), (-1.35, y, z), WOOD) for y in (-0.6, -0.2, 0.2, 0.6) for z in (1.2, 1.38)]
    return merged(
        [
            box((1.5, 2.1, 1.7), (2.45, 0.0, 1.5), reflectivity),
            box((0.04, 1.8, 0.65), (3.21, 0.0, 1.95), GLASS),
            box((4.4, 2.1, 0.25), (-0.5, 0.0, 0.98), reflectivity),
            box((5.4, 0.8, 0.35), (0.2, 0.0, 0.7), DARK),
            *planks,
            rod((-4.4, 0.6, 1.2), (-4.4, 0.6, 0.85), 0.015, DARK),
            box((0.02, 0.45, 0.4), (-4.46, 0.6, 1.1), RETRO),
            *wheels((2.2, -1.6), 2.1, 0.42),
        ]
    )


def _horse(reflectivity: float) -> Mesh:
    return quadruped(reflectivity, 1.6, 1.75, 0.72, 0.35, 0.065)
