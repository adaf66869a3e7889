# SPDX-License-Identifier: Apache-2.0
"""Pose and velocity of the ego vehicle at one instant, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.data.rotations import quaternion_of, rotation_matrix, rotation_vector
from mt_nodes.data.transforms import Matrix, inverse, pose_between

#: Sources of ego motion, the most trusted first.
TF, ODOMETRY, IMU, KISS_ICP = "tf", "odometry", "imu", "kiss_icp"
#: Poses are rounded to so many decimals (metres, quaternion): sums over threads differ in the last bits.
DECIMALS = 7


@dataclass(frozen=True, eq=False)
class EgoMotion:
    """Motion of ``base_link`` at the stamp of a bundle.

    Attributes:
        pose: (4, 4) ``base_link`` to the world, the frame of ``base_link`` at bundle ``since``; None where only a turn
            rate is known (IMU).
        velocity_mps: (3,) of ``base_link`` over ground, along its own axes; None where unknown, as in a first bundle.
        yaw_rate_radps: about z of ``base_link``, positive to the left; None where unknown.
        origin: ``tf``, ``odometry``, ``imu`` or ``kiss_icp``.
        source: the same for people, with topics: "KISS-ICP from /sensing/lidar/points".
        since: number of the bundle with which this world frame began: poses of different ones cannot be compared.
        travelled_m: (3,) velocity integrated since then, always along the axes of ``base_link``: on a straight way the
            position, on a bend the way along it.
    """

    pose: Matrix | None
    velocity_mps: Floats | None
    yaw_rate_radps: float | None
    origin: str
    source: str
    since: int = 0
    travelled_m: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @property
    def speed_mps(self) -> float | None:
        """Forward speed, negative in reverse; None where unknown."""
        return None if self.velocity_mps is None else float(self.velocity_mps[0])


class MotionEstimator(Protocol):
    """What estimates the ego's motion over an episode (:class:`mt_nodes.data.ego.ego_track.EgoTrack`).

    ``reason``: why the latest bundle has no pose; empty if it has one.
    """

    reason: str

    def at(self, bundle: Any) -> EgoMotion | None:
        """Return the motion at a bundle; None if there is no source of it."""

    def knows(self, bundle: Any) -> bool:
        """Whether the motion at a bundle is estimated already."""

    def coming(self, bundle: Any) -> tuple[Any, ...]:
        """Return some of the bundles after one, as far as they can be known."""


@dataclass(frozen=True, eq=False)
class TimedPose:
    """Pose (4, 4) of ``base_link`` in a fixed frame at a stamp.

    ``twist``: velocity (3,) in its own axes and yaw rate, None where they were not published with it.
    """

    stamp_ns: int
    pose: Matrix
    twist: tuple[Floats, float] | None = None


def rounded_pose(pose: Matrix) -> Matrix:
    """Return the rigid transform nearest to a pose, with rounded translation and quaternion.

    Registrations on several threads add in any order, so their results differ by 1e-15: rounded, equal runs have equal
    poses.
    """
    result = np.eye(4)
    quaternion = np.round(quaternion_of(pose[:3, :3]), DECIMALS)
    result[:3, :3] = rotation_matrix((quaternion + 0.0).tolist())
    result[:3, 3] = np.round(pose[:3, 3], DECIMALS) + 0.0
    return result


def between(a: TimedPose, b: TimedPose, stamp_ns: int) -> Matrix:
    """Return the pose at a stamp on the way from one pose to another, also before and after the two."""
    return pose_between(a.pose, b.pose, (stamp_ns - a.stamp_ns) / (b.stamp_ns - a.stamp_ns))


def motion_between(a: TimedPose, b: TimedPose, axes: Matrix) -> tuple[Floats, float]:
    """Return velocity (3,) along the axes of a pose (4, 4), and yaw rate, on the way from one pose to another."""
    seconds = (b.stamp_ns - a.stamp_ns) * 1e-9
    velocity = axes[:3, :3].T @ (b.pose[:3, 3] - a.pose[:3, 3]) / seconds
    turn = rotation_vector(a.pose[:3, :3].T @ b.pose[:3, :3])
    return velocity, float(turn[2]) / seconds


def moved_m(a: Matrix, b: Matrix) -> float:
    """Return the distance between the origins of two poses."""
    return float(np.linalg.norm(b[:3, 3] - a[:3, 3]))


def turned_rad(a: Matrix, b: Matrix) -> float:
    """Return the angle between two poses."""
    return float(np.linalg.norm(rotation_vector(a[:3, :3].T @ b[:3, :3])))


def relative(a: Matrix, b: Matrix) -> Matrix:
    """Return pose ``b`` (4, 4) as seen from pose ``a``."""
    return inverse(a) @ b
