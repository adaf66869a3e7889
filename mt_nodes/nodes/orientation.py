# SPDX-License-Identifier: Apache-2.0
"""Orientation in messages: the yaw that planar boxes and paths need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.data.rotations import quaternion_of_yaw


def yaws(quaternion_xyzw: Floats) -> Floats:
    """Return the yaw (M,) in radians of quaternions (M, 4) of any length.

    The direction of the turned x axis on the ground: atan2(2 (wz + xy), w² + x² - y² - z²). An all-zero one, as many
    tools leave it, is no turn; one that is not finite has none (NaN).
    """
    with np.errstate(invalid="ignore", over="ignore"):
        x, y, z, w = np.asarray(quaternion_xyzw, dtype=np.float64).reshape(-1, 4).T
        return np.asarray(np.arctan2(2 * (w * z + x * y), w * w + x * x - y * y - z * z))


def planar(poses: Sequence[Any]) -> Floats:
    """Return x, y and yaw (K, 3) of ``geometry_msgs/Pose`` messages."""
    turns = quaternions(pose.orientation for pose in poses)
    places = np.array([[place.x, place.y] for place in (pose.position for pose in poses)]).reshape(-1, 2)
    return np.column_stack([places, yaws(turns)])


def set_planar(pose: Any, x: float, y: float, yaw: float) -> None:
    """Write x, y and yaw into a ``geometry_msgs/Pose``, on the ground."""
    pose.position.x, pose.position.y = x, y
    turn = pose.orientation
    turn.x, turn.y, turn.z, turn.w = quaternion_of_yaw(yaw)


def points(places: Iterable[Any]) -> Floats:
    """Return (M, 3) of messages with x, y and z: ``Point``, ``Point32``, ``Vector3``."""
    return np.array([(place.x, place.y, place.z) for place in places], dtype=np.float64).reshape(-1, 3)


def quaternions(turns: Iterable[Any]) -> Floats:
    """Return (M, 4), x, y, z, w, of ``geometry_msgs/Quaternion`` messages."""
    return np.array([(turn.x, turn.y, turn.z, turn.w) for turn in turns], dtype=np.float64).reshape(-1, 4)


def turned(quaternion_xyzw: Floats, xyz: Floats) -> Floats:
    """Return vectors (M, 3) turned by quaternions (M, 4) of any length; one of zeros turns nothing.

    With q = (u, w): v + 2 (w u×v + u×(u×v)) / |q|².
    """
    axis, w = quaternion_xyzw[:, :3], quaternion_xyzw[:, 3:]
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is nobody's to judge
        squared = (quaternion_xyzw**2).sum(axis=1, keepdims=True)
        across = np.cross(axis, xyz)
        twice = np.divide(2.0, squared, out=np.zeros_like(squared), where=squared != 0.0)
        return np.asarray(xyz + twice * (w * across + np.cross(axis, across)))


def set_pose(pose: Any, center_m: Floats, yaw_rad: float) -> None:
    """Write a place (3,) and a yaw into a ``geometry_msgs/Pose``."""
    place, turn = pose.position, pose.orientation
    place.x, place.y, place.z = center_m.tolist()
    turn.x, turn.y, turn.z, turn.w = quaternion_of_yaw(float(yaw_rad))


def set_vector(vector: Any, xyz: Floats) -> None:
    """Write three numbers (3,) into something with x, y and z."""
    vector.x, vector.y, vector.z = xyz.tolist()
