# SPDX-License-Identifier: Apache-2.0
"""Triangle meshes of static objects on or beside a road.

Cone 0.75 m (a height class of EN 13422); concrete barrier 0.81 m high and 0.61 m wide at its foot (the Jersey profile);
round sign of 0.6 m with its lower edge 2.0 m above ground (German VwV-StVO on signs); signal heads of 0.2 m lenses.
"""

from __future__ import annotations

from mt_nodes.world.scene.meshes import Mesh, box, cone, merged, prism, rod

RETRO_REFLECTIVE = 1.0
STEEL, CONCRETE = 0.4, 0.35


def traffic_cone(reflectivity: float) -> Mesh:
    """Return a traffic cone on its foot."""
    return merged([box((0.4, 0.4, 0.04), (0.0, 0.0, 0.02), 0.1), cone((0.0, 0.0, 0.04), 0.15, 0.71, reflectivity)])


def barrier(reflectivity: float = CONCRETE) -> Mesh:
    """Return a concrete barrier element, 3 m long along y (it closes the lane ahead of it)."""
    half = [(0.305, 0.0), (0.305, 0.08), (0.17, 0.33), (0.08, 0.81)]
    return prism([*((-x, z) for x, z in half[::-1]), *half][::-1], 3.0, reflectivity)


def carton(reflectivity: float) -> Mesh:
    """Return a box of 0.6 m that fell off a lorry."""
    return box((0.6, 0.6, 0.6), (0.0, 0.0, 0.3), reflectivity)


def traffic_sign(reflectivity: float = RETRO_REFLECTIVE) -> Mesh:
    """Return a round sign on a post; it faces backwards, towards approaching traffic."""
    post = rod((0.0, 0.0, 0.0), (0.0, 0.0, 2.55), 0.038, STEEL)
    return merged([post, rod((-0.06, 0.0, 2.3), (-0.04, 0.0, 2.3), 0.3, reflectivity)])


def traffic_light(reflectivity: float) -> Mesh:
    """Return a signal of three lenses on a post of 3.3 m, facing backwards, towards approaching traffic."""
    post = rod((0.0, 0.0, 0.0), (0.0, 0.0, 3.3), 0.06, STEEL)
    head = box((0.2, 0.3, 0.9), (-0.16, 0.0, 2.7), reflectivity)
    return merged([post, head, box((0.02, 0.5, 1.1), (-0.05, 0.0, 2.7), 0.05)])
