# SPDX-License-Identifier: Apache-2.0
"""A stack with LiDAR and radar, late-fused: the LiDAR says where and how large, the radar how fast.

An obstacle that moves and that the radar alone detects is kept with a low score, so that the LiDAR may lose it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections, Output
from mt_nodes.stacks.reference.detector import Detector
from mt_nodes.stacks.reference.faults.base import named_faults
from mt_nodes.stacks.reference.radar_detector import RadarDetector, joined_detections

#: Score from which an obstacle of the radar alone is kept: three detections; and the score that it then gets, which
#: answers for an obstacle that the LiDAR loses, and adds none.
_LEAST_SCORE, _ALONE_SCORE = 0.74, 0.4


@dataclass(frozen=True, eq=False)
class RadarFusionStack:
    """Finds obstacles in cloud and radar message of one instant; it has no memory."""

    gate_m: float = param(1.0, low=0.1, high=10.0, unit="m", help="a radar obstacle this near to a box belongs to it")
    moving_mps: float = param(1.0, low=0.1, high=10.0, unit="m/s", help="what the radar alone detects must be faster")
    faults: tuple[Any, ...] = param(
        (),
        convert=lambda value, where: named_faults(value, where, "lidar", "radar"),
        help="names of faults to plant in either part, or {name: {parameter: value}}",
    )

    def __call__(self, given: Mapping[str, Any], stamp_ns: int | None = None, now_ns: int | None = None) -> Any:
        """Return the obstacles; what a fault of the LiDAR's part silences is silent.

        ``given``: of one instant ``points`` as for the detector, ``radar`` as for the radar detector. ``stamp_ns``: of
        the cloud. ``now_ns``: the stack's time when both were there.
        """
        boxes, seen = self._detector(given["points"], stamp_ns, now_ns), self._radar(given["radar"], stamp_ns)
        return boxes if isinstance(boxes, Output) else self._fused(boxes, seen)

    def _fused(self, boxes: Detections, seen: Detections) -> Detections:
        apart = _apart_m(boxes, seen)
        velocity = boxes.velocity_mps.copy()
        if len(seen) and len(boxes):
            nearest = apart.argmin(axis=1)
            near = apart[np.arange(len(boxes)), nearest] <= self.gate_m
            velocity[near] = seen.velocity_mps[nearest[near]]
        alone = (apart > self.gate_m).all(axis=0) & (seen.score >= _LEAST_SCORE)
        alone &= np.linalg.norm(seen.velocity_mps, axis=1) > self.moving_mps
        kept = seen.take(alone)
        kept = replace(kept, score=np.full(len(kept), _ALONE_SCORE))
        return joined_detections(replace(boxes, velocity_mps=velocity), kept)

    @cached_property
    def _detector(self) -> Detector:
        return Detector(faults=self._of("lidar"))

    @cached_property
    def _radar(self) -> RadarDetector:
        return RadarDetector(faults=self._of("radar"))

    def _of(self, stack: str) -> tuple[Any, ...]:
        return tuple(fault for fault in named_faults(self.faults, "faults", "lidar", "radar") if fault.stack == stack)


def _apart_m(boxes: Detections, seen: Detections) -> Floats:
    """Return the distances (M, K) of the centres of others from boxes, 0 within."""
    c, s = np.cos(boxes.yaw_rad)[:, None], np.sin(boxes.yaw_rad)[:, None]
    dx, dy = (seen.center_m[None, :, i] - boxes.center_m[:, None, i] for i in (0, 1))
    along, across = np.abs(c * dx + s * dy), np.abs(c * dy - s * dx)
    half = boxes.size_m[:, None, :2] / 2.0
    return np.asarray(np.hypot(np.maximum(along - half[..., 0], 0.0), np.maximum(across - half[..., 1], 0.0)))
