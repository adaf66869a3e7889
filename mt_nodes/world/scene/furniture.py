# SPDX-License-Identifier: Apache-2.0
"""Triangle meshes of static objects on or beside a road.

Cone 0.75 m (a height class of EN 13422); concrete barrier 0.81 m high and 0.61 m wide at its foot (the Jersey profile);
round sign of 0.6 m with its lower edge 2.0 m above ground (German VwV-StVO on signs); signal heads of 0.2 m lenses.
Delineator 1 m high and 0.12 m wide with a black band of 0.25 m (sign 620 of the StVO). Speed bumps are 3 to 4 inches
high and 1 to 3 feet long (traffic engineers of Fehr & Peers and of Eugene, Oregon): here 0.08 m and 0.9 m. Guardrail
(rail of 0.31 m, its upper edge at 0.75 m, posts 2 m apart), traffic island and sign arm are assumed, of usual sizes.
Assumed is the arm of a level crossing's gate, too: 5 m long, 0.12 m high and 1 m above the road.
"""

from __future__ import annotations

from mt_nodes.world.scene.meshes import DARK, FILM, RETRO, STEEL, Mesh, box, cone, merged, prism, rod

RETRO_REFLECTIVE = 1.0
CONCRETE = 0.35


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


def delineator(reflectivity: float) -> Mesh:
    """Return a delineator post; its reflector faces backwards, towards approaching traffic."""
    post = prism([(-0.06, 0.0), (0.06, 0.0), (0.06, 0.93), (-0.06, 1.0)], 0.12, reflectivity)
    return merged([post, box((0.012, 0.04, 0.16), (-0.064, 0.0, 0.83), RETRO)])


def guardrail(reflectivity: float) -> Mesh:
    """Return 8 m of a guardrail along x on its posts, a reflector on each of them."""
    waves = [(0.0, 0.44), (0.08, 0.5), (0.02, 0.595), (0.08, 0.69), (0.0, 0.75), (-0.02, 0.595)]
    along = prism(waves, 8.0, reflectivity)
    # A prism is extruded along y: rotated so that it runs along x.
    turned = Mesh(along.vertices_m[:, [1, 0, 2]], along.triangles[:, ::-1], along.reflectivity)
    posts = [box((0.1, 0.12, 0.7), (x, -0.09, 0.35), DARK) for x in (-3.0, -1.0, 1.0, 3.0)]
    return merged([turned, *posts, *(box((0.01, 0.07, 0.1), (x, 0.0, 0.83), RETRO) for x in (-3.0, -1.0, 1.0, 3.0))])


def speed_bump(reflectivity: float) -> Mesh:
    """Return a rounded ridge across a lane, 3.4 m along y."""
    return prism(
        [(-0.45, 0.0), (0.45, 0.0), (0.33, 0.045), (0.15, 0.08), (-0.15, 0.08), (-0.33, 0.045)], 3.4, reflectivity
    )


def traffic_island(reflectivity: float) -> Mesh:
    """Return a raised island 4 m along x, with a post whose plate shows on which side to pass it."""
    middle = box((3.2, 1.5, 0.15), (0.0, 0.0, 0.075), reflectivity)
    ends = [rod((x, 0.0, 0.0), (x, 0.0, 0.15), 0.75, reflectivity) for x in (1.6, -1.6)]
    post = rod((-1.6, 0.0, 0.15), (-1.6, 0.0, 0.7), 0.05, STEEL)
    return merged([middle, *ends, post, rod((-1.68, 0.0, 0.95), (-1.66, 0.0, 0.95), 0.3, FILM)])


def gantry_sign(reflectivity: float) -> Mesh:
    """Return a direction sign over the lane on the arm of a mast that stands to its right."""
    mast = rod((0.0, -3.0, 0.0), (0.0, -3.0, 6.4), 0.14, reflectivity)
    arm = rod((0.0, -3.0, 5.9), (0.0, 2.0, 6.05), 0.09, reflectivity)
    return merged([mast, arm, box((0.06, 3.0, 1.6), (-0.16, 0.6, 5.6), FILM)])


def crossing_gate(reflectivity: float) -> Mesh:
    """Return a closed half barrier: its machine to the right, its arm across the lane, to the left along y."""
    machine = box((0.4, 0.45, 1.15), (0.0, -2.5, 0.575), STEEL)
    weight = box((0.16, 0.35, 0.35), (0.0, -2.95, 1.05), DARK)
    arm = box((0.07, 5.1, 0.12), (-0.24, -0.15, 1.05), reflectivity)
    return merged([machine, weight, arm, rod((0.1, -2.5, 1.05), (-0.28, -2.5, 1.05), 0.09, DARK)])
