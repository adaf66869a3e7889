# SPDX-License-Identifier: Apache-2.0
"""Signs and lights on a post, for rays and for cameras: plates with the sign's outline and face.

The face gives the height of a sign's lower edge; that of a light is at 2.1 m (assumed). Faces look along -x, towards
approaching traffic.
"""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np

from mt_nodes.base.arrays import Singles
from mt_nodes.world.scene.appearance import Paint, Surface, SurfaceColours
from mt_nodes.world.scene.faces import SIGNS, face_of
from mt_nodes.world.scene.figures import Figure
from mt_nodes.world.scene.furniture import RETRO_REFLECTIVE
from mt_nodes.world.scene.meshes import STEEL, Mesh, box, merged, prism, rod
from mt_nodes.world.scene.sight import RaycastBody
from mt_nodes.world.scene.signals import SIGNALS, faces_of

_LIGHT_LOW_M, _PLATE_X_M, _PLATE_M = 2.1, -0.05, 0.02
_HEAD_M, _HOUSING = 0.2, 0.1
_STEEL, _BLACK = (0.32, 0.33, 0.34), (0.015, 0.015, 0.015)


def sign_mesh(sign: str) -> Mesh:
    """Return a sign on its post."""
    shape = SIGNS[sign]
    middle = _middle_m(sign)
    # A prism is extruded along y: rotated so that its side looks along x.
    side = prism([(-right, up) for right, up in shape.outline], _PLATE_M, RETRO_REFLECTIVE)
    vertices = side.vertices_m[:, [1, 0, 2]] + (_PLATE_X_M, 0.0, middle)
    plate = Mesh(vertices, side.triangles[:, ::-1], side.reflectivity)
    return merged([rod((0.0, 0.0, 0.0), (0.0, 0.0, middle + 0.2), 0.038, STEEL), plate])


def _middle_m(sign: str) -> float:
    """Return the height of the origin of a sign's outline."""
    return SIGNS[sign].low_m - min(up for _, up in SIGNS[sign].outline)


def light_mesh(signal: str) -> Mesh:
    """Return a light on its post, with the shield behind its housing."""
    width, height = SIGNALS[signal].size_m
    middle, front = _LIGHT_LOW_M + height / 2.0, -0.06
    post = rod((0.0, 0.0, 0.0), (0.0, 0.0, middle + height / 2.0 + 0.1), 0.06, STEEL)
    head = box((_HEAD_M, width, height), (front - _HEAD_M / 2.0, 0.0, middle), _HOUSING)
    return merged([post, head, box((0.02, width + 0.2, height + 0.2), (-0.05, 0.0, middle), 0.05)])


@lru_cache
def sign_body(sign: str) -> RaycastBody:
    """Return a sign for ray casting, cached."""
    return RaycastBody(sign_mesh(sign))


@lru_cache
def light_body(signal: str) -> RaycastBody:
    """Return a light for ray casting, cached."""
    return RaycastBody(light_mesh(signal))


@lru_cache(maxsize=64)
def sign_figure(sign: str, value: int) -> Figure:
    """Return a sign for cameras; ``value`` is its number, if it has one; 0 for the usual one."""
    shape = SIGNS[sign]
    face = face_of(sign, value or shape.value)
    front = _PLATE_X_M - _PLATE_M / 4.0
    return Figure(sign_mesh(sign), _faced(front, _middle_m(sign), shape.size_m, face, None, _STEEL))


@lru_cache
def light_figure(signal: str) -> Figure:
    """Return a light for cameras."""
    albedo, glow = faces_of(signal)
    size = SIGNALS[signal].size_m
    front = -0.06 - _HEAD_M + 0.005
    return Figure(light_mesh(signal), _faced(front, _LIGHT_LOW_M + size[1] / 2.0, size, albedo, glow, _BLACK))


def _faced(
    front_m: float,
    middle_m: float,
    size_m: tuple[float, float],
    face: Singles,
    glow: Singles | None,
    rest: tuple[float, float, float],
) -> Paint:
    """Return a paint with a face on everything before x = ``front_m``, and steel on posts."""

    def paint(surface: Surface) -> SurfaceColours:
        x, y, z = surface.xyz_m.T
        albedo = np.empty((len(x), 3), np.float32)
        albedo[:] = rest
        albedo[np.abs(surface.reflectivity - STEEL) < 1e-4] = _STEEL
        on_face = x < front_m
        albedo[on_face] = _interpolated(face, y[on_face], z[on_face] - middle_m, size_m, surface.pixel_m)
        if glow is None:
            return SurfaceColours(albedo)
        shining = np.zeros_like(albedo)
        shining[on_face] = _interpolated(glow, y[on_face], z[on_face] - middle_m, size_m, surface.pixel_m)
        return SurfaceColours(albedo, shining)

    return paint


def _interpolated(
    face: Singles, left_m: Singles, up_m: Singles, size_m: tuple[float, float], pixel_m: float
) -> Singles:
    """Return the colours (n, 3) at places of a face, scaled to the picture's resolution first."""
    if not len(left_m):
        return np.zeros((0, 3), np.float32)
    width = int(np.clip(round(size_m[0] / pixel_m), 2, face.shape[1]))
    height = int(np.clip(round(size_m[1] / pixel_m), 2, face.shape[0]))
    small = cv2.resize(face, (width, height), interpolation=cv2.INTER_AREA)
    column = (0.5 - left_m / size_m[0]) * width - 0.5
    row = (0.5 - up_m / size_m[1]) * height - 0.5
    places = np.column_stack([column, row]).astype(np.float32)[:, None]
    # cv2.remap takes at most 32,767 rows.
    parts = [
        cv2.remap(small, places[i : i + 30_000], None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)[:, 0]
        for i in range(0, len(places), 30_000)
    ]
    return np.asarray(np.concatenate(parts), np.float32)
