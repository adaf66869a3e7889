# SPDX-License-Identifier: Apache-2.0
"""Triangle meshes of people who direct traffic or work on the road.

All are adults of 1.75 m who look along x, so that an ego must come from ahead of them.
"""

from __future__ import annotations

from mt_nodes.world.scene.meshes import (
    DARK,
    FILM,
    PLASTIC,
    RETRO,
    SKIN,
    SLEEVE,
    STEEL,
    WOOD,
    Mesh,
    Vector,
    box,
    ellipsoid,
    merged,
    rod,
)


def traffic_officer(reflectivity: float) -> Mesh:
    """Return an officer with one arm up and the other out to the side: halt, to those before him."""
    arms = [*_arm(1.0, (0.06, 0.32, 1.72), (0.1, 0.27, 2.08)), *_arm(-1.0, (0.02, -0.52, 1.45), (0.04, -0.8, 1.47))]
    gloves = [
        ellipsoid((0.05, 0.07, 0.1), (0.1, 0.27, 2.14), PLASTIC),
        ellipsoid((0.06, 0.1, 0.05), (0.04, -0.86, 1.47), PLASTIC),
    ]
    cap = [ellipsoid((0.14, 0.13, 0.045), (0.01, 0.0, 1.735), WOOD), box((0.1, 0.16, 0.015), (0.13, 0.0, 1.71), DARK)]
    return merged([*_standing(reflectivity), *arms, *gloves, *cap])


def crossing_guard(reflectivity: float) -> Mesh:
    """Return a school crossing guard who holds a round stop paddle out to the side."""
    arms = [*_arm(1.0, (0.1, 0.45, 1.35), (0.12, 0.6, 1.4)), *_arm(-1.0, (0.03, -0.3, 1.15), (0.1, -0.28, 0.92))]
    staff = rod((0.12, 0.62, 1.2), (0.12, 0.62, 1.85), 0.015, STEEL)
    paddle = rod((0.1, 0.62, 1.83), (0.14, 0.62, 1.83), 0.23, FILM)
    cap = ellipsoid((0.13, 0.12, 0.05), (0.02, 0.0, 1.73), WOOD)
    return merged([*_standing(reflectivity), *arms, staff, paddle, cap])


def construction_worker(reflectivity: float) -> Mesh:
    """Return a worker in a helmet, bent over a shovel."""
    arms = [*_arm(1.0, (0.25, 0.3, 1.2), (0.42, 0.16, 1.05)), *_arm(-1.0, (0.22, -0.3, 1.15), (0.45, -0.1, 0.85))]
    shovel = [
        rod((0.35, 0.22, 1.2), (0.75, -0.45, 0.15), 0.018, STEEL),
        box((0.3, 0.24, 0.03), (0.84, -0.5, 0.06), STEEL),
    ]
    helmet = ellipsoid((0.15, 0.13, 0.1), (0.02, 0.0, 1.7), WOOD)
    return merged([*_standing(reflectivity), *arms, *shovel, helmet])


def _standing(reflectivity: float) -> list[Mesh]:
    """Return legs, trunk with two retro-reflective bands, and head of an adult."""
    legs = [rod((x, y, 0.0), (0.0, y, 0.86), 0.078, reflectivity) for x, y in ((0.04, 0.1), (-0.04, -0.1))]
    trunk = rod((0.0, 0.0, 0.82), (0.02, 0.0, 1.46), 0.19, reflectivity)
    bands = [rod((0.0, 0.0, z), (0.0, 0.0, z + 0.055), 0.197, RETRO) for z in (1.0, 1.2)]
    return [*legs, trunk, *bands, ellipsoid((0.1, 0.09, 0.13), (0.02, 0.0, 1.62), SKIN)]


def _arm(side: float, elbow: Vector, hand: Vector) -> list[Mesh]:
    return [rod((0.02, 0.2 * side, 1.42), elbow, 0.055, SLEEVE), rod(elbow, hand, 0.045, SLEEVE)]
