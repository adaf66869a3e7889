# SPDX-License-Identifier: Apache-2.0
"""Cyclists: a bicycle of tubes, tyres and spokes, and its rider."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.world.modelling.face import head_shell
from mt_nodes.world.modelling.fields import Net, SolidField
from mt_nodes.world.modelling.gait import riding
from mt_nodes.world.modelling.person import body_shells
from mt_nodes.world.modelling.shading import DetailedMesh, Shell, detailed
from mt_nodes.world.modelling.wardrobe import Dress
from mt_nodes.world.scene.meshes import RETRO, TYRE

Rgb = tuple[float, float, float]

#: Places of a city bicycle's joints (x, z), from a frame of 0.56 m (assumed); wheels of 0.34 m (ISO 5775, 37-622).
_WHEEL_M, _REAR, _FRONT, _CRANK = 0.34, (-0.52, 0.34), (0.54, 0.34), (-0.07, 0.29)
_SADDLE, _HEAD_TOP, _HEAD_LOW, _BARS = (-0.25, 0.93), (0.31, 0.86), (0.36, 0.7), (0.4, 1.03)
_BLACK: Rgb = (0.015, 0.015, 0.016)
_STEEL: Rgb = (0.35, 0.36, 0.37)
_SPOKES = 18


@dataclass(frozen=True)
class Cycle:
    """A bicycle and its rider.

    Attributes:
        frame: its colour. lean_rad: of the rider's trunk. phase: of the pedals, 0 to 1. basket: whether it has one.
    """

    rider: Dress
    frame: Rgb
    lean_rad: float = 0.45
    phase: float = 0.1
    basket: bool = False


def cyclist_on(cycle: Cycle) -> DetailedMesh:
    """Return a bicycle with its rider."""
    turn = 2.0 * np.pi * cycle.phase
    pedals = [
        np.array([_CRANK[0] + s * 0.17 * np.cos(turn), s * 0.13, _CRANK[1] + s * 0.17 * np.sin(turn)])
        for s in (1.0, -1.0)
    ]
    hands = (np.array([_BARS[0] - 0.04, 0.27, _BARS[1] + 0.02]), np.array([_BARS[0] - 0.04, -0.27, _BARS[1] + 0.02]))
    hip = np.array([_SADDLE[0] + 0.02, 0.0, _SADDLE[1] + 0.1])
    joints = riding(hip, hands, (pedals[0], pedals[1]), cycle.rider.stature_m, cycle.lean_rad)
    parts = [*_bicycle(cycle, pedals), *body_shells(cycle.rider, joints), head_shell(cycle.rider, joints)]
    return detailed(parts)


def _bicycle(cycle: Cycle, pedals: list[Floats]) -> list[Shell]:
    parts: list[Shell] = []
    for x, z in (_REAR, _FRONT):
        parts += _wheel_at(x, z)
    crank, saddle, top, low = ((x, 0.0, z) for x, z in (_CRANK, _SADDLE, _HEAD_TOP, _HEAD_LOW))
    seat = (_SADDLE[0] + 0.035, 0.0, _SADDLE[1] - 0.14)
    paint = cycle.frame
    for a, b, r in (
        (crank, seat, 0.016),
        (seat, (top[0], 0.0, top[2] - 0.03), 0.015),
        (crank, low, 0.018),
        (top, low, 0.02),
    ):
        parts.append(tube([a, b], r, paint))
    for side in (1.0, -1.0):
        rear, front = (_REAR[0], side * 0.06, _REAR[1]), (_FRONT[0], side * 0.05, _FRONT[1])
        parts.append(tube([(crank[0], side * 0.03, crank[2]), rear], 0.011, paint))
        parts.append(tube([(seat[0], side * 0.02, seat[2] - 0.03), rear], 0.009, paint))
        parts.append(
            tube([(low[0], side * 0.035, low[2]), (low[0] + 0.06, side * 0.05, low[2] - 0.14), front], 0.012, paint)
        )
        x, _, z = pedals[0 if side > 0 else 1].tolist()
        parts.append(tube([(crank[0], side * 0.075, crank[2]), (x, side * 0.085, z)], 0.011, _STEEL))
        parts.append(tube([(x - 0.05, side * 0.13, z - 0.015), (x + 0.05, side * 0.13, z - 0.015)], 0.028, _BLACK))
        grip = (_BARS[0] - 0.14, side * 0.29, _BARS[1] - 0.02)
        parts.append(
            tube(
                [(_BARS[0] + 0.02, side * 0.03, _BARS[1]), (_BARS[0], side * 0.2, _BARS[1] + 0.01), grip], 0.012, _STEEL
            )
        )
        parts.append(tube([(_BARS[0] - 0.05, side * 0.255, _BARS[1] - 0.0), grip], 0.017, _BLACK))
    parts.append(tube([top, (_BARS[0], 0.0, _BARS[1])], 0.014, _STEEL))
    parts.append(tube([seat, saddle], 0.013, _STEEL))
    ring = [
        (_CRANK[0] + 0.085 * np.cos(a), 0.045, _CRANK[1] + 0.085 * np.sin(a)) for a in np.linspace(0, 2 * np.pi, 17)
    ]
    parts.append(tube(ring, 0.008, _STEEL))
    parts.append(tube([(_CRANK[0], 0.045, _CRANK[1] + 0.085), (_REAR[0], 0.045, _REAR[1] + 0.035)], 0.005, _BLACK))
    parts.append(tube([(_CRANK[0], 0.045, _CRANK[1] - 0.085), (_REAR[0], 0.045, _REAR[1] - 0.035)], 0.005, _BLACK))
    for (x, z), first, last in ((_REAR, 0.25, 2.6), (_FRONT, 0.6, 2.7)):
        guard = [(x + 0.385 * np.cos(a), 0.0, z + 0.385 * np.sin(a)) for a in np.linspace(first, last, 12)]
        parts.append(tube(guard, 0.016, _BLACK, flat=0.35))
    parts += _small_parts(cycle)
    return parts


def _small_parts(cycle: Cycle) -> list[Shell]:
    field = SolidField((-0.75, -0.25, 0.5), (0.8, 0.25, 1.25), 0.0125)
    field.round_cone(
        0,
        ((_SADDLE[0] - 0.09, 0.0, _SADDLE[1] + 0.01), (_SADDLE[0] + 0.15, 0.0, _SADDLE[1] + 0.015)),
        (0.075, 0.025),
        0.0,
        (1.0, 1.0, 0.5),
    )
    field.round_cone(1, ((_HEAD_LOW[0] + 0.1, 0.0, 0.8), (_HEAD_LOW[0] + 0.07, 0.0, 0.8)), (0.035, 0.03))
    field.block(2, (_REAR[0] - 0.19, 0.0, 0.66), (0.02, 0.04, 0.03), 0.01)
    field.block(0, (_REAR[0] + 0.04, 0.0, 0.75), (0.18, 0.06, 0.012), 0.01)
    if cycle.basket:
        field.block(3, (0.52, 0.0, 0.98), (0.13, 0.16, 0.11), 0.03)
    net = field.net()
    colours = np.array([_BLACK, (0.6, 0.6, 0.6), (0.4, 0.01, 0.01), (0.2, 0.12, 0.05)], np.float32)[net.part]
    shine = np.array([0.1, RETRO, RETRO, 0.3], np.float32)[net.part]
    return [Shell(net, colours, np.zeros(len(colours), np.float32), shine)]


def _wheel_at(x: float, z: float) -> list[Shell]:
    def circle(radius_m: float, count: int) -> list[tuple[float, float, float]]:
        return [(x + radius_m * np.cos(a), 0.0, z + radius_m * np.sin(a)) for a in np.linspace(0, 2 * np.pi, count)]

    spokes = []
    for i in range(_SPOKES):
        angle, side = 2 * np.pi * i / _SPOKES, 0.03 * (-1) ** i
        rim = (x + 0.305 * np.cos(angle), 0.0, z + 0.305 * np.sin(angle))
        spokes.append(
            tube([(x + 0.02 * np.cos(angle + 1.2), side, z + 0.02 * np.sin(angle + 1.2)), rim], 0.0016, _STEEL, sides=4)
        )
    return [
        tube(circle(_WHEEL_M - 0.019, 41), 0.019, (0.02, 0.02, 0.021), reflectivity=TYRE),
        tube(circle(0.305, 41), 0.011, (0.3, 0.3, 0.31)),
        tube([(x, -0.05, z), (x, 0.05, z)], 0.022, _STEEL),
        *spokes,
    ]


def tube(
    points_m: list[tuple[float, float, float]],
    radius_m: float,
    colour: Rgb,
    reflectivity: float = 0.3,
    sides: int = 10,
    flat: float = 1.0,
) -> Shell:
    """Return a round tube along points (n, 3), with caps; ``flat`` squeezes it across y."""
    p = np.array(points_m, np.float64)
    closed = len(p) > 3 and np.allclose(p[0], p[-1])
    p = p[:-1] if closed else p
    along = np.roll(p, -1, axis=0) - np.roll(p, 1, axis=0) if closed else np.gradient(p, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    reference = np.array([0.0, 1.0, 0.0]) if np.abs(along[:, 1]).max() < 0.9 else np.array([1.0, 0.0, 0.0])
    u = np.cross(along, reference)
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    v = np.cross(along, u)
    angle = np.arange(sides) * 2 * np.pi / sides
    normals = np.cos(angle)[None, :, None] * u[:, None] + np.sin(angle)[None, :, None] * v[:, None]
    stretch = np.array([1.0, 1.0, 1.0]) if flat == 1.0 else np.array([flat, 1.6, flat])
    vertices = p[:, None] + radius_m * normals * stretch
    i, j = np.meshgrid(np.arange(len(p) - (not closed)), np.arange(sides), indexing="ij")
    below, above = i * sides, (i + 1) % len(p) * sides
    a, b, c, d = ((ring + (j + k) % sides).ravel() for ring in (below, above) for k in (0, 1))
    triangles = [np.column_stack([a, b, d]), np.column_stack([a, d, c])]
    vertices, normals = vertices.reshape(-1, 3), normals.reshape(-1, 3)
    if not closed:
        ends = np.concatenate([p[:1], p[-1:]])
        first, last = len(vertices), (len(p) - 1) * sides
        ring = np.arange(sides)
        triangles.append(np.column_stack([np.full(sides, first), np.roll(ring, -1), ring]))
        triangles.append(np.column_stack([np.full(sides, first + 1), last + ring, last + np.roll(ring, -1)]))
        vertices = np.concatenate([vertices, ends])
        normals = np.concatenate([normals, [-along[0], along[-1]]])
    faces = np.concatenate(triangles).astype(np.uint32)
    net = Net(vertices.astype(np.float32), faces, normals.astype(np.float32), np.zeros(len(vertices), np.int16))
    count = len(vertices)
    mirror = np.full(count, 0.04 if reflectivity != TYRE else 0.0, np.float32)
    return Shell(
        net, np.tile(np.array(colour, np.float32), (count, 1)), mirror, np.full(count, reflectivity, np.float32)
    )
