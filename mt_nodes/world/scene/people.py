# SPDX-License-Identifier: Apache-2.0
"""Triangle meshes of people: on foot, with a stick or a flag, on wheels and small vehicles, directing traffic.

Statures: adult 1.75 m (median of men, DIN 33402-2:2005). Assumed: child of about seven 1.21 m, elderly person bent to
1.6 m. A wheelchair takes up to 1.20 m by 0.70 m, as designers cite ISO 7193. Who directs traffic or works on the road
looks along x, so that an ego must come from ahead. Sizes of vehicles are assumed, of the middle of what is sold:
electric scooter 1.1 m long and 1.13 m high, skateboard 0.8 m, adult tricycle 1.7 m with a track of 0.7 m, four-wheeled
pedal cycle 1.9 m.
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
    TYRE,
    WOOD,
    Mesh,
    Vector,
    box,
    ellipsoid,
    merged,
    pedestrian,
    rod,
)

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


def scooter_rider(reflectivity: float) -> Mesh:
    """Return an adult who stands on an electric scooter."""
    rolls = [rod((x, -0.02, 0.1), (x, 0.02, 0.1), 0.1, TYRE) for x in (-0.42, 0.48)]
    frame = [
        box((0.8, 0.16, 0.05), (0.0, 0.0, 0.14), DARK),
        rod((0.46, 0.0, 0.12), (0.4, 0.0, 1.13), 0.02, METAL),
        rod((0.4, -0.24, 1.13), (0.4, 0.24, 1.13), 0.015, METAL),
    ]
    feet: tuple[tuple[float, float], ...] = ((0.12, 0.05), (-0.18, -0.05))
    legs = [rod((x, y, 0.17), (0.0, 2 * y, 1.0), 0.075, reflectivity) for x, y in feet]
    arms = [rod((0.06, 0.2 * s, 1.58), (0.38, 0.2 * s, 1.14), 0.045, reflectivity) for s in (1.0, -1.0)]
    return merged([*rolls, *frame, *legs, *arms, _trunk(1.0, 1.66, reflectivity), _head(0.08, 1.82)])


def skateboarder(reflectivity: float) -> Mesh:
    """Return a young adult side-on on a skateboard, knees bent, arms out."""
    rolls = [rod((x, y - 0.02, 0.03), (x, y + 0.02, 0.03), 0.03, TYRE) for x in (-0.25, 0.25) for y in (-0.08, 0.08)]
    board = box((0.8, 0.2, 0.02), (0.0, 0.0, 0.08), DARK)
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
    staff = rod((0.15, 0.64, 1.25), (0.15, 0.64, 1.95), 0.012, METAL)
    return merged([pedestrian(reflectivity), arm, staff, box((0.02, 0.4, 0.3), (0.15, 0.86, 1.79), 0.5)])


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
    seat = box((0.35, 0.4, 0.06), (-0.3, 0.0, 0.6), DARK)
    legs, arms = [], []
    for side in (1.0, -1.0):
        legs.append(rod((-0.25, 0.12 * side, 0.68), (0.15, 0.14 * side, 0.66), 0.075, reflectivity))
        legs.append(rod((0.15, 0.14 * side, 0.66), (0.3, 0.12 * side, 0.28), 0.06, reflectivity))
        arms.append(rod((-0.2, 0.2 * side, 1.15), (0.33, 0.2 * side, 0.95), 0.045, reflectivity))
    trunk = rod((-0.28, 0.0, 0.62), (-0.22, 0.0, 1.24), 0.18, reflectivity)
    return merged([*rolls, *beams, seat, *legs, *arms, trunk, _head(-0.16, 1.38)])


def _trunk(from_m: float, to_m: float, reflectivity: float) -> Mesh:
    return rod((0.0, 0.0, from_m - 0.04), (0.04, 0.0, to_m), 0.18, reflectivity)
