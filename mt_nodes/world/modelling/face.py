# SPDX-License-Identifier: Apache-2.0
"""Heads: skull, jaw, nose, ears, eyes and mouth of nobody in particular, and hair, helmets, caps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.world.modelling.fields import Distance, Net, SolidField, Vector
from mt_nodes.world.modelling.gait import Joints, beside
from mt_nodes.world.modelling.shading import Shell
from mt_nodes.world.modelling.wardrobe import BARE, HAIR, Dress
from mt_nodes.world.scene.meshes import SKIN

#: Returns a place of the head by its distance from the middle: ahead, left, up.
At = Callable[[float, float, float], Vector]

_STEP_M, _CLOTH = 0.0075, 0.35


def head_shell(dress: Dress, joints: Joints) -> Shell:
    """Return head, neck and hair."""
    c, k = joints.head, dress.stature_m / 1.75
    k = k**0.55  # heads of the short are relatively large
    field = SolidField(*ends_of(c - 0.26, beside(c, 0.2, 0.2, 0.2)), _STEP_M)

    def at(x: float, y: float, z: float) -> Vector:
        return float(c[0] + x * k), float(c[1] + y * k), float(c[2] + z * k)

    field.round_cone(BARE, ends_of(joints.neck - (0, 0, 0.05), beside(c, -0.02, 0, -0.05)), (0.056 * k, 0.052 * k), 0.0)
    field.ellipsoid(BARE, at(-0.012, 0, 0.03), (0.096 * k, 0.076 * k, 0.092 * k), 0.02)
    field.round_cone(BARE, (at(0.03, 0, -0.02), at(0.05, 0, -0.075)), (0.062 * k, 0.036 * k), 0.04, (1.0, 1.0, 1.0))
    field.ellipsoid(BARE, at(0.068, 0, -0.093), (0.02 * k, 0.022 * k, 0.016 * k), 0.02)
    field.round_cone(BARE, (at(0.086, 0, 0.006), at(0.108, 0, -0.03)), (0.008 * k, 0.013 * k), 0.012)
    field.ellipsoid(BARE, at(0.085, 0, -0.06), (0.012 * k, 0.024 * k, 0.009 * k), 0.01)
    for side in (1.0, -1.0):
        field.ellipsoid(BARE, at(-0.008, side * 0.08, -0.008), (0.018 * k, 0.01 * k, 0.03 * k), 0.006)
        eye = np.array(at(0.092, side * 0.032, 0.008), np.float32)
        field.carve(_socket(eye), eye - 0.03, eye + 0.03)
    _hair(field, dress, at, k)
    rng = np.random.default_rng(3)
    if dress.hair_kind not in ("cap", "helmet"):
        field.displace(_strands)
    net = field.net()
    return Shell(net, _face_colours(dress, net, c, k, rng), np.zeros(len(net.vertices_m), np.float32), shine_of(net))


def _socket(eye: Singles) -> Distance:
    return lambda p: np.asarray(np.linalg.norm((p - eye) / (1.0, 1.4, 0.9), axis=-1) - 0.014)


def _strands(places: Singles, part: npt.NDArray[np.int16]) -> Singles:
    waves = 0.004 * np.sin(places @ np.array([60, 190, 40], np.float32))
    waves += 0.003 * np.sin(places @ np.array([120, 70, -90], np.float32))
    return np.where(part == HAIR, waves, 0.0).astype(np.float32)


def _hair(field: SolidField, dress: Dress, at: At, k: float) -> None:
    kind = dress.hair_kind
    if kind == "bald":
        return
    if kind == "helmet":
        field.ellipsoid(HAIR, at(-0.015, 0, 0.06), (0.128 * k, 0.1 * k, 0.085 * k), 0.0)
        return
    if kind == "cap":
        field.ellipsoid(HAIR, at(-0.012, 0, 0.055), (0.106 * k, 0.088 * k, 0.078 * k), 0.0)
        field.block(HAIR, at(0.115, 0, 0.05), (0.055 * k, 0.07 * k, 0.009 * k), 0.008, 0.008, 0.2)
        return
    field.ellipsoid(HAIR, at(-0.024, 0, 0.052), (0.1 * k, 0.087 * k, 0.088 * k), 0.0)
    field.ellipsoid(HAIR, at(-0.05, 0, 0.0), (0.07 * k, 0.082 * k, 0.085 * k), 0.02)
    if kind == "long":
        field.round_cone(HAIR, (at(-0.055, 0, 0.0), at(-0.075, 0, -0.19)), (0.08 * k, 0.05 * k), 0.03, (0.8, 1.15, 1.0))
        for side in (1.0, -1.0):
            field.round_cone(
                HAIR, (at(0.0, side * 0.075, 0.03), at(-0.02, side * 0.078, -0.12)), (0.026 * k, 0.02 * k), 0.02
            )
    if kind == "bun":
        field.ellipsoid(HAIR, at(-0.125, 0, 0.06), (0.045 * k, 0.045 * k, 0.045 * k), 0.01)


def _face_colours(dress: Dress, net: Net, c: Floats, k: float, rng: np.random.Generator) -> Singles:
    hair = dress.bag if dress.hair_kind in ("cap", "helmet") else dress.hair
    albedo = np.where((net.part == HAIR)[:, None], hair, dress.skin).astype(np.float32)
    x, y, z = ((net.vertices_m[:, i] - c[i]) / k for i in range(3))
    bare = (net.part == BARE) & (x > 0.03)
    eyes = bare & (np.abs(np.abs(y) - 0.032) < 0.014) & (np.abs(z - 0.006) < 0.007)
    brows = bare & (np.abs(np.abs(y) - 0.033) < 0.02) & (np.abs(z - 0.026) < 0.006)
    mouth = bare & (np.abs(y) < 0.024) & (np.abs(z + 0.062) < 0.007) & (x > 0.05)
    albedo[brows] = 0.4 * np.array(dress.skin) + 0.6 * np.array(dress.hair)
    albedo[eyes] = (0.05, 0.04, 0.035)
    albedo[mouth] *= np.array((0.78, 0.5, 0.5), np.float32)
    cheeks = bare & (np.abs(np.abs(y) - 0.04) < 0.02) & (np.abs(z + 0.02) < 0.02)
    albedo[cheeks] *= np.array((1.05, 0.93, 0.92), np.float32)
    albedo *= (1.0 + rng.normal(0, 0.03, len(z)))[:, None].astype(np.float32)
    strands = (net.part == HAIR) & (dress.hair_kind not in ("cap", "helmet"))
    albedo[strands] *= (1.0 + 0.35 * np.sin(170.0 * y[strands] + 30.0 * x[strands]))[:, None]
    return albedo


def shine_of(net: Net) -> Singles:
    """Return the LiDAR's reflectivity (V,) of skin, and of all else."""
    return np.where(net.part == BARE, SKIN, _CLOTH).astype(np.float32)


def ends_of(a: Floats, b: Floats) -> tuple[Vector, Vector]:
    """Return two places as tuples."""
    (ax, ay, az), (bx, by, bz) = np.asarray(a).tolist(), np.asarray(b).tolist()
    return (ax, ay, az), (bx, by, bz)
