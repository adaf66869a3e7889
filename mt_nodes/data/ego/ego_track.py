# SPDX-License-Identifier: Apache-2.0
"""The ego's motion over an episode: chooses the source, and gives the motion at each bundle.

In order of trust: transforms to a fixed frame (``odom`` before ``map``, which may jump: REP 105),
``nav_msgs/Odometry``, the turn rate of an IMU, and the LiDAR's own clouds by KISS-ICP. An IMU alone gives no position:
integrating accelerations twice is metres off within seconds.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mt_nodes.data.ego import lidar_odometry, published_motion
from mt_nodes.data.ego.ego_motion import DECIMALS, IMU, KISS_ICP, EgoMotion, moved_m, rounded_pose
from mt_nodes.data.ego.keyframe import LostTrack
from mt_nodes.data.ego.lidar_track import LidarTrack
from mt_nodes.data.ego.published_motion import HISTORY_S, PoseSource, PublishedMotion
from mt_nodes.data.rotations import rotation_by, rotation_vector
from mt_nodes.data.transforms import Matrix, Transform, inverse

if TYPE_CHECKING:
    from mt_nodes.data.messages import Bundle, Cloud, Wire

#: So far must the LiDAR move before a published pose that stands still is held to be wrong.
_CONTRADICTED_M = 0.5
#: Messages that wait for somebody to ask, and motions that are stored: of a run without end, the latest.
_MOST_MESSAGES, _MOST_MOTIONS = 8_192, 20_000
#: What to provide where there is no source.
PROVIDE = "provide /tf from base_link to odom or map, nav_msgs/Odometry, or clouds of a LiDAR"
_INSTALL = f"{lidar_odometry.PACKAGE} is not installed: pip install 'mt_nodes[motion]'"


class EgoTrack:
    """Motion of the ego over one episode, estimated bundle by bundle, once for all who ask.

    Nothing is estimated before somebody asks; from then on each bundle must be shown in order (:meth:`observe`). Equal
    bundles give equal motions. It may be used from several threads.

    Attributes:
        reason: why the latest bundle has no pose; empty if it has one.
        upcoming: returns the cloud of the leading LiDAR after a stamp, None if there is none: for the speed in a first
            bundle.
        look_ahead: returns some of the bundles after one, of a recording.
    """

    def __init__(self) -> None:
        self.reason = ""
        self.upcoming: Callable[[int], Cloud | None] = lambda stamp_ns: None
        self.look_ahead: Callable[[Bundle], tuple[Bundle, ...]] = lambda bundle: ()
        #: With the arrival in s (monotonic) of live ones, infinity for recorded ones.
        self._pending: deque[tuple[float, Wire | list[Transform]]] = deque(maxlen=_MOST_MESSAGES)
        self._arrival = threading.Lock()
        self._published = PublishedMotion()
        self._lock = threading.RLock()
        self._active = self._looks_ahead = False
        self._known: dict[int, tuple[EgoMotion | None, str]] = {}
        self._episode: int | None = None
        self._begin(0)

    def __reduce__(self) -> tuple[Any, ...]:
        # A bundle that goes to another process takes its motion along, not what estimates it.
        return EgoTrack, ()

    @property
    def looks_ahead(self) -> bool:
        """Whether bundles to come can be known."""
        return self._looks_ahead

    def set_look_ahead(self, look_ahead: Callable[[Bundle], tuple[Bundle, ...]]) -> None:
        """Let it be asked for bundles to come."""
        self.look_ahead, self._looks_ahead = look_ahead, True

    def take(self, wire: Wire) -> None:
        """Take a message if it is of odometry or an IMU; it is decoded when it is needed."""
        if wire.type in published_motion.TYPES:
            self._await(wire, wire.came_s)

    def add_transforms(self, transforms: list[Transform], came_s: float | None = None) -> None:
        """Take moving transforms; ``came_s`` as of :class:`~mt_nodes.data.messages.Wire`."""
        self._await(transforms, came_s)

    def observe(self, bundle: Bundle) -> None:
        """Show the next bundle; it costs nothing unless motion is in use."""
        if self._active:
            self.at(bundle)

    def knows(self, bundle: Bundle) -> bool:
        """Whether the motion at a bundle is estimated already."""
        return bundle.episode == self._episode and bundle.index in self._known

    def coming(self, bundle: Bundle) -> tuple[Bundle, ...]:
        """Return some of the bundles after one with their motion, as far as they can be known."""
        return tuple(replace(ahead, motion=self.at(ahead)) for ahead in self.look_ahead(bundle))

    def at(self, bundle: Bundle) -> EgoMotion | None:
        """Return the motion at a bundle; None if there is no source (see :attr:`reason`)."""
        with self._lock:
            self._active = True
            if bundle.episode != self._episode:
                self._restart(bundle)
            if bundle.index not in self._known:
                if self._known and bundle.index < min(self._known):  # from the beginning again
                    self._restart(bundle)
                self._known[bundle.index] = self._estimate(bundle)
                if len(self._known) > _MOST_MOTIONS:
                    self._known.pop(next(iter(self._known)))
            motion, self.reason = self._known[bundle.index]
            return motion

    def _await(self, message: Wire | list[Transform], came_s: float | None) -> None:
        """Keep a message until somebody asks; of live ones only as many as poses are stored of anyway."""
        with self._arrival:
            self._pending.append((math.inf if came_s is None else came_s, message))
            while came_s is not None and self._pending[0][0] < came_s - HISTORY_S:
                self._pending.popleft()

    def _awaited(self) -> list[Wire | list[Transform]]:
        with self._arrival:
            messages = [message for _, message in self._pending]
            self._pending.clear()
        return messages

    def _restart(self, bundle: Bundle) -> None:
        self._known.clear()
        self._episode = bundle.episode
        self._begin(bundle.index)

    def _begin(self, index: int) -> None:
        """Begin a world frame."""
        self._since = index
        self._chosen: PoseSource | None = None
        self._lidar_only = False
        self._to_world, self._way = np.eye(4), np.zeros(3)
        self._lidar: LidarTrack | None = None
        #: Stamp and pose of the bundle before.
        self._before: tuple[int, Matrix] | None = None

    def _estimate(self, bundle: Bundle) -> tuple[EgoMotion | None, str]:
        """Return the motion at the next bundle, and why it has no pose."""
        self._published.take(self._awaited(), bundle.transforms)
        reason = self._choose(bundle)
        motion = self._of_lidar(bundle) if self._chosen is None else self._of_published(self._chosen, bundle)
        if motion is None and self._chosen is not None:
            reason = f"{self._chosen.history.source} has no pose within 0.1 s of the bundle"
        if motion is not None and (pose := motion.pose) is not None:
            motion = replace(motion, travelled_m=self._travelled(pose))
            self._before = bundle.stamp_ns, pose
        motion = self._with_rate(motion, bundle.stamp_ns)
        return motion, "" if motion is not None and motion.pose is not None else f"{reason}; {PROVIDE}"

    def _travelled(self, pose: Matrix) -> tuple[float, float, float]:
        """Add the step to a pose (4, 4) to the way so far: along the axes in the middle of the step."""
        if self._before is not None:
            step = self._before[1][:3, :3].T @ (pose[:3, 3] - self._before[1][:3, 3])
            half = rotation_by(0.5 * rotation_vector(self._before[1][:3, :3].T @ pose[:3, :3]))
            self._way = np.round(self._way + half.T @ step, DECIMALS)
        x, y, z = self._way.tolist()
        return x, y, z

    def _choose(self, bundle: Bundle) -> str:
        """Choose a published source if one is to be trusted, else register the cloud; return what is wrong with it."""
        stamp_ns = bundle.stamp_ns
        sources = [s for s in self._published.sources if s.history.at(stamp_ns) is not None and not self._lidar_only]
        moving = next((source for source in sources if source.history.moves), None)
        chosen = self._chosen
        if moving is not None and (chosen is None or not chosen.history.moves or moving.is_above(chosen)):
            self._trust(moving, stamp_ns, bundle.index)
        if self._chosen is not None:
            return ""
        reason = self._register(bundle)
        if reason and sources:  # nothing contradicts it: the ego stands
            self._trust(sources[0], stamp_ns, bundle.index)
        if self._lidar is not None and not reason and moved_m(np.eye(4), self._lidar.latest) > _CONTRADICTED_M:
            self._lidar_only = True
        return reason

    def _trust(self, source: PoseSource, stamp_ns: int, index: int) -> None:
        """Go on with a published source, in the world frame so far."""
        self._chosen, self._lidar = source, None
        before = None if self._before is None else source.history.at(self._before[0])
        if self._before is not None and before is not None:
            self._to_world = self._before[1] @ inverse(before)
        else:
            now = source.history.at(stamp_ns)
            assert now is not None, "only what has a pose now is chosen"
            self._begin_world(now, index)

    def _begin_world(self, pose: Matrix, index: int) -> None:
        """Begin the world frame at a pose (4, 4) of a published source."""
        self._to_world, self._since, self._before, self._way = inverse(pose), index, None, np.zeros(3)

    def _register(self, bundle: Bundle) -> str:
        """Register the cloud of a bundle; return why that cannot be, empty if it is done."""
        clouds = {cloud.topic: cloud for cloud in bundle.known_clouds}
        if not clouds:
            return "no odometry, and the bundle has no cloud to estimate the ego's motion from"
        if not lidar_odometry.installed():
            return f"no odometry, and {_INSTALL}"
        if self._lidar is not None and self._lidar.topic not in clouds:
            return f"the bundle has no cloud on {self._lidar.topic}, from which the ego's motion is estimated"
        try:
            self._lidar = self._lidar or LidarTrack(next(iter(clouds.values())), bundle.transforms)
            self._lidar.register(clouds[self._lidar.topic], self.upcoming)
        except LostTrack as lost:
            return self._begin_again(bundle, str(lost))
        return ""

    def _begin_again(self, bundle: Bundle, why: str) -> str:
        """Begin another world frame with a bundle that does not fit those before."""
        self._begin(bundle.index)
        cloud = bundle.known_clouds[0]
        self._lidar = LidarTrack(cloud, bundle.transforms)
        try:
            self._lidar.register(cloud, self.upcoming)
        except LostTrack:
            self._lidar = None
            return why
        return ""

    def _of_published(self, source: PoseSource, bundle: Bundle) -> EgoMotion | None:
        pose = source.history.at(bundle.stamp_ns)
        if pose is None:
            return None
        velocity, rate = source.history.motion(bundle.stamp_ns, pose) or (None, None)
        placed = rounded_pose(self._to_world @ pose)
        return EgoMotion(placed, velocity, rate, source.origin, source.history.source, self._since)

    def _of_lidar(self, bundle: Bundle) -> EgoMotion | None:
        lidar = self._lidar
        cloud = None if lidar is None else next((c for c in bundle.known_clouds if c.topic == lidar.topic), None)
        if lidar is None or cloud is None or (pose := lidar.pose(cloud.stamp_ns)) is None:
            return None
        velocity, rate = lidar.motion(cloud.stamp_ns) or (None, None)
        return EgoMotion(rounded_pose(pose), velocity, rate, KISS_ICP, lidar.source, self._since)

    def _with_rate(self, motion: EgoMotion | None, stamp_ns: int) -> EgoMotion | None:
        """Return a motion with the turn rate of the IMU, where there is one and nothing better."""
        found = self._published.yaw_rate(stamp_ns)
        if found is None or (motion is not None and motion.origin != KISS_ICP):
            return motion
        rate, topic = found
        if motion is None:
            return EgoMotion(None, None, rate, IMU, f"IMU {topic}: a turn rate, no position", self._since)
        return replace(motion, yaw_rate_radps=rate, source=f"{motion.source}, turn rate from {topic}")
