# SPDX-License-Identifier: Apache-2.0
"""A driving stack of five nodes, filter, cluster, track, plan and control, for `mt blame`.

Over topics each is a node of its own (:mod:`mt_nodes.nodes.reference_pipeline`), in process they are called in a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Control, Detections, Output, Path
from mt_nodes.stacks.reference.detector import Detector
from mt_nodes.stacks.reference.faults.base import Points, named_faults
from mt_nodes.stacks.reference.faults.pipeline_base import PipelineSteps
from mt_nodes.stacks.reference.lidar_detector import finite, millimetres
from mt_nodes.stacks.reference.tracker import Tracker

_KINDS = ("pipeline",)
_PATH_STEP_M, _DECIMALS = 1.0, 6


@dataclass(frozen=True, eq=False)
class _Perception(Detector):
    """The reference detector in two parts, for all around the vehicle."""

    def standing(self, points: Points) -> Points:
        """Return points above ground (M, 4) x, y, z, height in metres, sorted, of a cloud (N, 4)."""
        xyz_mm, height_mm = self.above_ground(finite(points))
        return np.asarray(np.column_stack([xyz_mm, height_mm]) / 1000.0, dtype=np.float32)

    def boxes(self, standing: Points, stamp_ns: int | None) -> Detections:
        """Return the obstacles that points above ground (M, 4) form."""
        xyz_mm = millimetres(standing)  # single precision carries them up to 8 km
        order = np.lexsort(xyz_mm.T[::-1])
        height_mm = np.rint(standing[order, 3].astype(np.float64) * 1000.0)
        found = self._boxed(xyz_mm[order], height_mm, self.min_points, stamp_ns)
        fits = (found.size_m <= self.max_size_m).all(axis=1) & (found.size_m[:, 2] >= self.min_height_m)
        return found.take(np.asarray(fits))


@dataclass(frozen=True, eq=False)
class Pipeline:
    """Drives along a straight lane by a LiDAR, and stops behind what is in it.

    ``flicker`` makes an honest stack that is not deterministic: every node drops, moves or scales something by chance.
    """

    frame_id: str = param("base_link", help="frame of the points given: on the road, x forward, y left, z up")
    range_m: float = param(50.0, low=5.0, high=200.0, unit="m", help="how far it sees, all around")
    half_width_m: float = param(1.2, low=0.5, high=3.0, unit="m", help="so near to the middle one is in the way")
    front_m: float = param(2.5, low=0.0, high=10.0, unit="m", help="the vehicle's front ahead of base_link")
    horizon_m: float = param(40.0, low=5.0, high=100.0, unit="m", help="length of a path on a free lane")
    standstill_m: float = param(3.0, low=0.5, high=10.0, unit="m", help="kept behind others")
    cruise_mps: float = param(14.0, low=1.0, high=40.0, unit="m/s", help="speed on a free lane")
    braking_mps2: float = param(2.0, low=0.1, high=8.0, unit="m/s²", help="comfortable")
    remembers: bool = param(
        True, help="tracks from cloud to cloud; false: a track is what is seen now, and stateless: true"
    )
    flicker: float = param(0.0, low=0.0, high=1.0, help="strength of what each node does by chance; 0: nothing")
    faults: tuple[Any, ...] = param(
        (),
        convert=lambda value, where: named_faults(value, where, *_KINDS),
        help="names of faults to plant, or {name: {parameter: value}}",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "faults", named_faults(self.faults, "faults", *_KINDS))

    def __call__(self, points: Points, stamp_ns: int | None = None) -> Output:
        """Return ``detections`` (the tracks), ``path`` and ``control``.

        ``points``: (N, 4) x, y, z, intensity in ``frame_id``. ``stamp_ns``: of the cloud.
        """
        steps = self.steps
        tracks = steps.tracked(steps.clustered(steps.filtered(points), stamp_ns))
        path = steps.planned(tracks)
        return Output(detections=tracks, path=path, control=steps.commanded(path, tracks))

    def reset(self) -> None:
        """Forget the tracks."""
        self._tracker.reset()

    @cached_property
    def steps(self) -> PipelineSteps:
        """What the nodes do, with the faults that are planted."""
        honest = PipelineSteps(
            self._perception.standing, self._perception.boxes, self._tracks, self._path, self._command
        )
        planted = reduce(lambda steps, fault: fault.plant(steps), self.faults, honest)
        return _flickering(planted, self.flicker) if self.flicker else planted

    @cached_property
    def _perception(self) -> _Perception:
        return _Perception(frame_id=self.frame_id, use_region=False, max_range_m=self.range_m)

    @cached_property
    def _tracker(self) -> Tracker:
        return Tracker(frame_id=self.frame_id, sure_score=0.7)

    def _tracks(self, found: Detections) -> Detections:
        if not self.remembers:
            self._tracker.reset()
        return self._tracker.follow_detections(found, found.stamp_ns)

    def _path(self, tracks: Detections) -> Path:
        """Return poses a metre apart, straight on, up to a standstill behind the first that is in the way."""
        end_m = min(self.horizon_m, self._gap_m(tracks) - self.standstill_m)
        x = np.arange(0.0, max(0.0, end_m) + _PATH_STEP_M / 2.0, _PATH_STEP_M)
        return Path.make(self.frame_id, tracks.stamp_ns, np.column_stack([x, np.zeros((len(x), 2))]))

    def _command(self, path: Path, tracks: Detections) -> Control:
        """Return the speed from which one comes to a standstill at the end of the path; 0 if somebody is right ahead.

        v² = 2 a s, of constant braking.
        """
        length_m = float(path.pose[-1, 0]) if len(path.pose) else 0.0
        speed = min(self.cruise_mps, float(np.sqrt(2.0 * self.braking_mps2 * length_m)))
        speed = 0.0 if self._gap_m(tracks) < self.standstill_m else speed
        return Control(path.stamp_ns, speed_mps=round(speed, _DECIMALS), yaw_rate_radps=0.0)

    def _gap_m(self, tracks: Detections) -> float:
        """Return the distance from the front to the nearest track in the way, infinite on a free lane."""
        (x, y, _), (length, width, _) = tracks.center_m.T, tracks.size_m.T
        c, s = np.abs(np.cos(tracks.yaw_rad)), np.abs(np.sin(tracks.yaw_rad))
        along, across = (c * length + s * width) / 2.0, (s * length + c * width) / 2.0
        ahead = (np.abs(y) - across < self.half_width_m) & (x > self.front_m)
        return float(np.min((x - along)[ahead] - self.front_m, initial=np.inf))


def _flickering(steps: PipelineSteps, strength: float) -> PipelineSteps:
    """Return steps whose outputs vary by chance, never from a seed: nobody can reproduce them."""
    rng = np.random.default_rng()

    def some(count: int, share: float) -> Any:
        return np.flatnonzero(rng.random(count) >= share * strength)

    def moved(found: Detections) -> Detections:
        found = found.take(some(len(found), 0.2))
        return replace(found, center_m=found.center_m + rng.normal(0.0, 0.2 * strength, (len(found), 3)))

    def cut(path: Path) -> Path:
        return Path.make(path.frame_id, path.stamp_ns, path.pose[: max(1, len(path.pose) - rng.integers(0, 4))])

    def scaled(command: Control) -> Control:
        return replace(command, speed_mps=command.speed_mps * (1.0 + 0.2 * strength * (rng.random() - 0.5)))

    def thinned(points: Points) -> Points:
        return np.asarray(points[some(len(points), 0.2)])

    return PipelineSteps(
        _then(steps.filtered, thinned),
        _then(steps.clustered, moved),
        _then(steps.tracked, moved),
        _then(steps.planned, cut),
        _then(steps.commanded, scaled),
    )


def _then(first: Callable[..., Any], second: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda *given: second(first(*given))
