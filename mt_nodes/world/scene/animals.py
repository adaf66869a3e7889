# SPDX-License-Identifier: Apache-2.0
"""Triangle meshes of animals on roads.

Shoulder heights: dog 0.57 m (Labrador retriever, FCI standard 122: 56 to 57 cm). Cat 0.25 m, roe deer 0.75 m, wild boar
0.9 m and Holstein cow 1.45 m are assumed, for large adults: encyclopaedias and breeders give domestic cats 0.23 to 0.25
m, roe deer 0.63 to 0.85 m and Holsteins about 1.47 m. Proportions are by eye.
"""

from __future__ import annotations

from mt_nodes.world.scene.meshes import Mesh, ellipsoid, merged, rod


def quadruped(
    reflectivity: float, shoulder_m: float, trunk_m: float, girth_m: float, head_rise_m: float, leg_radius_m: float
) -> Mesh:
    """Return a standing animal: trunk ``trunk_m`` long and ``girth_m`` high, four legs, neck and head.

    The head's centre stands ``head_rise_m`` above the shoulder (below it when negative), so that a deer looks up
    and a boar down.
    """
    middle, reach = shoulder_m - girth_m / 2, 0.36 * trunk_m
    trunk = ellipsoid((trunk_m / 2, 0.36 * girth_m, girth_m / 2), (0.0, 0.0, middle), reflectivity)
    legs = [
        rod((x, y, 0.0), (x, y, middle), leg_radius_m, reflectivity)
        for x in (reach, -reach)
        for y in (0.2 * girth_m, -0.2 * girth_m)
    ]
    skull = 0.32 * girth_m
    head = (trunk_m / 2 + 1.1 * skull, 0.0, shoulder_m + head_rise_m)
    neck = rod((0.38 * trunk_m, 0.0, shoulder_m - 0.3 * girth_m), head, 0.6 * skull, reflectivity)
    return merged([trunk, *legs, neck, ellipsoid((1.3 * skull, 0.6 * skull, 0.7 * skull), head, reflectivity)])


def dog(reflectivity: float) -> Mesh:
    """Return a Labrador-sized dog."""
    return quadruped(reflectivity, 0.57, 0.65, 0.28, 0.12, 0.03)


def cat(reflectivity: float) -> Mesh:
    """Return a domestic cat, without its tail."""
    return quadruped(reflectivity, 0.25, 0.32, 0.14, 0.04, 0.015)


def deer(reflectivity: float) -> Mesh:
    """Return a roe deer."""
    return quadruped(reflectivity, 0.75, 0.95, 0.36, 0.35, 0.03)


def boar(reflectivity: float) -> Mesh:
    """Return a wild boar, head low."""
    return quadruped(reflectivity, 0.9, 1.25, 0.6, -0.25, 0.05)


def cow(reflectivity: float) -> Mesh:
    """Return a Holstein cow."""
    return quadruped(reflectivity, 1.45, 1.7, 0.8, 0.0, 0.07)
