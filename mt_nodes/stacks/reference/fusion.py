# SPDX-License-Identifier: Apache-2.0
"""A stack with both sensors: the reference detector and the reference camera stack, late-fused.

Both answer on their own. Then the camera says who is a person, and the LiDAR where: windows in which people are sought
are coarse, clusters are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.base.assignment import linear_sum_assignment
from mt_nodes.base.params import param
from mt_nodes.data.outputs import Control, Detections, ImageBoxes, Output, Path
from mt_nodes.data.transforms import Matrix, move, pose_matrix
from mt_nodes.stacks.reference.camera import CameraStack
from mt_nodes.stacks.reference.detector import Detector
from mt_nodes.stacks.reference.faults.base import named_faults
from mt_nodes.stacks.reference.faults.camera_base import FusionFault, FusionSteps
from mt_nodes.world.camera.model import CameraModel

Rows = npt.NDArray[np.intp]

#: Turns the axes x ahead, y left, z up into the optical ones x right, y down, z ahead.
_OPTICAL_XYZW = (-0.5, 0.5, -0.5, 0.5)
_CORNERS = np.array(list(product((-0.5, 0.5), repeat=3)))
#: A person's box and a cluster's are one when their middles are no further apart than their mean width, and neither is
#: higher than so many times the other.
_HIGHER = 1.6
_DECIMALS = 6


@dataclass(frozen=True, eq=False)
class FusionStack:
    """Finds obstacles in the cloud and people in the picture, and drives by both; it has no memory."""

    beside_m: float = param(1.3, low=0.0, high=5.0, unit="m", help="obstacles so near the lane's middle are in the way")
    faults: tuple[Any, ...] = param(
        (),
        convert=lambda value, where: named_faults(value, where, "lidar", "camera", "fusion"),
        help="names of faults to plant in any of its parts, or {name: {parameter: value}}",
    )

    def __call__(self, given: Mapping[str, Any], stamp_ns: int | None = None, now_ns: int | None = None) -> Output:
        """Return ``detections``, ``boxes`` of people, ``path`` and ``control``; empty if a fault silences a part.

        Raises ValueError: a cloud or a picture has another shape than its part of the stack takes.
        ``given``: of one instant ``points`` as for the detector, ``image`` and ``camera_info`` as for the camera stack.
        ``stamp_ns``: of the cloud. ``now_ns``: the stack's time when all of it was there.
        """
        found = self._detector(given["points"], stamp_ns, now_ns)
        camera_output = self._camera(given, stamp_ns)
        if isinstance(found, Output):
            return found
        assert camera_output.boxes is not None and camera_output.path is not None and camera_output.control is not None
        camera = self._camera.camera_of(given["camera_info"], given["image"].shape[:2])
        boxes = self._placed(camera_output.boxes, found, camera)
        return replace(
            camera_output,
            detections=found,
            boxes=boxes,
            control=self._careful(camera_output.control, camera_output.path, found),
        )

    @cached_property
    def _detector(self) -> Detector:
        return Detector(faults=self._of("lidar"))

    @cached_property
    def _camera(self) -> CameraStack:
        return CameraStack(faults=self._of("camera"))

    @cached_property
    def _steps(self) -> FusionSteps:
        planted: tuple[FusionFault, ...] = self._of("fusion")
        return reduce(lambda steps, fault: fault.plant(steps), planted, FusionSteps(lambda mount: mount))

    def _of(self, stack: str) -> tuple[Any, ...]:
        return tuple(fault for fault in self.faults if fault.stack == stack)

    def _placed(self, people: ImageBoxes, found: Detections, camera: CameraModel) -> ImageBoxes:
        """Return the people; those that the LiDAR found, too, get the box of their cluster in the picture."""
        standing = found.take(np.isin(found.label, ("pedestrian", "cyclist")))
        optical = pose_matrix((self._camera.forward_m, 0.0, self._camera.height_m), _OPTICAL_XYZW)
        lidar_boxes = in_picture(standing, np.asarray(np.linalg.inv(self._steps.mount(optical))), camera)
        rows, columns = alike(lidar_boxes, people.box_px)
        placed = people.box_px.copy()
        placed[columns] = lidar_boxes[rows]
        return replace(people, box_px=placed)

    def _careful(self, control: Control, path: Path, found: Detections) -> Control:
        """Return the command, slower if a LiDAR obstacle is in the path (straight ahead without a lane)."""
        x, left, _ = found.center_m.T
        middle = np.interp(x, *path.pose.T[:2]) if len(path.pose) else np.zeros(len(x))
        near = x - found.size_m[:, 0] / 2.0
        in_the_way = (near > 0.0) & (np.abs(left - middle) <= self.beside_m)
        speed = self._camera.speed_before(float(near[in_the_way].min(initial=np.inf)))
        slower = round(min(control.speed_mps, speed), _DECIMALS)
        turn = slower * float(np.tan(control.steering_rad)) / self._camera.wheelbase_m
        return replace(control, speed_mps=slower, yaw_rate_radps=turn)


def in_picture(found: Detections, to_camera: Matrix, camera: CameraModel) -> Floats:
    """Return the boxes (M, 4) in px around obstacles in the picture; NaN if not wholly in front of the camera.

    ``to_camera``: 4×4 from the obstacles' frame to the camera's optical one.
    """
    c, s = np.cos(found.yaw_rad), np.sin(found.yaw_rad)
    turn = np.array([[c, s, 0.0 * c], [-s, c, 0.0 * c], [0.0 * c, 0.0 * c, 1.0 + 0.0 * c]]).transpose(2, 0, 1)
    corners = (_CORNERS * found.size_m[:, None]) @ turn + found.center_m[:, None]
    pixels = camera.project(move(to_camera, corners.reshape(-1, 3))).reshape(-1, len(_CORNERS), 2)
    return np.concatenate([pixels.min(axis=1), pixels.max(axis=1)], axis=1)


def alike(lidar_boxes: Floats, people: Floats) -> tuple[Rows, Rows]:
    """Return the rows of boxes (M, 4), (K, 4) that show the same object: adjacent, of equal height, nearest."""
    x0, y0, x1, y1 = lidar_boxes.T[..., None]
    u0, v0, u1, v1 = people.T[:, None]
    apart = np.abs(x0 + x1 - u0 - u1) / np.maximum(x1 - x0 + u1 - u0, 1e-9)
    as_high = np.maximum(y1 - y0, v1 - v0) <= _HIGHER * np.minimum(y1 - y0, v1 - v0)
    cost = np.where(as_high & (apart < 1.0), apart, 1.0)
    rows, columns = linear_sum_assignment(cost)
    good = cost[rows, columns] < 1.0
    return rows[good], columns[good]
