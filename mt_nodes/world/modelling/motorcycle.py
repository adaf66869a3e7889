# SPDX-License-Identifier: Apache-2.0
"""Motorcyclists: a roadster with wheels, engine, tank and lamps, and its rider in a full-face helmet.

Sizes are of the order of a machine of middle class, 2.1 m long with a wheelbase of 1.42 m (assumed).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.world.modelling.bicycle import tube
from mt_nodes.world.modelling.face import head_shell
from mt_nodes.world.modelling.fields import Net, SolidField
from mt_nodes.world.modelling.gait import Joints, riding
from mt_nodes.world.modelling.person import body_shells
from mt_nodes.world.modelling.shading import DetailedMesh, Shell, detailed
from mt_nodes.world.modelling.wardrobe import Dress
from mt_nodes.world.scene.meshes import CHROME, GLASS, RETRO, STEEL, TYRE

Rgb = tuple[float, float, float]
Place = tuple[float, float, float]

#: Places (x, z) of the axles and outer radius of the tyres.
_REAR, _FRONT, _WHEEL_M = (-0.7, 0.31), (0.72, 0.31), 0.31
_HIP, _BARS, _PEGS = np.array([-0.32, 0.0, 0.94]), (0.4, 1.06), (-0.16, 0.36)
_BLACK, _GREY, _STEEL = (0.015, 0.015, 0.016), (0.08, 0.08, 0.085), (0.35, 0.36, 0.37)
_SPOKES = 10
#: Parts of the solid: black, engine, paint, seat, head lamp, tail lamp, plate; their colours but for the paint, how
#: much they mirror, and how brightly LiDARs see them.
_PLAIN, _ENGINE, _PAINT, _SEAT, _LAMP, _TAIL, _PLATE = range(7)
_COLOURS: dict[int, Rgb] = {
    _PLAIN: _BLACK, _ENGINE: (0.13, 0.13, 0.135), _SEAT: (0.02, 0.02, 0.021), _LAMP: (0.62, 0.63, 0.65),
    _TAIL: (0.42, 0.01, 0.01), _PLATE: (0.6, 0.6, 0.58),
}  # fmt: skip
_MIRROR = np.array([0.03, 0.06, 0.05, 0.02, 0.1, 0.05, 0.02], np.float32)
_SHINE = np.array([0.1, STEEL, 0.3, 0.1, GLASS, RETRO, RETRO], np.float32)


@dataclass(frozen=True)
class Machine:
    """A motorcycle and its rider.

    ``paint``: of tank, tail and mudguard. ``helmet``: its colour. ``lean_rad``: of the rider's trunk. ``screen``:
    whether a fairing covers the bars.
    """

    rider: Dress
    paint: Rgb
    helmet: Rgb
    lean_rad: float = 0.3
    screen: bool = False


def motorcyclist_on(machine: Machine) -> DetailedMesh:
    """Return a motorcycle with its rider."""
    hands = tuple(np.array([_BARS[0] - 0.08, side * 0.33, _BARS[1] + 0.02]) for side in (1.0, -1.0))
    feet = tuple(np.array([_PEGS[0] + 0.06, side * 0.2, _PEGS[1] + 0.02]) for side in (1.0, -1.0))
    joints = riding(_HIP, (hands[0], hands[1]), (feet[0], feet[1]), machine.rider.stature_m, machine.lean_rad)
    parts = [*_running_gear(machine), _body(machine), *body_shells(machine.rider, joints)]
    return detailed([*parts, head_shell(machine.rider, joints), _helmet(machine, joints)])


def _running_gear(machine: Machine) -> list[Shell]:
    """Return wheels, fork, swing arm, exhaust, bars and mirrors."""
    parts = [*_wheel(*_REAR, 0.07), *_wheel(*_FRONT, 0.055)]
    for side in (1.0, -1.0):
        low, high = (_FRONT[0], side * 0.085, _FRONT[1]), (0.5, side * 0.085, 1.0)
        middle = tuple((np.array(low) * 0.5 + np.array(high) * 0.5).tolist())
        parts.append(tube([low, middle], 0.03, _GREY, STEEL))
        parts.append(tube([middle, high], 0.021, _STEEL, CHROME))
        parts.append(tube([(-0.1, side * 0.1, 0.4), (_REAR[0], side * 0.1, _REAR[1])], 0.03, _GREY, STEEL))
        grip = (_BARS[0] - 0.14, side * 0.37, _BARS[1] + 0.01)
        bend = (_BARS[0], side * 0.2, _BARS[1] + 0.02)
        parts.append(tube([(0.46, side * 0.02, 1.02), bend, grip], 0.012, _BLACK))
        parts.append(tube([(_BARS[0] - 0.04, side * 0.25, _BARS[1] + 0.015), grip], 0.019, _BLACK))
        glass = (_BARS[0] - 0.01, side * 0.37, _BARS[1] + 0.15)
        parts.append(tube([bend, glass], 0.007, _BLACK))
        parts.append(tube([(glass[0] + 0.012, *glass[1:]), (glass[0] - 0.012, *glass[1:])], 0.05, _BLACK, CHROME))
        peg = (_PEGS[0], side * 0.12, _PEGS[1])
        parts.append(tube([peg, (_PEGS[0], side * 0.24, _PEGS[1])], 0.016, _STEEL, STEEL))
    pipe: list[Place] = [(0.22, -0.1, 0.55), (0.26, -0.11, 0.34), (-0.1, -0.14, 0.27), (-0.45, -0.17, 0.33)]
    parts.append(tube(pipe, 0.024, _STEEL, CHROME))
    parts.append(tube([pipe[-1], (-0.95, -0.2, 0.46)], 0.055, _STEEL, CHROME, sides=14))
    for (x, z), first, last, colour in ((_FRONT, 0.5, 2.6, machine.paint), (_REAR, 0.9, 2.4, _BLACK)):
        guard = [(x + 0.35 * np.cos(a), 0.0, z + 0.35 * np.sin(a)) for a in np.linspace(first, last, 12)]
        parts.append(tube(guard, 0.045, colour, flat=0.3))
    return parts


def _wheel(x: float, z: float, wide_m: float) -> list[Shell]:
    def circle(radius_m: float, y: float = 0.0, count: int = 41) -> list[Place]:
        return [(x + radius_m * np.cos(a), y, z + radius_m * np.sin(a)) for a in np.linspace(0, 2 * np.pi, count)]

    turns = [2 * np.pi * i / _SPOKES for i in range(_SPOKES)]
    spokes = [
        tube([(x, side * 0.02, z), (x + 0.21 * np.cos(a), side * 0.01, z + 0.21 * np.sin(a))], 0.011, _GREY, STEEL)
        for side, a in zip((1.0, -1.0) * _SPOKES, turns, strict=False)
    ]
    return [
        tube(circle(_WHEEL_M - wide_m), wide_m, (0.02, 0.02, 0.021), reflectivity=TYRE, sides=14),
        tube(circle(0.215), 0.022, _GREY, STEEL),
        tube(circle(0.12, 0.06), 0.014, _GREY, CHROME),
        tube([(x, -0.1, z), (x, 0.1, z)], 0.03, _STEEL, STEEL),
        *spokes,
    ]


def _body(machine: Machine) -> Shell:
    """Return engine, frame, tank, seat, tail, lamps and plate as one solid."""
    field = SolidField((-1.1, -0.32, 0.2), (0.85, 0.32, 1.4), 0.015)
    field.block(_ENGINE, (0.05, 0.0, 0.38), (0.25, 0.14, 0.12), 0.04)
    for level in range(4):  # the cylinder's fins
        field.block(_ENGINE, (0.14 + 0.02 * level, 0.0, 0.5 + 0.045 * level), (0.1, 0.13, 0.014), 0.008, 0.0, -0.2)
    field.round_cone(_PLAIN, ((0.46, 0.0, 0.98), (0.1, 0.0, 0.72)), (0.05, 0.05))
    field.round_cone(_PLAIN, ((0.3, 0.0, 0.82), (0.24, 0.0, 0.4)), (0.035, 0.035))
    field.block(_PLAIN, (-0.22, 0.0, 0.58), (0.12, 0.1, 0.16), 0.05)
    field.ellipsoid(_PAINT, (0.14, 0.0, 0.89), (0.3, 0.15, 0.135), 0.0, 0.08)
    field.round_cone(_SEAT, ((-0.14, 0.0, 0.83), (-0.78, 0.0, 0.9)), (0.13, 0.1), 0.02, (1.0, 1.0, 0.5))
    field.round_cone(_PAINT, ((-0.35, 0.0, 0.76), (-0.92, 0.0, 0.86)), (0.12, 0.06), 0.0, (1.0, 0.9, 0.6))
    for side in (1.0, -1.0):
        field.round_cone(_PAINT, ((0.28, side * 0.13, 0.8), (0.4, side * 0.15, 0.66)), (0.07, 0.04), 0.0, (1, 0.4, 1))
    field.ellipsoid(_PLAIN, (0.55, 0.0, 0.98), (0.1, 0.115, 0.115))
    field.ellipsoid(_LAMP, (0.625, 0.0, 0.975), (0.04, 0.1, 0.1))
    field.block(_TAIL, (-0.975, 0.0, 0.85), (0.025, 0.07, 0.03), 0.012)
    field.block(_PLATE, (-1.0, 0.0, 0.64), (0.012, 0.09, 0.065), 0.004, 0.0, -0.3)
    field.round_cone(_PLAIN, ((-0.9, 0.0, 0.8), (-1.0, 0.0, 0.68)), (0.03, 0.02))
    if machine.screen:
        field.ellipsoid(_PAINT, (0.53, 0.0, 1.03), (0.11, 0.17, 0.15), 0.02, -0.4)
        field.ellipsoid(_LAMP, (0.6, 0.0, 1.0), (0.055, 0.1, 0.07))
    return _coloured(field.net(), {**_COLOURS, _PAINT: machine.paint})


def _helmet(machine: Machine, joints: Joints) -> Shell:
    """Return a full-face helmet: shell, chin bar and dark visor around the head."""
    x, y, z = joints.head.tolist()
    field = SolidField((x - 0.25, y - 0.22, z - 0.25), (x + 0.25, y + 0.22, z + 0.25), 0.01)
    field.ellipsoid(_PAINT, (x - 0.005, y, z + 0.03), (0.15, 0.128, 0.14))
    field.round_cone(_PAINT, ((x - 0.03, y, z - 0.04), (x + 0.085, y, z - 0.085)), (0.115, 0.062), 0.05)
    field.ellipsoid(_LAMP, (x + 0.058, y, z + 0.022), (0.112, 0.12, 0.052))
    return _coloured(field.net(), {**_COLOURS, _PAINT: machine.helmet, _LAMP: _BLACK})


def _coloured(net: Net, colours: dict[int, Rgb]) -> Shell:
    table = np.array([colours[part] for part in range(len(colours))], np.float32)
    return Shell(net, table[net.part], _MIRROR[net.part], _SHINE[net.part])
