# SPDX-License-Identifier: Apache-2.0
"""Motion of the ego from the clouds of one LiDAR."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.data.ego.ego_motion import TimedPose, motion_between
from mt_nodes.data.ego.keyframe import LostTrack
from mt_nodes.data.ego.lidar_odometry import LidarOdometry, in_base
from mt_nodes.data.transforms import EGO_FRAME, Matrix, TransformTree, UnknownTransform

if TYPE_CHECKING:
    from mt_nodes.data.messages import Cloud

#: A longer gap between two clouds is not registered.
GAP_S = 1.0
#: Faster than any car, and a change of speed between two clouds beyond a crash's (assumed): lost, not driven.
_FASTEST_MPS, _JUMP_MPS = 90.0, 8.0


class LidarTrack:
    """Poses and motion of ``base_link`` from the clouds of one topic, in the frame that it had at the first."""

    def __init__(self, cloud: Cloud, transforms: TransformTree) -> None:
        self.topic = cloud.topic
        try:
            self._mount: Matrix | None = transforms.lookup(EGO_FRAME, cloud.frame_id)
        except UnknownTransform:
            # Taken for the ego's own frame: what needs the mount itself refuses the bundle.
            self._mount = None
        self._odometry = LidarOdometry(self._mount)
        self._poses: dict[int, TimedPose] = {}
        self._motions: dict[int, tuple[Floats, float]] = {}
        self._last: TimedPose | None = None
        self._speed: Floats | None = None

    @property
    def source(self) -> str:
        """Name for people."""
        return f"KISS-ICP from {self.topic}"

    @property
    def latest(self) -> Matrix:
        """The pose (4, 4) at the last cloud that was registered."""
        return np.eye(4) if self._last is None else self._last.pose

    def register(self, cloud: Cloud, upcoming: Callable[[int], Cloud | None]) -> None:
        """Register the next cloud.

        ``upcoming``: returns the one after a stamp, None if there is none yet; asked at the first cloud only, whose
        velocity it tells.
        Raises LostTrack: it fits no earlier one.
        """
        first = self._last is None
        self._register(cloud)
        if first and (later := upcoming(cloud.stamp_ns)) is not None and later.topic == self.topic:
            self._register(later)
            self._motions[cloud.stamp_ns] = self._motions[later.stamp_ns]

    def pose(self, stamp_ns: int) -> Matrix | None:
        """Return the pose (4, 4) at one of the last two clouds."""
        row = self._poses.get(stamp_ns)
        return None if row is None else row.pose

    def motion(self, stamp_ns: int) -> tuple[Floats, float] | None:
        """Return velocity (3,) of ``base_link`` in its own axes and yaw rate, on the way to a registered cloud."""
        return self._motions.get(stamp_ns)

    def _register(self, cloud: Cloud) -> None:
        if cloud.stamp_ns in self._poses:
            return
        last = self._last
        gap_s = 0.0 if last is None else (cloud.stamp_ns - last.stamp_ns) * 1e-9
        if last is not None and not 0.0 < gap_s <= GAP_S:
            raise LostTrack(f"{cloud.topic}: {gap_s:.2f} s between two clouds, expected up to {GAP_S:g} s")
        now = TimedPose(cloud.stamp_ns, in_base(self._odometry.register(cloud, gap_s), self._mount))
        if last is not None:
            self._check(motion := motion_between(last, now, now.pose), cloud.topic)
            self._motions[now.stamp_ns] = motion
        self._poses = {row.stamp_ns: row for row in (last, now) if row is not None}
        self._motions = {stamp: row for stamp, row in self._motions.items() if stamp in self._poses}
        self._last = now

    def _check(self, motion: tuple[Floats, float], topic: str) -> None:
        velocity, former = motion[0], self._speed
        speed, jump = float(np.linalg.norm(velocity)), 0.0
        if former is not None:
            jump = float(np.linalg.norm(velocity - former))
        if speed > _FASTEST_MPS or jump > _JUMP_MPS:
            raise LostTrack(f"{topic}: its clouds show {speed:.0f} m/s, {jump:.0f} m/s more than before")
        self._speed = velocity
