# SPDX-License-Identifier: Apache-2.0
"""KITTI's labels as ground truth: ``label_2`` of the object and tracking benchmarks, tracklets of raw drives."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.datasets.kitti_calibration import KittiCalibration
from mt_nodes.data.ground_truth import GroundTruth
from mt_nodes.data.outputs import Detections
from mt_nodes.data.transforms import inverse, move

LIDAR_FRAME = "velodyne"
#: KITTI's class -> ours.
_CLASSES = {
    "Car": "car",
    "Van": "car",
    "Truck": "truck",
    "Tram": "tram",
    "Pedestrian": "pedestrian",
    "Person_sitting": "pedestrian",
    "Person (sitting)": "pedestrian",
    "Person": "pedestrian",
    "Cyclist": "cyclist",
}
#: Classes that are labelled wherever they occur within the camera's view.
_LABELLED = frozenset({"car", "truck", "tram", "pedestrian", "cyclist"})
_REACH_M = 120.0
#: Numbers behind the class in a line of ``label_2``: truncated, occluded, alpha, box (4), size (3), place (3), turn.
_NUMBERS = 14


class LabelledBox(NamedTuple):
    """One object in the LiDAR's frame: its class, centre, size (length, width, height) and yaw, and its track."""

    label: str
    center_m: tuple[float, float, float]
    size_m: tuple[float, float, float]
    yaw_rad: float
    track: str = ""


def ground_truth(boxes: Sequence[LabelledBox], calibration: KittiCalibration, size: tuple[int, int]) -> GroundTruth:
    """Return the boxes of one frame; KITTI labels only what its camera 2 of a size (width, height) sees."""
    objects = Detections.make(
        LIDAR_FRAME,
        None,
        [box.center_m for box in boxes],
        [box.size_m for box in boxes],
        [box.yaw_rad for box in boxes],
        [box.label for box in boxes],
        track_id=[box.track for box in boxes],
    )
    return GroundTruth(objects, _LABELLED, np.full(len(boxes), -1), (_view(calibration, size),))


def boxes_of_lines(lines: Sequence[str], calibration: KittiCalibration, where: str) -> list[LabelledBox]:
    """Read lines of the object benchmark: ``Car 0.00 0 -1.57 …``.

    Boxes stand in the rectified frame of camera 0, ``y`` at their lower face, ``rotation_y`` about its ``y`` axis
    (readme of the object development kit). ``DontCare`` has no box in space and is left out.
    Raises InfrastructureError: a line does not hold what it should.
    """
    back = inverse(calibration.velo_to_rect)
    return [_box(line.split(), back, where) for line in lines if line.split() and line.split()[0] != "DontCare"]


def tracked_boxes(path: Path, calibration: KittiCalibration) -> Mapping[int, list[LabelledBox]]:
    """Return the boxes of a file of the tracking benchmark by frame: each line begins with frame and track."""
    found: dict[int, list[LabelledBox]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        frame, track, *rest = line.split() or ["", ""]
        if frame.isdigit() and rest:
            boxes = boxes_of_lines([" ".join(rest)], calibration, str(path))
            found[int(frame)] += [box._replace(track=track) for box in boxes]
    return found


def tracklet_boxes(path: Path) -> Mapping[int, list[LabelledBox]]:
    """Return the boxes of ``tracklet_labels.xml`` by frame.

    A pose is the middle of the lower face in the LiDAR's frame, ``rz`` the yaw (readme of the development kit).
    Raises InfrastructureError: the file is no tracklets.
    """
    found: dict[int, list[LabelledBox]] = defaultdict(list)
    try:
        items = ElementTree.parse(path).getroot().findall("./tracklets/item")
        for track, item in enumerate(items):
            first = int(item.findtext("first_frame", ""))
            for i, pose in enumerate(item.findall("./poses/item")):
                found[first + i].append(_tracklet_box(item, pose, str(track)))
    except (ElementTree.ParseError, ValueError) as error:
        raise InfrastructureError(f"{path}: is no file of KITTI's tracklets: {error}") from error
    return found


def _tracklet_box(item: ElementTree.Element, pose: ElementTree.Element, track: str) -> LabelledBox:
    h, w, length = (float(item.findtext(name, "")) for name in "hwl")
    x, y, z, yaw = (float(pose.findtext(name, "")) for name in ("tx", "ty", "tz", "rz"))
    label = _CLASSES.get(item.findtext("objectType", ""), "unknown")
    return LabelledBox(label, (x, y, z + h / 2.0), (length, w, h), yaw, track)


def _box(words: Sequence[str], back: Floats, where: str) -> LabelledBox:
    try:
        values = [float(word) for word in words[1:]]
    except ValueError:
        values = []
    if len(values) < _NUMBERS:
        raise InfrastructureError(f"{where}: got '{' '.join(words)}', expected a class and {_NUMBERS} numbers")
    h, w, length, x, y, z, turn = values[7:14]
    center = move(back, np.array([[x, y - h / 2.0, z]]))[0]
    ahead = back[:3, :3] @ np.array([math.cos(turn), 0.0, -math.sin(turn)])
    label = _CLASSES.get(words[0], "unknown")
    return LabelledBox(label, tuple(center.tolist()), (length, w, h), math.atan2(ahead[1], ahead[0]))


def _view(calibration: KittiCalibration, size: tuple[int, int]) -> tuple[tuple[float, float], ...]:
    """Return the corners (x, y) of what camera 2 sees, in the LiDAR's frame."""
    k, to_lidar = calibration.intrinsics(2), inverse(calibration.velo_to_camera(2))
    edges = [[(pixel - k[0, 2]) / k[0, 0] * _REACH_M, 0.0, _REACH_M] for pixel in (0.0, size[0])]
    corners = move(to_lidar, np.array([[0.0, 0.0, 0.0], *edges]))
    return tuple((float(x), float(y)) for x, y, _ in corners)
