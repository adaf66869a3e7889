# SPDX-License-Identifier: Apache-2.0
"""Cars: a body of smooth curves, wheels with spokes, seats behind the glass.

The body is what its outlines from the side, from above and from ahead have in common, with round edges. What is painted
on it is projected from four sides (:mod:`.car_livery`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import cv2
import numpy as np

from mt_nodes.base.arrays import Singles
from mt_nodes.world.modelling.car_livery import BLACK, COAT_F0, Livery, in_arch, livery
from mt_nodes.world.modelling.car_shapes import OUTLINE_M, CarShape, half_width, outline
from mt_nodes.world.modelling.fields import Distance, Net, SolidField, relaxed
from mt_nodes.world.modelling.shading import DetailedMesh, Shell, detailed
from mt_nodes.world.scene.meshes import GLASS, RETRO, TYRE

Rgb = tuple[float, float, float]

_STEP_M = 0.03


def body_net(shape: CarShape) -> Net:
    """Return the body's surface."""
    half, width, height = shape.length_m / 2.0, shape.width_m / 2.0, shape.height_m
    profile, x0, z0 = outline(shape)
    field = SolidField((-half - 0.08, -width - 0.2, 0.05), (half + 0.08, width + 0.2, height + 0.12), _STEP_M)

    def distance(p: Singles) -> Singles:
        x, y, z = p[..., 0], np.abs(p[..., 1]), p[..., 2]
        side = cv2.remap(
            profile,
            ((x - x0) / OUTLINE_M).reshape(len(x), -1),
            ((z - z0) / OUTLINE_M).reshape(len(x), -1),
            cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_REPLICATE,
        ).reshape(x.shape)
        flank = y - half_width(shape, x, z)
        k = 0.11
        mix = np.maximum(k - np.abs(side - flank), 0.0)
        return np.asarray(np.maximum(side, flank) + mix * mix / (4.0 * k))

    low, high = np.array([-half, -width, 0.1], np.float32), np.array([half, width, height], np.float32)
    field.add(0, distance, low, high)
    for axle in shape.axles:
        for sign in (1.0, -1.0):
            x, r = axle * half, shape.wheel_m + 0.055
            middle = np.array([x, sign * width, shape.wheel_m], np.float32)
            field.carve(_drum(middle, r, 0.26), middle - r - 0.1, middle + r + 0.1)
    for sign in (1.0, -1.0):
        at = (0.36 * half + 0.02, sign * (width + 0.055), shape.belt * height + 0.06)
        field.block(1, at, (0.05, 0.1, 0.065), 0.045, 0.02)
        if shape.roof_rails:
            y = sign * width * 0.66
            field.round_cone(
                2, ((-0.05 * half, y, height + 0.015), (-0.7 * half, y, height * 0.99 + 0.01)), (0.018, 0.018), 0.01
            )
    field.displace(lambda p, part: _bumpers(shape, p))
    return relaxed(field.net(), 4)


def _drum(middle_m: Singles, radius_m: float, half_m: float) -> Distance:
    """Return the distance from a drum with its axis along y."""

    def distance(p: Singles) -> Singles:
        away = np.hypot(p[..., 0] - middle_m[0], p[..., 2] - middle_m[2]) - radius_m
        return np.asarray(np.maximum(away, np.abs(p[..., 1] - middle_m[1]) - half_m))

    return distance


def _bumpers(shape: CarShape, p: Singles) -> Singles:
    """Return how far bumpers stand out at both ends, and what is pressed into the tailgate."""
    ends = np.clip((np.abs(p[:, 0]) / (shape.length_m / 2.0) - 0.8) / 0.15, 0.0, 1.0)
    low = 1.0 / (1.0 + np.exp((p[:, 2] - 0.365 * shape.height_m) / 0.018))
    plate = np.exp(-(((p[:, 2] / shape.height_m - 0.46) / 0.05) ** 4) - (p[:, 1] / 0.36) ** 8) * (p[:, 0] < -1.0)
    return np.asarray(0.028 * ends * low - 0.02 * plate, np.float32)


def wheel(radius_m: float, spokes: int, side: float) -> Shell:
    """Return a wheel about the origin, its outer face to ``side`` (+1 or -1) along y."""
    r, wide = radius_m, 0.1
    field = SolidField((-r - 0.03, -wide - 0.03, -r - 0.03), (r + 0.03, wide + 0.03, r + 0.03), 0.015)
    rim = 0.66 * r

    def tyre(p: Singles) -> Singles:
        rho = np.hypot(p[..., 0], p[..., 2])
        q = np.stack([np.abs(rho - (r + rim) / 2) - (r - rim) / 2 + 0.03, np.abs(p[..., 1]) - wide + 0.03], -1)
        return np.asarray(np.linalg.norm(np.maximum(q, 0), axis=-1) + np.minimum(q.max(-1), 0) - 0.03)

    def disc(p: Singles) -> Singles:
        rho, turn = np.hypot(p[..., 0], p[..., 2]), np.arctan2(p[..., 2], p[..., 0])
        y = p[..., 1] * side
        bow = 0.062 - 0.1 * np.square(rho / rim) * 0.2
        across = np.abs(np.mod(turn * spokes / (2 * np.pi), 1.0) - 0.5) * (2 * np.pi / spokes) * rho
        arm = np.maximum(across - (0.028 + 0.12 * np.maximum(0.06 - rho, 0)), np.abs(y - bow) - 0.016)
        ring = np.maximum(np.abs(rho - rim) - 0.018, np.abs(y - 0.03) - 0.06)
        hub = np.maximum(rho - 0.055, np.abs(y - bow) - 0.022)
        return np.asarray(np.minimum(np.minimum(np.maximum(arm, rho - rim), ring), hub))

    reach = np.array([r, wide, r], np.float32)
    field.add(0, tyre, -reach, reach)
    field.add(1, disc, -reach, reach)
    dark = np.array([rim, 0.02, rim], np.float32)
    field.add(
        2,
        lambda p: np.maximum(np.hypot(p[..., 0], p[..., 2]) - rim, np.abs(p[..., 1] * side + 0.01) - 0.02),
        -dark,
        dark,
    )
    net = field.net()
    colours = np.array([(0.018, 0.018, 0.019), (0.32, 0.33, 0.34), (0.012, 0.012, 0.012)], np.float32)[net.part]
    mirror = np.array([0.0, 0.12, 0.0], np.float32)[net.part]
    shine = np.array([TYRE, 0.4, 0.1], np.float32)[net.part]
    return Shell(net, colours, mirror, shine)


def moved(shell: Shell, offset_m: tuple[float, float, float]) -> Shell:
    """Return a shell elsewhere."""
    net = shell.net
    return Shell(
        Net(net.vertices_m + np.array(offset_m, np.float32), net.triangles, net.normals, net.part),
        shell.albedo,
        shell.mirror,
        shell.reflectivity,
    )


def motorcar(shape: CarShape, paint: Rgb, plate: str, reflectivity: float) -> tuple[DetailedMesh, Livery]:
    """Return a car and the pictures on it. ``reflectivity``: of its paint for LiDARs."""
    mesh, net = _grey(shape)
    drawn = replace(livery(shape, paint, plate), body_vertices=len(net.vertices_m))
    body = _painted_body(shape, net, drawn, reflectivity)
    albedo, mirror, shine = mesh.albedo.copy(), mesh.mirror.copy(), mesh.reflectivity.copy()
    albedo[: len(body.albedo)], mirror[: len(body.mirror)] = body.albedo, body.mirror
    shine[: len(net.triangles)] = body.reflectivity[net.triangles[:, 0]]
    return replace(mesh, albedo=albedo, mirror=mirror, reflectivity=shine), drawn


@lru_cache(maxsize=8)
def _grey(shape: CarShape) -> tuple[DetailedMesh, Net]:
    """Return a car without its paint, and its body, the first of its parts."""
    half, width, net = shape.length_m / 2.0, shape.width_m / 2.0, body_net(shape)
    count = len(net.vertices_m)
    body = Shell(net, np.zeros((count, 3), np.float32), np.zeros(count, np.float32), np.ones(count, np.float32))
    of_side = {side: wheel(shape.wheel_m, shape.spokes, side) for side in (1.0, -1.0)}
    wheels = [
        moved(of_side[side], (axle * half, side * (width - 0.115), shape.wheel_m))
        for axle in shape.axles
        for side in (1.0, -1.0)
    ]
    return detailed([body, *wheels, _interior(shape)]), net


def _interior(shape: CarShape) -> Shell:
    """Return seats with head rests, dashboard and steering wheel."""
    half, width, belt = shape.length_m / 2.0, shape.width_m / 2.0, shape.belt * shape.height_m
    field = SolidField((-half, -width, 0.3), (half, width, shape.height_m), 0.04)
    for x in (-0.06 * half, -0.48 * half):
        for y in (0.38, -0.38):
            field.block(0, (x - 0.12, y, belt - 0.05), (0.07, 0.23, 0.28), 0.06, 0.0, 0.2)
            field.block(0, (x - 0.17, y, belt + 0.31), (0.05, 0.12, 0.09), 0.045)
    cowl = 0.3 * half
    field.block(0, (cowl, 0.0, belt - 0.08), (0.22, width - 0.14, 0.1), 0.05)
    field.ellipsoid(0, (cowl - 0.25, 0.38, belt + 0.02), (0.05, 0.18, 0.16))
    net = field.net()
    count = len(net.vertices_m)
    return Shell(
        net, np.full((count, 3), 0.035, np.float32), np.zeros(count, np.float32), np.full(count, 0.05, np.float32)
    )


def _painted_body(shape: CarShape, net: Net, drawn: Livery, reflectivity: float) -> Shell:
    marks = drawn.chosen(net.vertices_m, net.normals, 0.01)
    arch = in_arch(shape, net.vertices_m)
    albedo = np.tile(np.array(drawn.paint, np.float32), (len(marks), 1))
    albedo += marks[:, 3:4] * (marks[:, :3] - albedo)
    albedo[arch | (net.normals[:, 2] < -0.7) | (net.part == 2)] = BLACK
    mirror = np.where(arch | (net.part == 2), 0.0, COAT_F0).astype(np.float32)
    shine = np.select([marks[:, 5] > 0.5, marks[:, 6] > 0.5, arch], [GLASS, RETRO, 0.1], reflectivity).astype(
        np.float32
    )
    return Shell(net, albedo, mirror, shine)
