# SPDX-License-Identifier: Apache-2.0
"""A camera stack of classical parts: people from gradients, the lane from its lines, pure pursuit, a careful speed.

People in a picture, by OpenCV's own detector: histograms of oriented gradients (Dalal and Triggs, CVPR 2005).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Pixels, Singles
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.image_boxes import iou
from mt_nodes.data.messages import CameraInfo
from mt_nodes.data.outputs import Control, ImageBoxes, Output, Path
from mt_nodes.stacks.reference.assumed_camera import assumed_camera
from mt_nodes.stacks.reference.faults.base import named_faults
from mt_nodes.stacks.reference.faults.camera_base import CameraFault, CameraInput, CameraSteps
from mt_nodes.stacks.reference.lane import FAR_M, LaneFit, find_lane, lines_in, road_from_above
from mt_nodes.world.camera.model import CameraModel

#: The detector's window is 64 x 128 pixels, 16 of them a margin around a person who fills the rest of its height.
_WINDOW_PX, _PERSON_PX, _MARGIN, _MARGIN_X = 128, 96, 0.125, 0.18
#: Steps of the score: parts of 1 that every message type carries exactly.
_SCORE_STEPS = 256.0
_SCALE_STEP, _SAME_IOU = 1.12, 0.5


def find_people(
    grey: npt.NDArray[np.uint8], rows: tuple[int, int], least_px: float, threshold: float, frame_id: str = ""
) -> ImageBoxes:
    """Return a box around each person, highest score first.

    The picture and its mirror image are searched, so that no side of the street is preferred by where windows lie.

    Args:
        grey: (H, W). rows: first and last but one row that is searched.
        least_px: height of the smallest person that is looked for.
        threshold: distance from the classifier's plane from which a window counts; its score is the logistic
            function of that distance, so a half at the plane and 0.82 at the distance 0.5.
    """
    first, end = max(rows[0], 0), min(rows[1], grey.shape[0])
    scale = _PERSON_PX / least_px
    if min(scale * (end - first) - _WINDOW_PX, scale * grey.shape[1] - _WINDOW_PX // 2) < 0:
        return ImageBoxes.none(frame_id, None)
    searched = cv2.resize(grey[first:end], None, fx=scale, fy=scale, interpolation=cv2.INTER_LINEAR)
    windows = _windows(searched), _windows(np.ascontiguousarray(searched[:, ::-1]))
    windows[1][:, 0] = searched.shape[1] - windows[1][:, 0] - windows[1][:, 2]
    found = np.concatenate(windows)
    found = found[found[:, 4] >= threshold]
    x, y, wide, high = found[:, :4].T / scale
    inside = np.column_stack(
        [x + _MARGIN_X * wide, y + _MARGIN * high, x + (1.0 - _MARGIN_X) * wide, y + (1.0 - _MARGIN) * high]
    )
    inside += np.array([0.0, first, 0.0, first]) - 0.5  # windows are told by edges, boxes by pixel centres
    score = np.rint(_SCORE_STEPS / (1.0 + np.exp(-3.0 * found[:, 4]))) / _SCORE_STEPS
    boxes = ImageBoxes.make(frame_id, None, inside, ["pedestrian"] * len(inside), score)
    return _surest(boxes.take(np.lexsort((*inside.T[::-1], -score))))


def _windows(grey: npt.NDArray[np.uint8]) -> Floats:
    """Return the windows (M, 5) with people: left, top, width, height, distance from the classifier's plane."""
    found, distance = _detector().detectMultiScale(
        grey, hitThreshold=0.0, winStride=(8, 8), padding=(16, 16), scale=_SCALE_STEP
    )
    rows = np.asarray(found, dtype=np.float64).reshape(-1, 4)
    return np.column_stack([rows, np.ravel(distance).astype(np.float64)])


def _surest(boxes: ImageBoxes) -> ImageBoxes:
    """Of boxes that overlap by half or more, keep the one with the highest score."""
    rows: list[int] = []
    overlap = iou(boxes.box_px, boxes.box_px)
    for row in range(len(boxes)):
        if (overlap[row, rows] < _SAME_IOU).all():
            rows.append(row)
    return boxes.take(np.array(rows, dtype=np.intp))


@lru_cache
def _detector() -> Any:
    detector = cv2.HOGDescriptor()
    detector.setSVMDetector(cv2.HOGDescriptor.getDefaultPeopleDetector())
    return detector


_DECIMALS = 6
#: Steps by which blue must pass twice the red, so that noise in the dark is not taken for sky.
_BLUE = 20
#: Brightness, in steps, below which a scene is dark.
_DARK = 24.0
_PATH_STEP_M = 1.0


@dataclass(frozen=True, eq=False)
class CameraStack:
    """Detects people and the lane in a single picture and drives by them; it has no memory."""

    frame_id: str = param("base_link", help="frame of the path: on the road, x forward, y left")
    forward_m: float = param(0.3, low=-5.0, high=5.0, unit="m", help="the camera stands so far before base_link")
    height_m: float = param(1.5, low=0.3, high=5.0, unit="m", help="and so high; it looks level")
    field_of_view_deg: float = param(
        60.0, low=10.0, high=150.0, unit="deg", help="of the picture's width, where no CameraInfo says it"
    )
    lane_width_m: float = param(4.0, low=2.0, high=6.0, unit="m", help="between the middles of the lines")
    line_contrast: float = param(14.0, low=1.0, high=255.0, help="steps of 8 bits by which a line outshines the road")
    seen_share: float = param(0.6, low=0.0, high=1.0, help="share of the road ahead along which a line must be seen")
    look_ahead_m: float = param(8.0, low=2.0, high=20.0, unit="m", help="where pure pursuit aims")
    wheelbase_m: float = param(2.7, low=1.0, high=8.0, unit="m", help="between the axles")
    cruise_mps: float = param(10.0, low=1.0, high=40.0, unit="m/s", help="speed when nothing is in the way")
    unsure_mps: float = param(3.0, low=0.0, high=40.0, unit="m/s", help="speed while the lane is not seen")
    lateral_mps2: float = param(2.0, low=0.1, high=10.0, unit="m/s²", help="acceleration to the side in bends")
    braking_mps2: float = param(2.0, low=0.1, high=10.0, unit="m/s²", help="deceleration for people")
    stop_m: float = param(4.0, low=0.0, high=20.0, unit="m", help="stands so far before people")
    beside_m: float = param(1.3, low=0.0, high=5.0, unit="m", help="people so near the lane's middle are in the way")
    clear_detail: float = param(0.9, low=0.01, high=10.0, help="detail near the horizon in clear sight")
    care: float = param(
        3.0,
        low=1.0,
        high=10.0,
        help="power of the sight by which it slows down: people are overlooked long before the road is, as riders 11 m "
        "ahead are in rain that leaves four fifths of the detail",
    )
    least_person_px: float = param(64.0, low=24.0, high=400.0, unit="px", help="height of the smallest person sought")
    person_threshold: float = param(0.0, low=0.0, high=3.0, help="least distance from the people detector's plane")
    faults: tuple[Any, ...] = param(
        (),
        convert=lambda value, where: named_faults(value, where, "camera"),
        help="names of faults to plant, or {name: {parameter: value}}",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "faults", named_faults(self.faults, "faults", "camera"))

    def __call__(self, given: Pixels | Mapping[str, Any], stamp_ns: int | None = None) -> Output:
        """Return ``boxes`` of people, ``path`` (the lane's middle, empty when it is not seen) and ``control``.

        Raises ValueError: the picture has another shape.
        ``given``: a picture (H, W, 3) uint8, red, green, blue; or that as ``image``, with its ``camera_info``.
        ``stamp_ns``: of the picture; only some faults look at it.
        """
        camera_input, lane = self.look(given, stamp_ns)
        camera, grey = camera_input.camera, self._steps.grey(camera_input.rgb)
        people = self._people(grey, camera)
        return self.report(
            Output(boxes=people, path=self._path(lane), control=self._control(lane, people, grey, camera))
        )

    def look(self, given: Pixels | Mapping[str, Any], stamp_ns: int | None = None) -> tuple[CameraInput, LaneFit]:
        """Return what the stack looks at of what it is given, and the own lane in it; arguments as of a call."""
        image, info = (given["image"], given["camera_info"]) if isinstance(given, Mapping) else (given, None)
        if image.ndim != 3 or image.shape[2] != 3:
            raise ValueError(f"got a picture of shape {image.shape}, expected (H, W, 3): red, green, blue")
        camera_input = self._steps.look(CameraInput(image, self.camera_of(info, image.shape[:2]), stamp_ns))
        road = road_from_above(self._steps.paint(camera_input.rgb), camera_input.camera, self.height_m)
        return camera_input, find_lane(lines_in(road, self.line_contrast), self.lane_width_m)

    def report(self, found: Output) -> Output:
        """Return what the stack publishes of what it, or one that looks with it, found."""
        return self._steps.report(found)

    @cached_property
    def _steps(self) -> CameraSteps:
        planted: tuple[CameraFault, ...] = self.faults
        honest = CameraSteps(lambda camera_input: camera_input, paint_in, luma, self._sight, lambda output: output)
        return reduce(lambda steps, fault: fault.plant(steps), planted, honest)

    def speed_before(self, ahead_m: float) -> float:
        """Return the highest speed from which the vehicle can still stop before something at this distance."""
        return float(np.sqrt(2.0 * self.braking_mps2 * max(ahead_m - self.stop_m, 0.0)))

    def camera_of(self, info: CameraInfo | None, size: tuple[int, int]) -> CameraModel:
        """Return the camera for pictures of a size (height, width), or the assumed one if none is stated."""
        if info is not None:
            try:
                return CameraModel.of(info, size)
            except UsageError:
                pass  # not calibrated: drives on by what its camera should be, as a robust stack does
        return assumed_camera(size, self.field_of_view_deg)

    def _people(self, grey: Pixels, camera: CameraModel) -> ImageBoxes:
        focal, horizon = camera.k[1, 1], camera.k[1, 2]
        near_m, tallest_m = 4.0, 2.4  # who is nearer, or taller, is not looked for
        rows = horizon - focal * (tallest_m - self.height_m) / near_m, horizon + focal * 1.15 * self.height_m / near_m
        return find_people(grey, (int(rows[0]), int(rows[1])), self.least_person_px, self.person_threshold)

    def _path(self, lane: LaneFit) -> Path:
        if lane.visible_share < self.seen_share:
            return Path.make(self.frame_id, None, np.empty((0, 3)))
        x = np.arange(0.0, FAR_M + _PATH_STEP_M / 2.0, _PATH_STEP_M)
        pose = np.column_stack([x + self.forward_m, lane.left_m(x), np.arctan(lane.heading + lane.bend_1pm * x)])
        return Path.make(self.frame_id, None, pose.round(_DECIMALS))

    def _control(self, lane: LaneFit, people: ImageBoxes, grey: Pixels, camera: CameraModel) -> Control:
        lane_found = lane.visible_share >= self.seen_share
        steering, bend = self._pursued(lane) if lane_found else (0.0, 0.0)
        speed = min(
            self.cruise_mps if lane_found else self.unsure_mps,
            float(np.sqrt(self.lateral_mps2 / max(abs(bend), 1e-6))),
            self._for_people(lane, people, camera),
        )
        speed = round(speed * self._steps.sight(grey, camera) ** self.care, _DECIMALS)
        steering = round(steering, _DECIMALS)
        return Control(None, steering, speed, yaw_rate_radps=speed * float(np.tan(steering)) / self.wheelbase_m)

    def _pursued(self, lane: LaneFit) -> tuple[float, float]:
        """Return the road-wheel angle by pure pursuit, and the curvature of the path to its target point.

        The arc that leaves the rear axle straight ahead and meets a point at distance l, y to the left, has curvature
        2 y / l² (R. C. Coulter, Implementation of the Pure Pursuit Path Tracking Algorithm, Carnegie Mellon, 1992).
        """
        ahead = self.look_ahead_m
        left = float(lane.left_m(ahead - self.forward_m))
        curvature = 2.0 * left / (ahead**2 + left**2)
        return float(np.arctan(self.wheelbase_m * curvature)), curvature

    def _for_people(self, lane: LaneFit, people: ImageBoxes, camera: CameraModel) -> float:
        """Return the highest speed from which the vehicle can stop before the nearest person in its path."""
        if not len(people):
            return np.inf
        x0, _, x1, feet = people.box_px.T
        focal, (middle, horizon) = camera.k[1, 1], camera.k[:2, 2]
        distance = focal * self.height_m / np.maximum(feet - horizon, 1.0)
        left = -((x0 + x1) / 2.0 - middle) / camera.k[0, 0] * distance
        in_the_way = np.abs(left - lane.left_m(np.minimum(distance, FAR_M))) <= self.beside_m
        return self.speed_before(float(distance[in_the_way].min(initial=np.inf)))

    def _sight(self, grey: Pixels, camera: CameraModel) -> float:
        return visibility(grey, camera, self.clear_detail)


def paint_in(rgb: Pixels) -> Singles:
    """Return how much each pixel (H, W) looks like white or yellow lane paint: the minimum of red and green.

    What is more than twice as blue as red is no paint: the sky in a puddle.
    """
    red, green, blue = cv2.split(rgb)
    bluer = cv2.subtract(cv2.subtract(blue, red), red)
    shining = cv2.min(red, green)
    shining[bluer > _BLUE] = 0
    return np.asarray(shining, dtype=np.float32)


def luma(rgb: Pixels) -> Pixels:
    """Return brightness (H, W) in 8 bits."""
    return np.asarray(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY), dtype=np.uint8)


def visibility(grey: Pixels, camera: CameraModel, clear_detail: float) -> float:
    """Return the visibility ahead: 1 in clear daylight, 0 for none.

    What is far lies near the horizon. There the upright edges are compared with the brightness around them: a brighter
    lens changes nothing, a veil of fog and the dark do. Where it is so dark that noise makes edges, darkness itself
    counts. (An assumption, tuned on the generated drive: its detail is 0.87 to 1.12 in clear sight.)
    """
    height = grey.shape[0]
    horizon, reach = int(np.clip(camera.k[1, 2], 0, height - 1)), max(1, height // 10)
    scene = grey[max(0, horizon - reach) : horizon + reach].astype(np.float32)
    mean = float(scene.mean())
    edges = np.abs(cv2.Sobel(scene, cv2.CV_32F, 1, 0, ksize=3))
    detail = float(np.percentile(edges, 90.0)) / (mean + _DARK)
    return min(1.0, detail / clear_detail, (mean + 8.0) / (4.0 * _DARK))
