# SPDX-License-Identifier: Apache-2.0
"""Raw drives of KITTI: ``2011_09_26/2011_09_26_drive_0001_sync``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.datasets.dataset_name import DatasetName
from mt_nodes.data.datasets.kitti_calibration import LIDAR_HEIGHT_M, KittiCalibration, raw_calibration
from mt_nodes.data.datasets.kitti_labels import LIDAR_FRAME, ground_truth, tracklet_boxes
from mt_nodes.data.datasets.picture_files import info_topic, picture_size, picture_topic, pinhole
from mt_nodes.data.datasets.point_files import points_bytes, read_bin
from mt_nodes.data.datasets.recorded_topic import (
    DatasetRecording,
    RecordedTopic,
    TransformTopics,
    cloud_topic,
    from_first,
)
from mt_nodes.data.ground_truth import GroundTruth, LabelsAt, no_labels
from mt_nodes.data.transforms import EGO_FRAME, inverse

LIDAR_TOPIC, TRACKLETS = "/velodyne_points", "tracklet_labels.xml"
#: Columns of a file of the LiDAR, each float32.
POINT = ("x", "y", "z", "intensity")
_CAMERAS = range(4)
#: Mean radius of the earth that the development kit projects with, in metres.
_EARTH_M = 6_378_137.0
Matrix = npt.NDArray[np.float64]


def drives(folder: Path) -> list[tuple[str, Path]]:
    """Return the raw drives that a folder is or holds, by name."""
    depths = ("", "*", "*/*")
    for depth in depths:
        found = sorted(p.parent for p in folder.glob(f"{depth}/velodyne_points".lstrip("/")) if p.is_dir())
        if found:
            return [(drive.resolve().name, drive) for drive in found]
    return []


def load_raw(name: DatasetName, drive: Path) -> DatasetRecording:
    """Return a drive: LiDAR, rectified cameras, the vehicle's pose and tracklets, of each what is there.

    Raises UsageError: calibration, clouds or time stamps are missing. InfrastructureError: a table is damaged.
    """
    calibration, home = _calibration(drive)
    mount = _above_ground(name.number("height", LIDAR_HEIGHT_M))
    stamps_ns, clouds, tables = _files(drive / "velodyne_points", ".bin")
    transforms, sizes = TransformTopics(), dict(calibration.sizes)
    transforms.fix(EGO_FRAME, LIDAR_FRAME, mount)
    topics = [lidar_topic(stamps_ns, clouds)]
    for camera in (c for c in _CAMERAS if c in calibration.projections and (drive / f"image_{c:02d}").is_dir()):
        shown_ns, pictures, table = _files(drive / f"image_{camera:02d}", ".png")
        sizes.setdefault(camera, picture_size(pictures[0]))
        topics += camera_topics(calibration, camera, sizes[camera], shown_ns, pictures, name.raw_images)
        transforms.fix(LIDAR_FRAME, f"camera_{camera}", inverse(calibration.velo_to_camera(camera)))
        tables += table
    tables += [*_locate(drive, calibration, mount, transforms), *(p for p in home.glob("calib_*.txt") if p.is_file())]
    tracklets = [drive / TRACKLETS] if (drive / TRACKLETS).is_file() else []
    labels = _labels(tracklets, clouds, stamps_ns, calibration, sizes.get(2)) if tracklets else no_labels
    first_ns = min(topic.stamps_ns[0] for topic in topics)
    return DatasetRecording(name, [*topics, *transforms.topics(first_ns)], labels, tables, tracklets)


def _locate(drive: Path, calibration: KittiCalibration, mount: Matrix, transforms: TransformTopics) -> list[Path]:
    """Add the vehicle's poses, where they are recorded; return the files that they are in."""
    if not (drive / "oxts").is_dir() or calibration.imu_to_velo is None:
        return []
    stamps_ns, rows, table = _files(drive / "oxts", ".txt")
    base_in_imu = inverse(mount @ calibration.imu_to_velo)
    transforms.locate(stamps_ns, from_first([pose @ base_in_imu for pose in _poses(rows)]))
    return [*table, *rows]


def lidar_topic(stamps_ns: Sequence[int], files: Sequence[Path]) -> RecordedTopic:
    """Return the topic of KITTI's LiDAR."""
    return cloud_topic(
        LIDAR_TOPIC,
        LIDAR_FRAME,
        stamps_ns,
        files,
        load=lambda path: read_bin(path, POINT),
        store=lambda _, points: points_bytes(points[list(POINT)], ".bin"),
    )


def camera_topics(
    calibration: KittiCalibration,
    camera: int,
    size: tuple[int, int],
    stamps_ns: Sequence[int],
    files: Sequence[Path],
    raw: bool,
) -> list[RecordedTopic]:
    """Return pictures and intrinsics of a rectified camera."""
    frame = f"camera_{camera}"
    return [
        picture_topic(f"/image_{camera:02d}/image", frame, stamps_ns, files, raw),
        info_topic(
            f"/image_{camera:02d}/camera_info", stamps_ns, [pinhole(frame, size, calibration.intrinsics(camera))]
        ),
    ]


def _above_ground(height_m: float) -> Matrix:
    matrix = np.eye(4)
    matrix[2, 3] = height_m
    return matrix


def _calibration(drive: Path) -> tuple[KittiCalibration, Path]:
    homes = (drive, drive.absolute().parent)
    home = next((h for h in homes if (h / "calib_velo_to_cam.txt").is_file()), None)
    if home is None:
        raise UsageError(
            f"{drive}: no calib_velo_to_cam.txt in it or in {homes[1]}; KITTI offers it for each day apart"
        )
    return raw_calibration(home), home


def _files(folder: Path, suffix: str) -> tuple[list[int], list[Path], list[Path]]:
    """Return stamps and files of a sensor, and its table of stamps; a file's name is its line in the table."""
    table = folder / "timestamps.txt"
    if not table.is_file():
        raise UsageError(f"no {table}; expected KITTI's time stamps, one a line")
    files = sorted(p for p in (folder / "data").glob(f"*{suffix}") if p.stem.isdigit())
    if not files:
        raise UsageError(f"{folder / 'data'}: no *{suffix}; expected files such as 0000000000{suffix}")
    lines = table.read_text(encoding="utf-8").splitlines()
    if int(files[-1].stem) >= len(lines):
        raise InfrastructureError(f"{table}: has {len(lines)} lines, expected one for {files[-1].name}, too")
    return [_stamp_ns(lines[int(p.stem)], table) for p in files], files, [table]


def _stamp_ns(line: str, table: Path) -> int:
    """Return a time such as ``2011-09-26 13:02:25.594360375``; KITTI's clock is taken for UTC."""
    whole, _, fraction = line.strip().partition(".")
    try:
        second = datetime.strptime(whole, "%Y-%m-%d %H:%M:%S").replace(tzinfo=timezone.utc)
        return int(second.timestamp()) * 1_000_000_000 + int(fraction.ljust(9, "0")[:9])
    except ValueError as error:
        raise InfrastructureError(
            f"{table}: got '{line}', expected a time such as 2011-09-26 13:02:25.594360375"
        ) from error


def _poses(rows: Sequence[Path]) -> list[Matrix]:
    """Return the poses of the IMU in a Mercator map, scaled for the latitude of the first (readme of the raw kit)."""
    read = [np.array(path.read_text(encoding="utf-8").split(), dtype=np.float64) for path in rows]
    for path, row in zip(rows, read, strict=True):
        if len(row) < 6:
            raise InfrastructureError(f"{path}: got {len(row)} numbers, expected 30: lat lon alt roll pitch yaw …")
    scale = math.cos(math.radians(read[0][0]))
    return [_pose(row, scale) for row in read]


def _pose(row: Matrix, scale: float) -> Matrix:
    from mt_nodes.data.rotations import quaternion_of_rpy
    from mt_nodes.data.transforms import pose_matrix

    latitude, longitude, altitude, roll, pitch, yaw = row[:6].tolist()
    east = scale * math.radians(longitude) * _EARTH_M
    north = scale * _EARTH_M * math.log(math.tan(math.pi / 4 + math.radians(latitude) / 2))
    return pose_matrix((east, north, altitude), quaternion_of_rpy(roll, pitch, yaw))


def _labels(
    files: Sequence[Path],
    clouds: Sequence[Path],
    stamps_ns: Sequence[int],
    calibration: KittiCalibration,
    size: tuple[int, int] | None,
) -> LabelsAt:
    """Return the labels of each frame; a tracklet counts frames from 0."""
    boxes, frames = tracklet_boxes(files[0]), dict(zip(stamps_ns, (int(p.stem) for p in clouds), strict=True))
    if 2 not in calibration.projections or size is None:
        raise UsageError(
            f"{files[0]}: KITTI labels what camera 2 sees, and the calibration lacks P_rect_02 or S_rect_02"
        )

    def at(stamp_ns: int) -> GroundTruth | None:
        frame = frames.get(stamp_ns)
        return None if frame is None else ground_truth(boxes.get(frame, []), calibration, size)

    return at
