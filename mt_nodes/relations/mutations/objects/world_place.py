# SPDX-License-Identifier: Apache-2.0
"""Where an added object is over an episode: one place in the world, or one way through it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import EGO_FRAME, Matrix, inverse
from mt_nodes.relations.mutations.objects.in_scene import ego_from
from mt_nodes.world.scene.placement_solver import NoRoom, Place

T = TypeVar("T")

#: How an object moves: not at all, along the ego's way as it was at first, or across it.
STANDS, ALONG, ACROSS = "stands", "along", "across"
#: A place is useful between these distances from the ego, the farther one at least that asked for (assumed).
NEAR_M, FAR_M = 3.5, 30.0
#: The ego from above, from ``base_link`` (assumed: below the roof of a car of 5 m): behind, ahead, and to each side.
_EGO_M = (2.5, 3.0, 1.1)


@dataclass(frozen=True, eq=False)
class WorldPlace:
    """Pose of an object at the first bundle, and how it moves on.

    Attributes:
        pose: (4, 4) object to a frame, upright on level ground.
        velocity_mps: (3,) in that frame.
        frame_id: name of the frame; empty: fixed in the world by the ego's motion.
        index, stamp_ns: of the first bundle. since: where the world frame began, None if the motion was unknown.
        ahead: whether the object was ahead of the ego then.
    """

    pose: Matrix
    velocity_mps: Floats
    frame_id: str
    index: int
    stamp_ns: int
    since: int | None
    ahead: bool
    _found: WeakKeyDictionary[Cloud, Any] = field(default_factory=WeakKeyDictionary, repr=False)

    @classmethod
    def begin(cls, bundle: Bundle, pose: Matrix, velocity_mps: Floats, frame_id: str, ego_frame_id: str) -> WorldPlace:
        """Fix a pose (4, 4) and a velocity (3,) of the ego's frame at the first bundle."""
        motion = bundle.motion
        known = motion is not None and motion.pose is not None
        since = motion.since if motion is not None and known else None
        to_frame = inverse(frame_to_ego(bundle, frame_id, ego_frame_id, np.eye(4)))
        velocity = to_frame[:3, :3] @ velocity_mps
        return cls(to_frame @ pose, velocity, frame_id, bundle.index, bundle.stamp_ns, since, bool(pose[0, 3] > 0.0))

    def to_ego(self, bundle: Bundle, ego_frame_id: str) -> Matrix:
        """Return the matrix (4, 4) from the place's frame to the ego's at a bundle.

        Raises NotApplicable: nothing tells how the ego moved since the first bundle.
        """
        if self.frame_id:
            return frame_to_ego(bundle, self.frame_id, ego_frame_id)
        motion = bundle.motion
        if motion is None or motion.pose is None or self.since is None:
            if bundle.index == self.index:
                return frame_to_ego(bundle, "", ego_frame_id, np.eye(4))
            reason = getattr(bundle.track, "reason", "") or "nothing tells how the ego moved"
            raise NotApplicable(
                f"the object stands in the world since bundle {self.index}, and {reason}; "
                f"frame_id: {ego_frame_id} lets it go along with the ego"
            )
        if motion.since != self.since:
            raise NotApplicable(
                f"the object stands in the world since bundle {self.index}, and the ego's way was lost at bundle "
                f"{motion.since} ({motion.source})"
            )
        return frame_to_ego(bundle, "", ego_frame_id)

    def left_behind(self, bundle: Bundle, ego_frame_id: str, reach_m: float) -> bool:
        """Whether the ego has reached or passed the object, is beyond ``reach_m``, or has lost track of the world."""
        motion = bundle.motion
        if self.frame_id or self.since is None or motion is None or motion.pose is None:
            return False
        if motion.since != self.since:
            return True
        x, y, _ = self.place(bundle, ego_frame_id)
        return (self.ahead and x < _EGO_M[1]) or float(np.hypot(x, y)) > reach_m

    def place(self, bundle: Bundle, ego_frame_id: str) -> Place:
        """Return the object's place in the ego's frame at a bundle.

        Raises NotApplicable: nothing tells how the ego moved since the first bundle.
        """
        moved = self.pose.copy()
        moved[:3, 3] += self.velocity_mps * (bundle.stamp_ns - self.stamp_ns) * 1e-9
        pose = self.to_ego(bundle, ego_frame_id) @ moved
        return float(pose[0, 3]), float(pose[1, 3]), float(np.arctan2(pose[1, 0], pose[0, 0]))

    def found_at(self, place: Place, cloud: Cloud, find: Callable[[Place], T]) -> T:
        """Return what is found at a place in a cloud, or raise why it cannot stand there; found once for a cloud.

        Raises NoRoom: as ``find`` does.
        """
        before, found = self._found.get(cloud, (None, None))
        if before != place:
            try:
                found = find(place)
            except NoRoom as reason:
                found = reason
            self._found[cloud] = place, found
        if isinstance(found, NoRoom):
            raise found
        return cast("T", found)

    def velocity_in(self, bundle: Bundle, ego_frame_id: str) -> Floats:
        """Return the velocity (3,) over ground along the axes of the ego; zero for what is not fixed in the world."""
        if self.frame_id or not self.velocity_mps.any():
            return np.zeros(3)
        return np.asarray(self.to_ego(bundle, ego_frame_id)[:3, :3] @ self.velocity_mps)


def frame_to_ego(bundle: Bundle, frame_id: str, ego_frame_id: str, unknown: Matrix | None = None) -> Matrix:
    """Return the matrix (4, 4) from a frame, empty for the world, to the ego's.

    ``unknown``: pose of ``base_link`` in the world where the bundle has none.
    """
    if frame_id:
        return ego_from(bundle, frame_id, ego_frame_id, "object_added")
    pose = unknown if bundle.motion is None or bundle.motion.pose is None else bundle.motion.pose
    assert pose is not None, "whoever asks has checked it"
    base = np.eye(4) if ego_frame_id == EGO_FRAME else ego_from(bundle, EGO_FRAME, ego_frame_id, "object_added")
    return np.asarray(base @ inverse(pose))


def velocity_of(moves: str, speed_mps: float, closing_mps: float, place: Place) -> Floats:
    """Return the velocity (3,) of an object along the axes of the ego at the first bundle."""
    velocity = np.array([-closing_mps, 0.0, 0.0])
    if moves == ALONG:
        velocity[0] += speed_mps
    elif moves == ACROSS:
        velocity[1] -= speed_mps * (1.0 if place[1] >= 0.0 else -1.0)
    return velocity


def heading(moves: str, speed_mps: float, place: Place) -> Place:
    """Return a place at which the object looks where it goes; as it is if it stands."""
    if moves == STANDS or not speed_mps:
        return place
    velocity = velocity_of(moves, speed_mps, 0.0, place)
    return place[0], place[1], float(np.arctan2(velocity[1], velocity[0]))


def is_in_ego(place: Place, half_m: tuple[float, float], center_m: tuple[float, float]) -> bool:
    """Whether the footprint of an object overlaps the ego's: half sizes about a centre, in metres."""
    x, y, yaw = place
    c, s = np.cos(yaw), np.sin(yaw)
    ahead, left = np.meshgrid(
        *(center + half * np.linspace(-1.0, 1.0, 9) for center, half in zip(center_m, half_m, strict=True))
    )
    over_x, over_y = x + c * ahead - s * left, y + s * ahead + c * left
    behind_m, ahead_m, side_m = _EGO_M
    return bool(((over_x > -behind_m) & (over_x < ahead_m) & (np.abs(over_y) < side_m)).any())
