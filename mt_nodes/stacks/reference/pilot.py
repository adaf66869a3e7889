# SPDX-License-Identifier: Apache-2.0
"""The closed-loop driver with its own perception: a LiDAR tracker in place of the world's objects, then the planner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mt_nodes.base import params
from mt_nodes.base.arrays import Mask
from mt_nodes.base.params import param
from mt_nodes.data.lanes import Lanes, SignalStates
from mt_nodes.data.messages import Odometry
from mt_nodes.data.outputs import Detections, Output, Path
from mt_nodes.stacks.reference.faults.base import Points, named_faults
from mt_nodes.stacks.reference.faults.planner_base import Situation
from mt_nodes.stacks.reference.planner import Planner
from mt_nodes.stacks.reference.tracker import Track, Tracker
from mt_nodes.stacks.reference.traffic import EgoPose, pose_of
from mt_nodes.stacks.reference.way import LanePath

_KINDS = ("lidar", "planner")
#: Of a box only two sides are seen, and which ones changes: what is long seems to move by so much while it stands.
_LONG_M, _LONG_STANDS_MPS, _SHORT_STANDS_MPS = 1.2, 1.5, 0.5
#: What is short and seems faster is no person, but now one part of something and now another.
_SHORT_MOST_MPS = 5.0
#: Updates from which a track's velocity is believed.
_KNOWN_HITS = 4
#: Of what is long and farther beside the way than this most are houses, of which now more is seen and now less.
_ROADSIDE_M = 4.5


@dataclass(frozen=True, eq=False)
class GroundTracker(Tracker):
    """The reference tracker with tracks in the odometry frame, which does not move, instead of the vehicle's."""

    def follow(
        self, points: Points, odometry: Odometry, stamp_ns: int | None = None, now_ns: int | None = None
    ) -> Detections | None:
        """Update the tracks with one cloud; return the confirmed ones in the vehicle's frame.

        Velocities are over the ground, along the axes of the vehicle; whoever is not sure to move, stands. None, and
        ``now_ns``, are for faults; see :meth:`~mt_nodes.stacks.reference.detector.Detector.__call__`.
        """
        in_time = self._steps.in_time(stamp_ns, now_ns)
        tracks = self._followed(points, odometry, stamp_ns) if in_time else Detections.none(self.frame_id, stamp_ns)
        return self._steps.report(tracks)

    def _followed(self, points: Points, odometry: Odometry, stamp_ns: int | None) -> Detections:
        ego = pose_of(odometry)
        elapsed_s = self._elapsed_s(stamp_ns)
        self._update(_on_ground(self.detect(points, stamp_ns), ego), elapsed_s)
        confirmed = [track for track in self._memory.tracks if self._confirmed(track) and _lasts(track)]
        found = self._published(confirmed, stamp_ns)
        known = np.array([track.hits >= _KNOWN_HITS for track in confirmed], dtype=bool)
        found.velocity_mps[~known | ~_moves(found)] = 0.0
        return _in_vehicle_frame(found, ego)


@dataclass(frozen=True, eq=False)
class Pilot(Planner):
    """Drives by the objects that its tracker finds in clouds, instead of those that a world publishes.

    Route, odometry and lights are told; the rest is the planner's.
    """

    frame_id: str = param("base_link", help="frame of the points given: on the road, x forward, y left, z up")
    sees: dict[str, Any] = param({}, help="parameters of the reference tracker by which it sees")
    faults: tuple[Any, ...] = param(
        (),
        convert=lambda value, where: named_faults(value, where, *_KINDS),
        help="names of faults to plant, or {name: {parameter: value}}; those of LiDAR stacks go to the tracker",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "faults", named_faults(self.faults, "faults", *_KINDS))

    def __call__(self, inputs: Mapping[str, Any], stamp_ns: int | None = None, now_ns: int | None = None) -> Output:
        """Return ``detections``, ``control`` and ``path``; an empty output if a fault silences the tracker.

        ``inputs``: ``points`` (N, 4) x, y, z, intensity in ``frame_id``, ``odometry``, ``route`` and, where there are
        lights and lanes to evade over, ``signals`` and ``lanes``. ``stamp_ns``: of the cloud. ``now_ns``: only some
        faults of the tracker look at it.
        """
        odometry: Odometry = inputs["odometry"]
        objects = self._tracker.follow(inputs["points"], odometry, stamp_ns, now_ns)
        if objects is None:
            return Output()
        dark = SignalStates.make(odometry.frame_id, stamp_ns, (), (), ())
        objects = _roadside(objects, odometry, inputs["route"])
        lanes = inputs.get("lanes", Lanes.make(odometry.frame_id, stamp_ns))
        situation = Situation(objects, odometry, inputs["route"], inputs.get("signals", dark), lanes)
        return replace(self.drive(situation, stamp_ns), detections=objects)

    def reset(self) -> None:
        """Forget everything."""
        self._tracker.reset()
        super().reset()

    @cached_property
    def _tracker(self) -> GroundTracker:
        planted = [fault for fault in self.faults if fault.stack == "lidar"]
        return params.build(GroundTracker, {**self.sees, "frame_id": self.frame_id, "faults": planted}, "sees")


def _on_ground(detections: Detections, ego: EgoPose) -> Detections:
    """Return detections of the vehicle's frame in the odometry frame."""
    xy = ego.turned(detections.center_m[:, :2]) + np.array([ego.x_m, ego.y_m])
    center = np.column_stack([xy, detections.center_m[:, 2]])
    return replace(detections, center_m=center, yaw_rad=detections.yaw_rad + ego.yaw_rad)


def _in_vehicle_frame(tracks: Detections, ego: EgoPose) -> Detections:
    """Return tracks of the odometry frame in the vehicle's frame."""
    turned_back = EgoPose(0.0, 0.0, ego.yaw_rad, 0.0, 0.0)
    center = np.column_stack([ego.seen_from(tracks.center_m[:, :2]), tracks.center_m[:, 2]])
    velocity = np.column_stack([turned_back.seen_from(tracks.velocity_mps[:, :2]), np.zeros(len(tracks))])
    return replace(tracks, center_m=center, yaw_rad=tracks.yaw_rad - ego.yaw_rad, velocity_mps=velocity)


def _lasts(track: Track) -> bool:
    """Tell whether a track is still used: of tracks without a current detection, only people's are."""
    return track.misses == 0 or str(track.box.label[0]) == "pedestrian"


def _roadside(objects: Detections, odometry: Odometry, route: Path) -> Detections:
    """Return the objects; long ones far beside the road get zero velocity."""
    way, ego = LanePath.of(route), pose_of(odometry)
    if way is None or not len(objects):
        return objects
    _, left = way.place(ego.turned(objects.center_m[:, :2]) + np.array([ego.x_m, ego.y_m]))
    moves = (objects.size_m[:, 0] <= _LONG_M) | (np.abs(left) < _ROADSIDE_M)
    return replace(objects, velocity_mps=objects.velocity_mps * moves[:, None])


def _moves(tracks: Detections) -> Mask:
    """Tell which of them (M,) are fast enough to count as moving, and slow enough to be plausible."""
    speed, long = np.hypot(*tracks.velocity_mps[:, :2].T), tracks.size_m[:, 0] > _LONG_M
    return np.asarray(np.where(long, speed > _LONG_STANDS_MPS, (speed > _SHORT_STANDS_MPS) & (speed < _SHORT_MOST_MPS)))
