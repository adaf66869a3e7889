# SPDX-License-Identifier: Apache-2.0
"""Deer, cows, boars, dogs and cats: trunk with shoulder and haunch, jointed legs, hooves, head, ears, antlers, coat.

Shoulder heights are those of :mod:`mt_nodes.world.scene.animals`; proportions within the body are by eye (assumed).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.world.modelling.fields import Net, SolidField, Vector
from mt_nodes.world.modelling.shading import DetailedMesh, Shell, detailed

Rgb = tuple[float, float, float]
#: Parts that differ in colour.
COAT, HOOF, HORN, MUZZLE, EAR, UDDER = range(6)


@dataclass(frozen=True)
class Beast:
    """A quadruped.

    Attributes:
        shoulder_m: height. trunk_m: from chest to rump. girth_m: depth of the chest. leg_m: radius of the cannon bone.
        neck: direction of the neck (forward, up), and its length as a share of the shoulder height.
        head_m: length of the head. coat, belly, dark: colours of the fur. pattern: plain, holstein, roe or boar.
        antlers_m: their height, 0 for none. ears_m: their length. tail_m: its length. phase: of the stride.
        snout: its length as a share of the head's. skull: its width and height, beside those of a long head.
        neck_wide: its radii, beside those of a slender one. nose_wide: radius of the snout's end as a share of it.
    """

    shoulder_m: float
    trunk_m: float
    girth_m: float
    leg_m: float
    neck: tuple[float, float, float]
    head_m: float
    coat: Rgb
    belly: Rgb
    dark: Rgb
    pattern: str = "plain"
    antlers_m: float = 0.0
    ears_m: float = 0.1
    tail_m: float = 0.1
    phase: float = 0.2
    slim: float = 0.36
    head_pitch_rad: float = 0.6
    reflectivity: float = 0.4
    snout: float = 0.72
    skull: float = 1.0
    neck_wide: float = 1.0
    nose_wide: float = 0.11


def animal(beast: Beast) -> DetailedMesh:
    """Return a walking animal."""
    h, length = beast.shoulder_m, beast.trunk_m
    step = float(np.clip(h / 75.0, min(0.009, h / 60.0), 0.018))
    reach = length * 0.5 + h * (0.35 + 0.75 * beast.neck[2]) + beast.head_m
    tall = h * (1.15 + beast.neck[2]) + beast.antlers_m + beast.head_m
    field = SolidField((-0.75 * length, -0.45 * h, -0.03), (reach, 0.45 * h, tall), step)
    _trunk_of(field, beast)
    for side in (1.0, -1.0):
        _fore_leg(field, beast, side, beast.phase + (0.0 if side > 0 else 0.5))
        _hind_leg(field, beast, side, beast.phase + (0.25 if side > 0 else 0.75))
    head = _head_of(field, beast)
    rng = np.random.default_rng(11)
    waves = rng.normal(size=(4, 3)) * 26.0 / h
    relief = np.float32(0.0035 * h)
    field.displace(
        lambda p, part: np.where(
            part == COAT, relief * np.sin(p @ waves.T.astype(np.float32)).sum(axis=1) / 2.0, 0.0
        ).astype(np.float32)
    )
    net = field.net()
    shine = np.full(len(net.vertices_m), beast.reflectivity, np.float32)
    return detailed([Shell(net, _fur(beast, net, head), np.zeros(len(net.vertices_m), np.float32), shine)])


def _trunk_of(field: SolidField, b: Beast) -> None:
    h, half, g = b.shoulder_m, b.trunk_m / 2.0, b.girth_m / 2.0
    back = h - g
    wide = 2.0 * b.slim
    field.ellipsoid(COAT, (0.24 * b.trunk_m, 0, back - 0.04 * g), (0.32 * b.trunk_m, g * wide, g), 0.0)
    field.round_cone(
        COAT,
        ((0.2 * b.trunk_m, 0, back + 0.05 * g), (-0.22 * b.trunk_m, 0, back + 0.2 * g)),
        (0.86 * g, 0.76 * g),
        0.2 * g,
        (1.0, wide, 1.0),
    )
    field.ellipsoid(
        COAT, (-0.3 * b.trunk_m, 0, back + 0.16 * g), (0.22 * b.trunk_m, 0.92 * g * wide, 0.84 * g), 0.25 * g
    )
    field.ellipsoid(COAT, (0.4 * b.trunk_m, 0, back - 0.12 * g), (0.14 * b.trunk_m, 0.6 * g * wide, 0.7 * g), 0.3 * g)
    rump = (-half * 0.98, 0.0, back + 0.55 * g)
    hang = (-half * 0.98 - 0.25 * b.tail_m, 0.0, back + 0.55 * g - b.tail_m)
    field.round_cone(COAT, (rump, hang), (0.12 * g, 0.07 * g + 0.008), 0.1 * g)
    if b.pattern == "holstein":
        field.ellipsoid(
            COAT, (-0.02 * b.trunk_m, 0, back - 0.2 * g), (0.36 * b.trunk_m, 1.05 * g * wide, 0.98 * g), 0.2 * g
        )
        field.ellipsoid(UDDER, (-0.24 * b.trunk_m, 0, back - 0.75 * g), (0.13 * b.trunk_m, 0.35 * g, 0.32 * g), 0.1 * g)


def _fore_leg(field: SolidField, b: Beast, side: float, phase: float) -> None:
    h, g, r = b.shoulder_m, b.girth_m / 2.0, b.leg_m
    swing = 0.13 * h * np.sin(2 * np.pi * phase)
    lift = 0.06 * h * max(0.0, np.cos(2 * np.pi * phase))
    y = side * 0.62 * g * 2.0 * b.slim
    shoulder, elbow = (0.33 * b.trunk_m, 0.9 * y, h - 0.8 * g), (0.29 * b.trunk_m + 0.1 * swing, y, 0.58 * h)
    knee = (0.3 * b.trunk_m + 0.6 * swing + 0.3 * lift, y, 0.33 * h + 0.5 * lift)
    fetlock = (0.28 * b.trunk_m + swing - 0.5 * lift, y * 0.95, 0.085 * h + lift)
    _chain(field, (shoulder, elbow, knee, fetlock), (0.42 * g, 0.2 * g + r, 1.15 * r, 0.8 * r), b)
    _hoof(field, b, fetlock, r)


def _hind_leg(field: SolidField, b: Beast, side: float, phase: float) -> None:
    h, g, r = b.shoulder_m, b.girth_m / 2.0, b.leg_m
    swing = 0.13 * h * np.sin(2 * np.pi * phase)
    lift = 0.06 * h * max(0.0, np.cos(2 * np.pi * phase))
    y = side * 0.6 * g * 2.0 * b.slim
    hip, stifle = (-0.32 * b.trunk_m, 0.8 * y, h - 0.75 * g), (-0.22 * b.trunk_m + 0.3 * swing, y, 0.6 * h)
    hock = (-0.44 * b.trunk_m + 0.7 * swing, y, 0.36 * h + 0.5 * lift)
    fetlock = (-0.41 * b.trunk_m + swing - 0.3 * lift, y * 0.95, 0.085 * h + lift)
    _chain(field, (hip, stifle, hock, fetlock), (0.62 * g, 0.4 * g, 1.2 * r, 0.85 * r), b)
    _hoof(field, b, fetlock, r)


def _chain(field: SolidField, joints: tuple[Vector, ...], radii: tuple[float, ...], b: Beast) -> None:
    for i in range(len(joints) - 1):
        field.round_cone(
            COAT,
            (joints[i], joints[i + 1]),
            (radii[i], radii[i + 1]),
            0.05 * b.girth_m,
            (1.0, 0.75, 1.0) if i == 0 else (1.0, 0.9, 1.0),
        )


def _hoof(field: SolidField, b: Beast, fetlock: Vector, r: float) -> None:
    x, y, z = fetlock
    toe = (x + 0.06 * b.shoulder_m, y, z - 0.05 * b.shoulder_m)
    field.round_cone(COAT, (fetlock, toe), (0.85 * r, 0.9 * r), 0.01)
    low = max(0.0, z - 0.085 * b.shoulder_m)
    field.round_cone(
        HOOF, (toe, (toe[0] + 0.02 * b.shoulder_m, y, low + 0.6 * r)), (1.0 * r, 1.15 * r), 0.004, above_m=low
    )


def _head_of(field: SolidField, b: Beast) -> Floats:
    """Add neck, head, ears, and antlers; return the middle of the skull."""
    h, g = b.shoulder_m, b.girth_m / 2.0
    ahead, up, length = b.neck
    base = np.array([0.4 * b.trunk_m, 0.0, h - 0.55 * g])
    along = np.array([ahead, 0.0, up]) / np.hypot(ahead, up)
    poll = base + length * h * along
    radii = (b.neck_wide * 0.62 * g, b.neck_wide * (0.27 * g + 0.05 * b.head_m))
    field.round_cone(COAT, (tuple(base), tuple(poll)), radii, 0.35 * g, (1.0, 0.72, 1.0))
    n = b.head_m
    nose = np.array([np.cos(b.head_pitch_rad), 0.0, -np.sin(b.head_pitch_rad)])
    skull = poll + 0.12 * n * nose
    muzzle = skull + b.snout * n * nose
    field.ellipsoid(COAT, tuple(skull), (0.3 * n, 0.2 * b.skull * n, 0.23 * b.skull * n), 0.12 * n, b.head_pitch_rad)
    field.round_cone(
        COAT, (tuple(skull - (0, 0, 0.04 * n)), tuple(muzzle)), (0.2 * n, b.nose_wide * n), 0.08 * n, (1.0, 0.85, 1.0)
    )
    tip_m = (b.nose_wide - 0.01) * n
    field.ellipsoid(MUZZLE, tuple(muzzle + 0.05 * n * nose), (tip_m,) * 3, 0.03 * n)
    for side in (1.0, -1.0):
        root = skull + np.array([-0.17 * n, side * 0.15 * n, 0.14 * n])
        tip = root + b.ears_m * np.array([-0.25, side * 0.8, 0.55 if b.pattern != "holstein" else 0.0])
        middle = (root + tip) / 2.0
        field.round_cone(EAR, (tuple(root), tuple(middle)), (0.16 * b.ears_m, 0.24 * b.ears_m), 0.01, (0.55, 1.0, 1.0))
        field.round_cone(EAR, (tuple(middle), tuple(tip)), (0.24 * b.ears_m, 0.06 * b.ears_m), 0.01, (0.55, 1.0, 1.0))
        if b.antlers_m:
            _antler(field, b, skull + np.array([-0.08 * n, side * 0.09 * n, 0.16 * n]), side)
    return np.asarray(skull)


def _antler(field: SolidField, b: Beast, root: Floats, side: float) -> None:
    a, thick = b.antlers_m, max(0.05 * b.antlers_m, 0.011)
    points = [
        root,
        root + a * np.array([-0.12, side * 0.18, 0.4]),
        root + a * np.array([-0.1, side * 0.34, 0.72]),
        root + a * np.array([0.04, side * 0.36, 1.0]),
    ]
    for p, q in pairwise(points):
        field.round_cone(HORN, (tuple(p), tuple(q)), (thick, 0.85 * thick), 0.006)
    for at, way in (
        (points[1], (0.3, 0.04, 0.2)),
        (points[2], (-0.2, 0.06, 0.2)),
        (0.4 * points[0] + 0.6 * points[1], (0.22, 0.0, 0.14)),
    ):
        tip = at + a * np.array([way[0], side * way[1], way[2]])
        field.round_cone(HORN, (tuple(at), tuple(tip)), (0.9 * thick, 0.6 * thick), 0.006)


def _fur(b: Beast, net: Net, skull: Floats) -> Singles:
    x, _, z = net.vertices_m.T
    h, g = b.shoulder_m, b.girth_m
    coat, belly, dark = (np.array(c, np.float32) for c in (b.coat, b.belly, b.dark))
    rng = np.random.default_rng(4)
    low = (
        np.clip((h - 0.66 * g - z) / (0.3 * g), 0.0, 1.0)
        * (net.normals[:, 2] < 0.1)
        * np.clip((z - h + 1.12 * g) / (0.1 * g), 0.0, 1.0)
    )
    albedo = coat + low[:, None] * (belly - coat)
    legs = np.clip((0.5 * h - z) / (0.25 * h), 0.0, 1.0)[:, None]
    albedo += legs * (0.75 * dark + 0.25 * coat - albedo) * (0.0 if b.pattern == "holstein" else 0.7)
    if b.pattern == "holstein":
        albedo = _patches(b, net, coat, dark, skull)
    if b.pattern == "roe":
        rump = (np.hypot(x + 0.5 * b.trunk_m, (z - h + 0.42 * g) * 0.8) < 0.3 * g) & (net.normals[:, 0] < -0.2)
        albedo[rump] = (0.62, 0.56, 0.46)
        throat = (
            (x > 0.42 * b.trunk_m) & (net.normals[:, 0] > 0.55) & (z > h - 0.1 * g) & (z < skull[2] - 0.25 * b.head_m)
        )
        albedo[throat] = 0.5 * albedo[throat] + 0.5 * belly
    ridge = np.clip(net.normals[:, 2] - 0.55, 0.0, 1.0)[:, None] * 0.9
    albedo += ridge * (0.7 * coat - albedo) * (0.0 if b.pattern == "holstein" else 1.0)
    strands = 1.0 + 0.1 * rng.standard_normal(len(x)) + 0.1 * np.sin(95.0 * z + 40.0 * x + 9.0 * np.sin(22.0 * x))
    albedo = albedo * strands[:, None].astype(np.float32)
    for part, colour in (
        (HOOF, (0.02, 0.016, 0.014)),
        (HORN, (0.16, 0.11, 0.07)),
        (MUZZLE, (0.025, 0.02, 0.018)),
        (UDDER, (0.5, 0.3, 0.25)),
    ):
        albedo[net.part == part] = colour
    ears = net.part == EAR
    albedo[ears] = np.where(
        (net.normals[ears, 0] > 0.2)[:, None],
        0.6 * belly + 0.4 * dark,
        0.8 * (coat if b.pattern != "holstein" else dark),
    )
    nose = np.array([np.cos(b.head_pitch_rad), 0.0, -np.sin(b.head_pitch_rad)])
    for side in (1.0, -1.0):
        eye = skull + 0.12 * b.head_m * nose + np.array([0.0, side * 0.17 * b.head_m, 0.06 * b.head_m])
        albedo[np.linalg.norm(net.vertices_m - eye, axis=1) < 0.07 * b.head_m] = (0.008, 0.007, 0.006)
    return np.asarray(np.clip(albedo, 0.004, 0.85), np.float32)


def _patches(b: Beast, net: Net, white: Singles, black: Singles, skull: Floats) -> Singles:
    p = net.vertices_m / b.shoulder_m
    side = np.sign(p[:, 1])
    shift = 1.7 * b.phase * 10.0
    wave = np.sin(4.6 * p[:, 0] + 1.3 * side + shift) + np.sin(5.7 * p[:, 2] - 2.1 * p[:, 0] + 1.9 * side)
    wave += 0.5 * np.sin(11.0 * p[:, 0] + 7.0 * p[:, 2] + 2.0 * side) + 0.25 * np.sin(25.0 * p[:, 0] - 19.0 * p[:, 2])
    dark = (wave > 0.15) & (p[:, 2] > 0.42)
    head = np.linalg.norm(net.vertices_m - skull, axis=1) < 0.75 * b.head_m
    blaze = head & (np.abs(net.vertices_m[:, 1]) < 0.09 * b.head_m)
    return np.where((dark | head)[:, None] & ~blaze[:, None], black, white).astype(np.float32)
