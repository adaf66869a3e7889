# SPDX-License-Identifier: Apache-2.0
"""Rotation matrices, unit quaternions (x, y, z, w) and roll, pitch, yaw of single rotations; places in the plane.

``scipy.spatial.transform`` has them too, and gives the same bits. Its import takes 0.3 s of processor time, which every
process of a run would pay as it starts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats

_Numbers = npt.NDArray[np.floating[Any]]
#: Of a rectangle of one metre each way: left ahead, right ahead, right behind, left behind.
_CORNERS = np.array([(0.5, 0.5), (0.5, -0.5), (-0.5, -0.5), (-0.5, 0.5)])
#: Largest deviation of a matrix times its transpose from the unit matrix that needs no orthogonalisation.
_ORTHOGONAL = 1e-12


def rotation_matrix(quaternion_xyzw: Iterable[float]) -> Floats:
    """Return the (3, 3) matrix of a quaternion of any length but zero.

    Formula: Shuster, A Survey of Attitude Representations, J. Astronaut. Sci. 41, 1993, for turning points, not axes.
    Raises ValueError: the quaternion is zero, or does not have four numbers.
    """
    x, y, z, w = _unit(quaternion_xyzw)
    return np.array(
        [
            [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), -(x * x) + y * y - z * z + w * w, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), -(x * x) - y * y + z * z + w * w],
        ]
    )


def quaternion_of(rotation: Floats) -> tuple[float, float, float, float]:
    """Return the unit quaternion (x, y, z, w) of a (3, 3) matrix, of the nearest rotation.

    Divided is by the largest of the four components (Shepperd, J. Guid. Control 1, 1978).
    """
    if np.abs(rotation @ rotation.T - np.eye(3)).max() > _ORTHOGONAL:
        left, _, right = np.linalg.svd(rotation)
        rotation = left @ right
    m = rotation.tolist()
    trace = m[0][0] + m[1][1] + m[2][2]
    i = int(np.argmax([m[0][0], m[1][1], m[2][2], trace]))
    if i == 3:
        return _unit((m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1], 1 + trace))
    j, k = (i + 1) % 3, (i + 2) % 3
    axes = {i: 1 - trace + 2 * m[i][i], j: m[j][i] + m[i][j], k: m[k][i] + m[i][k]}
    return _unit((axes[0], axes[1], axes[2], m[k][j] - m[j][k]))


def quaternion_of_rpy(roll_rad: float, pitch_rad: float, yaw_rad: float) -> tuple[float, float, float, float]:
    """Return the unit quaternion (x, y, z, w) of turns about the fixed axes x, then y, then z (REP 103)."""
    (cr, sr), (cp, sp), (cy, sy) = ((math.cos(a / 2), math.sin(a / 2)) for a in (roll_rad, pitch_rad, yaw_rad))
    return (
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
        cr * cp * cy + sr * sp * sy,
    )


def quaternion_of_yaw(yaw_rad: float) -> tuple[float, float, float, float]:
    """Return (x, y, z, w) of a turn about z."""
    return 0.0, 0.0, math.sin(yaw_rad / 2), math.cos(yaw_rad / 2)


def rotation_vector(rotation: Floats) -> Floats:
    """Return axis times angle (3,) of a rotation (3, 3) of less than half a turn, from its quaternion."""
    x, y, z, w = quaternion_of(rotation)
    axis, sign = np.array([x, y, z]), (1.0 if w >= 0.0 else -1.0)
    sine = float(np.linalg.norm(axis))
    if sine < 1e-12:
        return 2.0 * sign * axis
    return np.asarray(axis * (sign * 2.0 * np.arctan2(sine, sign * w) / sine))


def rotation_by(vector: Floats) -> Floats:
    """Return the rotation (3, 3) by axis times angle (3,)."""
    angle = float(np.linalg.norm(vector))
    if angle < 1e-12:
        return rotation_matrix((*(0.5 * vector).tolist(), 1.0))
    return rotation_matrix((*(vector * (np.sin(angle / 2.0) / angle)).tolist(), float(np.cos(angle / 2.0))))


def _unit(quaternion: Iterable[float]) -> tuple[float, float, float, float]:
    x, y, z, w = map(float, quaternion)
    norm = math.sqrt(x * x + y * y + z * z + w * w)
    if not norm:
        raise ValueError("the quaternion is zero")
    return x / norm, y / norm, z / norm, w / norm


def seen_from(x_m: float, y_m: float, yaw_rad: float, places_m: Floats) -> Floats:
    """Return places (n, 2) in the frame of a pose: x ahead, y to the left."""
    c, s = np.cos(yaw_rad), np.sin(yaw_rad)
    x, y = places_m[:, 0] - x_m, places_m[:, 1] - y_m
    return np.column_stack([c * x + s * y, c * y - s * x])


def rectangle_corners(center_m: _Numbers, size_m: _Numbers, yaw_rad: _Numbers) -> Floats:
    """Return the corners (M, 4, 2) of rectangles, clockwise: centre (M, 2), length and width (M, 2), yaw (M,)."""
    own = _CORNERS * size_m[:, None, :]
    c, s = np.cos(yaw_rad)[:, None], np.sin(yaw_rad)[:, None]
    turned = np.stack([c * own[..., 0] - s * own[..., 1], s * own[..., 0] + c * own[..., 1]], axis=-1)
    return np.asarray(turned + center_m[:, None, :])
