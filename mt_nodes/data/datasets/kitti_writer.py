# SPDX-License-Identifier: Apache-2.0
"""Writes frames of KITTI's object benchmark, which :mod:`~mt_nodes.data.datasets.kitti_benchmarks` reads again.

Layout and columns: readme of the object development kit (A. Geiger et al., CVPR 2012). ``velodyne/N.bin``,
``image_2/N.png``, ``calib/N.txt``, ``label_2/N.txt``; ``ImageSets/*.txt`` names the frames of a split, as in OpenPCDet.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mt_nodes.base.arrays import Floats, Mask, Singles
from mt_nodes.base.directories import write_whole
from mt_nodes.data.datasets.kitti_calibration import KittiCalibration
from mt_nodes.data.outputs import Detections
from mt_nodes.data.projected_boxes import projected_boxes
from mt_nodes.data.transforms import move

#: From the LiDAR's axes (x ahead, y left, z up) to those of a camera that looks ahead (x right, y down, z ahead).
AHEAD = np.array([[0.0, -1.0, 0.0, 0.0], [0.0, 0.0, -1.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
#: Width and height of KITTI's pictures, and of a frame without one.
SIZE_PX = (1242, 375)
#: Focal length of a frame without a picture: it sees 150 degrees, so that near objects beside the road have a label.
_FOCAL_PX = 166.0
_CLASSES = {"car": "Car", "truck": "Truck", "tram": "Tram", "pedestrian": "Pedestrian", "cyclist": "Cyclist"}


@dataclass(frozen=True, eq=False)
class KittiFrame:
    """One frame.

    Attributes:
        points: (N, 4) float32: x, y, z in metres, reflectance of 0..1, in the LiDAR's frame.
        objects: boxes in that frame. ignored: what is neither to be found nor wrong: written as ``DontCare``.
        calibration: of LiDAR and camera 2. size_px: width and height of its picture.
        picture: PNG, empty for none.
    """

    points: Singles
    objects: Detections
    ignored: Detections
    calibration: KittiCalibration
    size_px: tuple[int, int] = SIZE_PX
    picture: bytes = b""

    @property
    def seen(self) -> Mask:
        """(M,) which objects camera 2 sees: the others have no place in a file of this format."""
        return np.asarray(np.isfinite(image_boxes(self.objects, self.calibration, self.size_px)).all(axis=1))

    def write(self, home: Path, stem: str) -> None:
        """Write the files of the frame. Raises OSError: the disk is full, for example."""
        files: dict[str, str | bytes] = {
            f"velodyne/{stem}.bin": self.points.astype("<f4").tobytes(),
            f"calib/{stem}.txt": _calibration_text(self.calibration),
            f"label_2/{stem}.txt": "".join(f"{line}\n" for line in self._lines()),
            **({f"image_2/{stem}.png": self.picture} if self.picture else {}),
        }
        for name, content in files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            write_whole(home / name, content)

    def _lines(self) -> Iterator[str]:
        calibration, objects = self.calibration, self.objects.take(self.seen)
        boxes = image_boxes(objects, calibration, self.size_px)
        place = move(calibration.velo_to_rect, objects.center_m) + objects.size_m[:, 2:] * (0.0, 0.5, 0.0)
        along = np.column_stack([np.cos(objects.yaw_rad), np.sin(objects.yaw_rad), np.zeros(len(objects))])
        ahead = along @ calibration.velo_to_rect[:3, :3].T
        for i, name in enumerate(objects.label.tolist()):
            turn = math.atan2(-ahead[i, 2], ahead[i, 0])
            alpha = _half_turns(turn - math.atan2(place[i, 0], place[i, 2]))
            length, width, height = objects.size_m[i].tolist()
            numbers = (alpha, *boxes[i].tolist(), height, width, length, *place[i].tolist(), turn)
            # How much is hidden is not known: 3 says so.
            yield f"{_CLASSES.get(name, 'Misc')} 0.00 3 {' '.join(f'{number:.4f}' for number in numbers)}"
        for box in image_boxes(self.ignored, calibration, self.size_px):
            if np.isfinite(box).all():
                edges = " ".join(f"{edge:.2f}" for edge in box.tolist())
                yield f"DontCare -1 -1 -10 {edges} -1 -1 -1 -1000 -1000 -1000 -10"


def write_split(home: Path, stems: Sequence[str]) -> None:
    """Write which frames the training split has, into ``ImageSets`` beside ``training``."""
    (home / "ImageSets").mkdir(parents=True, exist_ok=True)
    write_whole(home / "ImageSets" / "train.txt", "".join(f"{stem}\n" for stem in stems))


def lidar_alone() -> KittiCalibration:
    """Return the calibration of a frame without a picture: a camera of :data:`SIZE_PX` in the place of the LiDAR."""
    width, height = SIZE_PX
    k = np.array([[_FOCAL_PX, 0.0, width / 2.0, 0.0], [0.0, _FOCAL_PX, height / 2.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    return KittiCalibration({2: k}, AHEAD.copy(), None, {})


def image_boxes(objects: Detections, calibration: KittiCalibration, size_px: tuple[int, int]) -> Floats:
    """Return the box (M, 4) around what camera 2 sees of each object, NaN where that is nothing; edges in pixels."""
    return projected_boxes(objects, calibration.velo_to_camera(2), calibration.intrinsics(2), size_px)


def _calibration_text(calibration: KittiCalibration) -> str:
    second = calibration.projections[2]
    rows = {f"P{i}": calibration.projections.get(i, second) for i in range(4)}
    rows |= {"R0_rect": np.eye(3), "Tr_velo_to_cam": calibration.velo_to_rect[:3]}
    if calibration.imu_to_velo is not None:
        rows["Tr_imu_to_velo"] = calibration.imu_to_velo[:3]
    return "".join(f"{name}: {' '.join(f'{v:.12e}' for v in row.ravel().tolist())}\n" for name, row in rows.items())


def _half_turns(angle_rad: float) -> float:
    return math.remainder(angle_rad, 2.0 * math.pi)
