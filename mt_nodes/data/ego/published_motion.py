# SPDX-License-Identifier: Apache-2.0
"""Motion of the ego as other nodes publish it: transforms, odometry, turn rates of an IMU."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import MtError
from mt_nodes.data.cdr import codec
from mt_nodes.data.ego.ego_motion import ODOMETRY, TF, TimedPose, between, motion_between, moved_m, turned_rad
from mt_nodes.data.transforms import (
    EGO_FRAME,
    MAP_FRAME,
    Matrix,
    Transform,
    TransformTree,
    UnknownTransform,
    pose_matrix,
)

if TYPE_CHECKING:
    from mt_nodes.data.messages import Wire


#: Seconds for which poses are stored; tf2's default.
HISTORY_S = 10.0
#: Poses that far from an instant still tell it, at constant velocity (assumed: half a second of braking at 8 m/s² moves
#: the ego by 4 cm in 0.1 s).
REACH_S = 0.1
#: A gap between two poses beyond which nothing is interpolated.
GAP_S = 1.0
#: Seconds before and after an instant over which velocity is measured.
_WINDOW_S = 0.1
#: A vehicle that has moved or turned so far does not stand.
MOVED_M, TURNED_RAD, DRIVES_MPS = 0.1, 0.02, 0.5


@dataclass(eq=False)
class PoseHistory:
    """Timed poses of ``base_link`` in one fixed frame, in the order of their stamps.

    ``source``: where they come from, for people.
    """

    source: str
    _rows: list[TimedPose] = field(default_factory=list)
    moves: bool = False

    def add(self, row: TimedPose) -> None:
        """Add a pose; one with the stamp of another replaces it."""
        at = bisect_right(self._rows, row.stamp_ns, key=_stamp)
        if at and self._rows[at - 1].stamp_ns == row.stamp_ns:
            self._rows[at - 1] = row
        else:
            self._rows.insert(at, row)
        oldest_ns = self._rows[-1].stamp_ns - int(HISTORY_S * 1e9)
        while self._rows[0].stamp_ns < oldest_ns:
            self._rows.pop(0)
        first, last = self._rows[0].pose, self._rows[-1].pose
        drives = row.twist is not None and float(np.linalg.norm(row.twist[0])) > DRIVES_MPS
        self.moves = self.moves or drives or moved_m(first, last) > MOVED_M or turned_rad(first, last) > TURNED_RAD

    def at(self, stamp_ns: int) -> Matrix | None:
        """Return the pose (4, 4) at an instant; None where no pose is near enough."""
        rows = self._rows
        after = bisect_right(rows, stamp_ns, key=_stamp)
        if after and rows[after - 1].stamp_ns == stamp_ns:
            return rows[after - 1].pose
        reach_ns = int(REACH_S * 1e9)
        if 0 < after < len(rows):
            a, b = rows[after - 1], rows[after]
            return between(a, b, stamp_ns) if b.stamp_ns - a.stamp_ns <= int(GAP_S * 1e9) else None
        if not rows or min(abs(row.stamp_ns - stamp_ns) for row in (rows[0], rows[-1])) > reach_ns:
            return None
        if len(rows) == 1:
            return None
        a, b = (rows[0], rows[1]) if after == 0 else (rows[-2], rows[-1])
        return between(a, b, stamp_ns)

    def motion(self, stamp_ns: int, axes: Matrix) -> tuple[Floats, float] | None:
        """Return velocity (3,) along the axes of a pose and yaw rate at an instant; None where they are unknown."""
        window_ns = int(_WINDOW_S * 1e9)
        near = [row for row in self._rows if abs(row.stamp_ns - stamp_ns) <= window_ns]
        if len(near) < 2:
            near = sorted(sorted(self._rows, key=lambda row: abs(row.stamp_ns - stamp_ns))[:2], key=_stamp)
        if len(near) < 2 or near[-1].stamp_ns - near[0].stamp_ns > int(GAP_S * 1e9):
            return near[0].twist if near else None
        return motion_between(near[0], near[-1], axes)


def _stamp(row: TimedPose) -> int:
    return row.stamp_ns


ODOMETRY_TYPE, IMU_TYPE = "nav_msgs/msg/Odometry", "sensor_msgs/msg/Imu"
TYPES = (ODOMETRY_TYPE, IMU_TYPE)
#: Fixed frames by name, the smooth one first (REP 105); others count where the tree of frames begins with them.
_FIXED_FRAMES = ("odom", MAP_FRAME)
#: Turn rates of an IMU are averaged over so many seconds before and after a stamp: engines and roads shake it.
_RATE_WINDOW_S = 0.05
_MOST_RATES = 4096


@dataclass(frozen=True, eq=False)
class PoseSource:
    """A published source of poses: ``tf`` or ``odometry``, and its poses of ``base_link``."""

    origin: str
    history: PoseHistory

    def is_above(self, other: PoseSource) -> bool:
        """Whether it is trusted more than another one."""
        return self.origin == TF and other.origin != TF


class PublishedMotion:
    """Collects transforms, odometry and turn rates."""

    def __init__(self) -> None:
        self._tf: dict[str, PoseHistory] = {}
        self._odometry: dict[str, PoseHistory] = {}
        self._rates: dict[str, deque[tuple[int, float]]] = {}

    @property
    def sources(self) -> tuple[PoseSource, ...]:
        """The sources of poses, the most trusted first."""
        odometry = (self._odometry[topic] for topic in sorted(self._odometry))
        return (
            *(PoseSource(TF, history) for history in self._tf.values()),
            *(PoseSource(ODOMETRY, history) for history in odometry),
        )

    def take(self, messages: Iterable[Wire | list[Transform]], tree: TransformTree) -> None:
        """Take messages; ``tree`` holds the transforms of now, which also count as published."""
        moving: list[Transform] = []
        for message in messages:
            if isinstance(message, list):
                moving += message
            else:
                # Like any topic that a stack does not take: what cannot be read tells nothing.
                with suppress(MtError):
                    self._take_message(message, tree)
        self._take_transforms(moving, tree)

    def yaw_rate(self, stamp_ns: int) -> tuple[float, str] | None:
        """Return the turn rate about the ego's z axis in rad/s by an IMU, and its topic; None without one."""
        for topic, rates in sorted(self._rates.items()):
            near = [rate for at_ns, rate in rates if abs(at_ns - stamp_ns) <= _RATE_WINDOW_S * 1e9]
            if near:
                return float(np.mean(near)), topic
        return None

    def _take_transforms(self, moving: list[Transform], tree: TransformTree) -> None:
        """Add the poses of the transform that moves ``base_link`` against a fixed frame, if there is one."""
        chain = tree.chain(EGO_FRAME)
        edge = next((each for each in chain if not each.static), None)
        if edge is None:
            return
        above = [each.parent for each in chain[chain.index(edge) :]]
        fixed = next((name for name in _FIXED_FRAMES if name in above), above[-1])
        before, after = tree.lookup(fixed, edge.parent), tree.lookup(edge.child, EGO_FRAME)
        history = self._tf.setdefault(fixed, PoseHistory(f"/tf {fixed} → {EGO_FRAME}"))
        for each in (*moving, edge):
            if (each.parent, each.child) == (edge.parent, edge.child):
                history.add(TimedPose(each.stamp_ns, before @ each.matrix @ after))

    def _take_message(self, wire: Wire, tree: TransformTree) -> None:
        message = codec.decode(wire.type, wire.cdr)
        stamp_ns = codec.stamp_ns_of(message.header)
        if wire.type == IMU_TYPE:
            self._take_rate(wire.topic, stamp_ns, message, tree)
            return
        position, turn = message.pose.pose.position, message.pose.pose.orientation
        try:
            pose = pose_matrix((position.x, position.y, position.z), (turn.x, turn.y, turn.z, turn.w))
        except ValueError:
            return
        child = message.child_frame_id.lstrip("/")
        # An odometry that does not name its vehicle's frame, or one that no transform knows, is taken for the ego's.
        with suppress(UnknownTransform):
            pose = pose @ tree.lookup(child or EGO_FRAME, EGO_FRAME)
        twist = _twist(message) if child in ("", EGO_FRAME) else None
        history = self._odometry.setdefault(wire.topic, PoseHistory(f"odometry {wire.topic}"))
        history.add(TimedPose(stamp_ns, pose, twist))

    def _take_rate(self, topic: str, stamp_ns: int, message: Any, tree: TransformTree) -> None:
        rate = message.angular_velocity
        # REP 145: a rate that is not measured has −1 as the first number of its covariance.
        if message.angular_velocity_covariance[0] == -1.0:
            return
        try:
            axes = tree.lookup(EGO_FRAME, message.header.frame_id)[:3, :3]
        except UnknownTransform:
            return
        about_z = float(axes[2] @ np.array([rate.x, rate.y, rate.z]))
        if np.isfinite(about_z):
            self._rates.setdefault(topic, deque(maxlen=_MOST_RATES)).append((stamp_ns, about_z))


def _twist(odometry: Any) -> tuple[Floats, float] | None:
    """Return velocity (3,) and yaw rate of an odometry, in the axes of its vehicle; None where they are not finite."""
    linear, angular = odometry.twist.twist.linear, odometry.twist.twist.angular
    velocity = np.array([linear.x, linear.y, linear.z])
    return (velocity, float(angular.z)) if np.isfinite([*velocity, angular.z]).all() else None
