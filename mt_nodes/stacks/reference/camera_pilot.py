# SPDX-License-Identifier: Apache-2.0
"""The closed-loop driver with a camera: what stands on the road in a picture in place of the world's objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.lanes import Lanes, SignalStates
from mt_nodes.data.messages import Odometry
from mt_nodes.data.outputs import Detections, ImageBoxes, Output
from mt_nodes.stacks.reference.camera import luma, paint_in
from mt_nodes.stacks.reference.faults.base import named_faults
from mt_nodes.stacks.reference.faults.camera_base import CameraFault, CameraInput, CameraSteps
from mt_nodes.stacks.reference.faults.planner_base import Situation
from mt_nodes.stacks.reference.planner import Planner
from mt_nodes.stacks.reference.road_appearance import standing_on_road
from mt_nodes.stacks.reference.traffic import pose_of
from mt_nodes.world.camera.model import CameraModel

_KINDS = ("camera", "planner")
#: Who reaches the height of the camera is taken to be as high as an adult; what is narrower than it is high is on foot.
_ADULT_M, _UPRIGHT = 1.75, 1.0
#: How deep, and how wide at least, anything is taken to be: a picture shows no depth.
_DEEP_M, _WIDE_M = 0.5, 0.4
#: What is farther than this beside the lanes does not count, in metres: houses and poles. Points of a lane lie apart,
#: so that a place on it may be a little farther from each.
_BESIDE_M = 0.4


@dataclass(frozen=True, eq=False)
class CameraPilot(Planner):
    """Drives by what stands on the lanes in its pictures, instead of the objects that a world publishes.

    It takes everything for standing, sees by day only, and finds nothing beside the lanes that it is told. Route,
    odometry, lanes and lights are told; the rest is the planner's.
    """

    forward_m: float = param(1.7, low=-5.0, high=5.0, unit="m", help="the camera stands so far before base_link")
    height_m: float = param(1.4, low=0.3, high=5.0, unit="m", help="and so high; it looks level")
    faults: tuple[Any, ...] = param(
        (),
        convert=lambda value, where: named_faults(value, where, *_KINDS),
        help="names of faults to plant, or {name: {parameter: value}}",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "faults", named_faults(self.faults, "faults", *_KINDS))

    def __call__(self, inputs: Mapping[str, Any], stamp_ns: int | None = None) -> Output:
        """Return ``detections``, ``control`` and ``path``.

        ``inputs``: ``image`` (H, W, 3) red, green, blue, its ``camera_info``, ``odometry``, ``route``, ``lanes`` and,
        where there are lights, ``signals``. ``stamp_ns``: of the picture.
        Raises UsageError: the camera is not calibrated.
        """
        odometry: Odometry = inputs["odometry"]
        camera = CameraModel.of(inputs["camera_info"], inputs["image"].shape[:2])
        seen = self._eyes.look(CameraInput(inputs["image"], camera, stamp_ns))
        boxes = standing_on_road(seen.rgb, seen.camera, self.height_m)
        shown = self._eyes.report(Output(boxes=self._labelled(boxes, seen.camera)))
        objects = Detections.none("base_link", stamp_ns)
        if shown.boxes is not None and len(shown.boxes):
            objects = self._placed(shown.boxes, seen.camera, stamp_ns)
            objects = objects.take(_on_lanes(objects, odometry, inputs["lanes"]))
        dark = SignalStates.make(odometry.frame_id, stamp_ns, (), (), ())
        situation = Situation(objects, odometry, inputs["route"], inputs.get("signals", dark), inputs["lanes"])
        return replace(self.drive(situation, stamp_ns), detections=objects)

    @cached_property
    def _eyes(self) -> CameraSteps:
        planted: tuple[CameraFault, ...] = tuple(fault for fault in self.faults if fault.stack == "camera")
        honest = CameraSteps(lambda seen: seen, paint_in, luma, lambda grey, camera: 1.0, lambda output: output)
        return reduce(lambda steps, fault: fault.plant(steps), planted, honest)

    def _labelled(self, boxes: ImageBoxes, camera: CameraModel) -> ImageBoxes:
        """Return boxes with what they show: who stands upright is a person, anything else on the road an animal."""
        _, size_m = self._measured(boxes, camera)
        upright = size_m[:, 1] <= _UPRIGHT * size_m[:, 2]
        return replace(boxes, label=np.where(upright, "pedestrian", "animal"))

    def _measured(self, boxes: ImageBoxes, camera: CameraModel) -> tuple[np.ndarray, np.ndarray]:
        """Return the places (M, 2) on the ground where boxes stand, in the vehicle's frame, and sizes (M, 3)."""
        x0, top, x1, foot = boxes.box_px.T
        per_m = np.maximum(foot - camera.k[1, 2], 1.0) / self.height_m
        depth = camera.k[1, 1] / per_m
        left = -((x0 + x1) / 2.0 - camera.k[0, 2]) / camera.k[0, 0] * depth
        high = (foot - top) / per_m
        high = np.where(high >= 0.97 * self.height_m, _ADULT_M, high)
        wide = (x1 - x0) / camera.k[0, 0] * depth
        return np.column_stack([depth + self.forward_m, left]), np.column_stack(
            [np.full(len(left), _DEEP_M), wide, high]
        )

    def _placed(self, boxes: ImageBoxes, camera: CameraModel, stamp_ns: int | None) -> Detections:
        """Return the objects that boxes show, in the vehicle's frame."""
        place_m, size_m = self._measured(boxes, camera)
        size_m[:, 1] = np.maximum(size_m[:, 1], _WIDE_M)
        place_m[:, 0] += _DEEP_M / 2.0
        center = np.column_stack([place_m, size_m[:, 2] / 2.0])
        still = np.zeros((len(boxes), 3))
        labels = boxes.label.tolist()
        return Detections.make("base_link", stamp_ns, center, size_m, label=labels, velocity_mps=still)


def _on_lanes(objects: Detections, odometry: Odometry, lanes: Lanes) -> np.ndarray:
    """Return which objects (M,) stand on lanes, or so near beside one that it hardly matters."""
    ego = pose_of(odometry)
    known = np.isfinite(lanes.point_m).all(axis=1)
    points, width = ego.seen_from(lanes.point_m[known]), lanes.width_m[known]
    if not len(points):
        return np.ones(len(objects), dtype=bool)
    away = np.hypot(*np.moveaxis(objects.center_m[:, None, :2] - points, -1, 0))
    return np.asarray((away <= width / 2.0 + _BESIDE_M).any(axis=1))
