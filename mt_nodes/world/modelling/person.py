# SPDX-License-Identifier: Apache-2.0
"""People: limbs, hands, clothes with folds, shoes; heads are in :mod:`.face`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.world.modelling.face import ends_of, head_shell, shine_of
from mt_nodes.world.modelling.fields import Net, SolidField
from mt_nodes.world.modelling.gait import Joints, beside, walking
from mt_nodes.world.modelling.shading import DetailedMesh, Shell, detailed
from mt_nodes.world.modelling.wardrobe import BAG, BARE, COLLAR, SHOE, SKIRT, TOP, TROUSERS, Dress

_STEP_M = 0.0125


def dressed(dress: Dress) -> DetailedMesh:
    """Return a walking person."""
    joints = walking(dress.stature_m, dress.phase, dress.vigour, dress.bend_rad, dress.girth)
    return detailed([*body_shells(dress, joints), head_shell(dress, joints)])


def body_shells(dress: Dress, joints: Joints) -> list[Shell]:
    """Return body and clothes below the neck."""
    everything = np.array([*joints.legs[0], *joints.legs[1], *joints.arms[0], *joints.arms[1], joints.neck])
    low, high = everything.min(axis=0) - 0.24, everything.max(axis=0) + 0.24
    low[2] = max(low[2], -0.05)
    low[0] -= 0.2 if dress.bag_kind == "backpack" else 0.0
    field = SolidField(*ends_of(low, high), _STEP_M)
    scale, wide = dress.stature_m / 1.75, dress.girth
    if dress.legs == "skirt" or dress.top_kind == "coat":
        _skirt(field, dress, joints, scale, wide)
    for leg in joints.legs:
        _leg(field, dress, leg, scale, wide)
    _trunk(field, dress, joints, scale, wide)
    for arm in joints.arms:
        _arm(field, dress, arm, scale, wide)
    if dress.stick:
        hand = joints.arms[1][3]
        foot = np.array([hand[0] + 0.1, hand[1] - 0.02, 0.01])
        field.round_cone(BAG, ends_of(beside(hand, 0, 0, 0.06), foot), (0.013, 0.011))
    if dress.bag_kind != "none":
        _bag(field, dress, joints, scale)
    field.displace(_folds(dress))
    net = field.net()
    return [Shell(net, _colours(dress, joints, net), np.zeros(len(net.vertices_m), np.float32), shine_of(net))]


def _leg(field: SolidField, dress: Dress, leg: tuple[Floats, ...], k: float, wide: float) -> None:
    hip, knee, ankle, toe = leg
    cloth = dress.legs == "trousers"
    loose = 0.012 if cloth else 0.0
    thigh = TROUSERS if dress.legs in ("trousers", "shorts") else BARE
    low = TROUSERS if cloth else BARE
    w = wide**0.5
    field.round_cone(
        thigh, ends_of(beside(hip, 0, 0, 0.02 * k), knee), ((0.076 * w + loose) * k, (0.056 * w + loose) * k), 0.02
    )
    if dress.legs == "shorts":
        field.round_cone(TROUSERS, ends_of(hip, hip + 0.8 * (knee - hip)), (0.095 * w * k, 0.085 * w * k), 0.01)
        field.round_cone(BARE, ends_of(hip + 0.7 * (knee - hip), knee), (0.066 * k, 0.053 * k), 0.0)
    calf = knee + 0.3 * (ankle - knee) - np.array([0.018, 0, 0]) * k
    field.round_cone(low, ends_of(knee, calf), ((0.054 + loose) * k, (0.053 + loose) * k), 0.03)
    field.round_cone(
        low, ends_of(calf, beside(ankle, 0, 0, 0.01)), ((0.053 + loose) * k, (0.036 + 1.6 * loose) * k), 0.03
    )
    along = toe - ankle
    along /= np.linalg.norm(along)
    heel = ankle - 0.035 * k * along - np.array([0, 0, 0.028 * k])
    ball = ankle + 0.13 * k * along - np.array([0, 0, 0.02 * k])
    ball[2] = min(ball[2], ankle[2] - 0.03 * k) if ankle[2] < 0.12 * k else ball[2]
    field.round_cone(SHOE, ends_of(heel, ball), (0.042 * k, 0.038 * k), 0.015, (1.0, 1.0, 0.8))
    field.round_cone(SHOE, ends_of(ankle, heel + 0.4 * (ball - heel)), (0.044 * k, 0.042 * k), 0.02)
    tip = ball + 0.055 * k * along * (1, 1, 0.4)
    field.round_cone(SHOE, ends_of(ball, tip), (0.038 * k, 0.03 * k), 0.02, (1.0, 1.05, 0.75))


def _trunk(field: SolidField, dress: Dress, joints: Joints, k: float, wide: float) -> None:
    pelvis, chest, neck = joints.pelvis, joints.chest, joints.neck
    cloth = {"shirt": 0.0, "hoodie": 0.014, "jacket": 0.016, "coat": 0.02}[dress.top_kind]
    lower = TROUSERS if dress.legs != "skirt" else SKIRT
    field.round_cone(
        lower,
        ends_of(pelvis - (0, 0, 0.03 * k), beside(pelvis, 0, 0, 0.06 * k)),
        (0.098 * k, 0.092 * k),
        0.05,
        (1.0, 1.42 * wide, 1.0),
    )
    field.ellipsoid(
        lower, tuple(beside(pelvis, -0.035 * k, 0, -0.05 * k)), (0.08 * k, 0.135 * k * wide, 0.085 * k), 0.05
    )
    waist = pelvis + 0.45 * (chest - pelvis)
    hem = pelvis - (0, 0, (0.01 if dress.top_kind == "shirt" else 0.07) * k)
    r = 0.098 * k * wide**0.5 + cloth
    ends, section = ends_of(hem - (0.015 + 0.09 * dress.bend_rad, 0, 0.1), waist), (1.0, 1.36 * wide, 1.0)
    field.round_cone(TOP, ends, (r + (0.03 + 0.9 * cloth) * k, r), 0.0, section, float(hem[2]))
    field.round_cone(TOP, ends_of(waist, chest), (r, 0.104 * k + cloth), 0.04, (1.0, 1.22 * wide, 1.0))
    top = chest + 0.5 * (neck - chest)
    field.round_cone(TOP, ends_of(chest, top), (0.104 * k + cloth, 0.075 * k + cloth), 0.06, (1.0, 1.27, 1.0))
    for arm in joints.arms:
        inner = neck + 0.22 * (arm[0] - neck) - (0.01 * k, 0, 0.03 * k)
        field.round_cone(TOP, ends_of(inner, arm[0] - (0, 0, 0.03 * k)), (0.05 * k + cloth, 0.045 * k + cloth), 0.05)
    field.round_cone(
        COLLAR if dress.top_kind != "shirt" else BARE,
        ends_of(neck - (0, 0, 0.02 * k), neck + 0.12 * (joints.head - neck)),
        ((0.055 if dress.top_kind == "shirt" else 0.066) * k, 0.056 * k if dress.top_kind == "shirt" else 0.062 * k),
        0.02,
    )
    if dress.top_kind == "hoodie":
        field.ellipsoid(TOP, tuple(beside(neck, -0.085 * k, 0, -0.01 * k)), (0.055 * k, 0.11 * k, 0.07 * k), 0.04)


def _arm(field: SolidField, dress: Dress, arm: tuple[Floats, ...], k: float, wide: float) -> None:
    shoulder, elbow, wrist, tip = arm
    loose = {"shirt": 0.006, "hoodie": 0.014, "jacket": 0.014, "coat": 0.017}[dress.top_kind]
    bare = dress.top_kind == "shirt"
    if bare:
        shoulder = shoulder - (0, 0, 0.025 * k)
        sleeve = shoulder + 0.62 * (elbow - shoulder)
        field.round_cone(BARE, ends_of(shoulder, elbow), (0.045 * k, 0.037 * k), 0.02)
        field.round_cone(TOP, ends_of(shoulder, sleeve), (0.058 * k, 0.056 * k), 0.03)
        field.round_cone(BARE, ends_of(elbow, wrist), (0.038 * k, 0.026 * k), 0.02)
    else:
        shoulder = shoulder - (0, 0, 0.025 * k)
        field.round_cone(TOP, ends_of(shoulder, elbow), ((0.045 + loose) * k, (0.039 + loose) * k), 0.03)
        field.round_cone(TOP, ends_of(elbow, wrist), ((0.039 + loose) * k, (0.028 + loose) * k), 0.02)
    palm = wrist + 0.5 * (tip - wrist)
    field.round_cone(BARE, ends_of(wrist, palm), (0.024 * k, 0.03 * k), 0.015, (1.15, 0.62, 1.0))
    field.round_cone(BARE, ends_of(palm, tip), (0.03 * k, 0.02 * k), 0.015, (1.1, 0.6, 1.0))
    thumb = palm + np.array([0.035, 0.0, 0.005]) * k
    field.round_cone(BARE, ends_of(beside(wrist, 0.012 * k, 0, -0.01 * k), thumb), (0.014 * k, 0.012 * k), 0.01)


def _skirt(field: SolidField, dress: Dress, joints: Joints, k: float, wide: float) -> None:
    part = SKIRT if dress.legs == "skirt" else TOP
    knees = (joints.legs[0][1] + joints.legs[1][1]) / 2.0
    spread = float(np.abs(joints.legs[0][1] - joints.legs[1][1])[0]) / 2.0
    share = 1.0 if part == SKIRT else 0.72
    end = joints.pelvis + share * (knees - joints.pelvis)
    r = 0.125 * k if part == SKIRT else 0.145 * k
    stretch = 1.0 + share * spread / r
    ends, section = ends_of(beside(joints.pelvis, 0, 0, 0.05 * k), end - (0, 0, r)), (stretch, 1.5 * wide, 1.0)
    field.round_cone(part, ends, (0.12 * k if part == SKIRT else 0.138 * k, r), 0.0, section, float(end[2]))


def _bag(field: SolidField, dress: Dress, joints: Joints, k: float) -> None:
    lean = dress.bend_rad
    if dress.bag_kind == "backpack":
        middle = joints.chest + np.array([-0.2, 0.0, 0.0]) * k
        field.block(BAG, tuple(middle), (0.085 * k, 0.14 * k, 0.2 * k), 0.05, 0.01, lean)
        field.block(
            BAG, tuple(beside(middle, -0.07 * k, 0, -0.07 * k)), (0.06 * k, 0.11 * k, 0.1 * k), 0.04, 0.01, lean
        )
        for side in (1.0, -1.0):
            y = side * 0.1 * k
            top = joints.chest + np.array([0.0, y, 0.22 * k])
            field.round_cone(
                BAG, ends_of(top, beside(joints.chest, 0.125 * k, y * 0.95, 0.05 * k)), (0.025, 0.022), 0.0
            )
    else:
        hip = joints.pelvis + np.array([0.0, -0.24, -0.02]) * k
        field.block(BAG, tuple(hip), (0.15 * k, 0.05 * k, 0.11 * k), 0.03, 0.0)
        field.round_cone(
            BAG,
            ends_of(beside(hip, 0, 0.02, 0.1 * k), beside(joints.arms[1][0], 0, 0.03, 0.05 * k)),
            (0.018, 0.018),
            0.0,
        )


def _folds(dress: Dress) -> Callable[[Singles, npt.NDArray[np.int16]], Singles]:
    """Return the relief of cloth: wrinkles across the limbs, deeper on loose clothes."""
    rng = np.random.default_rng(int(1e4 * dress.phase) + int(1e3 * dress.top[0]) + 7)
    waves = [(rng.normal(size=3) * (22.0, 22.0, 24.0), rng.uniform(0, 6.28), a) for a in (0.0026, 0.0024, 0.002)]
    waves += [(rng.normal(size=3) * (45.0, 45.0, 48.0), rng.uniform(0, 6.28), a) for a in (0.0014, 0.0012)]

    def shift(places: Singles, part: npt.NDArray[np.int16]) -> Singles:
        warp = 0.02 * np.sin(places @ np.array([21.0, 13.0, 17.0], np.float32))[:, None]
        bent = places + warp
        total = np.zeros(len(places), np.float32)
        for k, start, size in waves:
            wave = np.sin(bent @ k.astype(np.float32) + np.float32(start))
            total += np.float32(size) * (1.0 - 1.6 * np.abs(wave))
        depth = np.select([part == TOP, part == TROUSERS, part == SKIRT, part == BAG], [1.3, 1.1, 1.2, 0.4], 0.0)
        return np.asarray(total * depth, np.float32)

    return shift


def _colours(dress: Dress, joints: Joints, net: Net) -> Singles:
    table = {
        BARE: dress.skin,
        TOP: dress.top,
        TROUSERS: dress.trousers,
        SHOE: dress.shoes,
        BAG: dress.bag,
        COLLAR: dress.top,
        SKIRT: dress.trousers,
    }
    albedo = np.array([table.get(part, dress.top) for part in range(max(table) + 1)], np.float32)[net.part]
    x, y, z = (net.vertices_m[:, i] for i in range(3))
    rng = np.random.default_rng(5)
    cloth = (net.part == TOP) | (net.part == TROUSERS) | (net.part == SKIRT)
    soft = sum(np.sin(net.vertices_m @ (rng.normal(size=3) * 9.0) + rng.uniform(0, 6)) for _ in range(4))
    albedo *= np.where(cloth, 1.0 + 0.05 * soft + rng.normal(0, 0.05, len(z)), 1.0)[:, None].astype(np.float32)
    if dress.top_kind in ("jacket", "coat"):
        zip_line = (net.part == TOP) & (np.abs(y) < 0.012) & (x > joints.chest[0])
        albedo[zip_line] *= 0.35
    if dress.stripe is not None:
        at = joints.chest[2] + 0.03 - z
        band = (net.part == TOP) & (np.abs(at) < 0.055) & (np.abs(y) < 0.24 * dress.girth)
        albedo[band] = dress.stripe
    if dress.legs == "trousers" and dress.top_kind == "shirt":
        seam = (net.part == TROUSERS) & (z > joints.pelvis[2] - 0.03)
        albedo[seam] = (0.02, 0.015, 0.012)  # a belt
    for leg in joints.legs:
        sole = (net.part == SHOE) & (np.linalg.norm(net.vertices_m - leg[2], axis=1) < 0.3) & (net.normals[:, 2] < -0.4)
        albedo[sole] = (0.2, 0.2, 0.19)
    return albedo
