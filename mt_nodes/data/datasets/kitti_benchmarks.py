# SPDX-License-Identifier: Apache-2.0
"""KITTI's benchmarks: object detection (single frames), tracking and odometry (sequences)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.datasets.dataset_name import DatasetName
from mt_nodes.data.datasets.kitti_calibration import LIDAR_HEIGHT_M, KittiCalibration, benchmark_calibration
from mt_nodes.data.datasets.kitti_labels import LIDAR_FRAME, boxes_of_lines, ground_truth, tracked_boxes
from mt_nodes.data.datasets.kitti_raw import camera_topics, lidar_topic
from mt_nodes.data.datasets.picture_files import info_topic, picture_size, picture_topic, pinhole
from mt_nodes.data.datasets.recorded_topic import DatasetRecording, RecordedTopic, TransformTopics
from mt_nodes.data.ground_truth import GroundTruth, LabelsAt, no_labels
from mt_nodes.data.messages import CameraInfo
from mt_nodes.data.transforms import EGO_FRAME, MAP_FRAME, inverse

#: Between frames of a sequence, and between those of the object benchmark, which belong to no common drive.
_PERIOD_NS, _APART_NS = 100_000_000, 1_000_000_000
_CAMERAS = (2, 3)
_SPLITS = ("training", "testing")
Drives = list[tuple[str, Path]]


def object_sets(folder: Path) -> Drives:
    """Return the splits of the object benchmark that a folder is or holds."""
    found = [folder / split for split in _SPLITS if (folder / split).is_dir()] or [folder]
    return [(p.resolve().name, p) for p in found if (p / "calib").is_dir() and any((p / "velodyne").glob("*.bin"))]


def tracking_sequences(folder: Path) -> Drives:
    """Return the sequences of the tracking benchmark that a folder holds: of training, or its own."""
    home = next((folder / split for split in _SPLITS if (folder / split / "velodyne").is_dir()), folder)
    return [(p.name, home) for p in sorted((home / "velodyne").glob("*")) if p.is_dir() and p.name.isdigit()]


def odometry_sequences(folder: Path) -> Drives:
    """Return the sequences of the odometry benchmark that a folder is or holds."""
    homes = sorted((folder / "sequences").glob("*")) or [folder]
    return [(p.resolve().name, p) for p in homes if (p / "calib.txt").is_file() and (p / "velodyne").is_dir()]


def load_objects(name: DatasetName, home: Path) -> DatasetRecording:
    """Return a split of the object benchmark, its frames one second apart; each has a calibration of its own."""
    clouds = sorted((home / "velodyne").glob("*.bin"))
    stamps_ns = [i * _APART_NS for i in range(1, len(clouds) + 1)]
    calibrations = [_calibration(home / "calib" / f"{p.stem}.txt") for p in clouds]
    transforms, topics = _mounted(name), [lidar_topic(stamps_ns, clouds)]
    pictured = [_picture(home / "image_2", p.stem) for p in clouds if (home / "image_2").is_dir()]
    sizes = [picture_size(path) for path in pictured] or [(1242, 375)] * len(clouds)
    if pictured:
        infos = [pinhole("camera_2", s, c.intrinsics(2)) for s, c in zip(sizes, calibrations, strict=True)]
        topics += _camera(stamps_ns, pictured, infos, name.raw_images)
        for stamp_ns, calibration in zip(stamps_ns, calibrations, strict=True):
            transforms.move(stamp_ns, LIDAR_FRAME, "camera_2", inverse(calibration.velo_to_camera(2)))
    files = [home / "label_2" / f"{p.stem}.txt" for p in clouds]
    labels = _object_labels(files, stamps_ns, calibrations, sizes) if (home / "label_2").is_dir() else no_labels
    tables = [home / "calib" / f"{p.stem}.txt" for p in clouds]
    label_files = [path for path in files if path.is_file()]
    return DatasetRecording(name, [*topics, *transforms.topics(stamps_ns[0])], labels, tables, label_files)


def load_tracking(name: DatasetName, home: Path) -> DatasetRecording:
    """Return a sequence of the tracking benchmark."""
    clouds = sorted((home / "velodyne" / name.scene).glob("*.bin"))
    if not clouds:
        raise UsageError(f"{home / 'velodyne' / name.scene}: no *.bin; expected files such as 000000.bin")
    table, labels_file = home / "calib" / f"{name.scene}.txt", home / "label_02" / f"{name.scene}.txt"
    calibration = _calibration(table)
    stamps_ns = [(int(p.stem) + 1) * _PERIOD_NS for p in clouds]
    transforms, topics = _mounted(name), [lidar_topic(stamps_ns, clouds)]
    sizes = _add_cameras(
        name, calibration, {c: home / f"image_{c:02d}" / name.scene for c in _CAMERAS}, topics, transforms
    )
    labels: LabelsAt = no_labels
    if labels_file.is_file():
        boxes = tracked_boxes(labels_file, calibration)
        frames = {stamp_ns: int(p.stem) for stamp_ns, p in zip(stamps_ns, clouds, strict=True)}
        size = sizes.get(2, (1242, 375))

        def labels(stamp_ns: int) -> GroundTruth | None:
            if stamp_ns not in frames:
                return None
            return ground_truth(boxes.get(frames[stamp_ns], []), calibration, size)

    label_files = [labels_file] if labels_file.is_file() else []
    return DatasetRecording(name, [*topics, *transforms.topics(stamps_ns[0])], labels, [table], label_files)


def load_odometry(name: DatasetName, home: Path) -> DatasetRecording:
    """Return a sequence of the odometry benchmark, with the poses where they lie in ``poses/``."""
    clouds = sorted((home / "velodyne").glob("*.bin"))
    times = home / "times.txt"
    if not clouds or not times.is_file():
        raise UsageError(f"{home}: expected velodyne/*.bin and times.txt, one time a line in seconds")
    seconds = [float(word) for word in times.read_text(encoding="utf-8").split()]
    if int(clouds[-1].stem) >= len(seconds):
        raise InfrastructureError(f"{times}: has {len(seconds)} lines, expected one for {clouds[-1].name}, too")
    calibration = _calibration(home / "calib.txt")
    # Stamps of zero mean "unknown" in ROS.
    stamps_ns = [_APART_NS + round(seconds[int(p.stem)] * 1e9) for p in clouds]
    transforms, topics = _mounted(name), [lidar_topic(stamps_ns, clouds)]
    _add_cameras(name, calibration, {c: home / f"image_{c}" for c in _CAMERAS}, topics, transforms, seconds)
    tables, poses = [times, home / "calib.txt"], home.absolute().parent.parent / "poses" / f"{home.absolute().name}.txt"
    if poses.is_file():
        _add_poses(poses, calibration, clouds, stamps_ns, transforms, name)
        tables.append(poses)
    return DatasetRecording(name, [*topics, *transforms.topics(stamps_ns[0])], no_labels, tables)


def _mounted(name: DatasetName) -> TransformTopics:
    transforms, mount = TransformTopics(), np.eye(4)
    mount[2, 3] = name.number("height", LIDAR_HEIGHT_M)
    transforms.fix(EGO_FRAME, LIDAR_FRAME, mount)
    return transforms


def _add_cameras(
    name: DatasetName,
    calibration: KittiCalibration,
    folders: dict[int, Path],
    topics: list[RecordedTopic],
    transforms: TransformTopics,
    seconds: Sequence[float] | None = None,
) -> dict[int, tuple[int, int]]:
    """Add the cameras whose folders are there, and return their sizes."""
    sizes = {}
    for camera, folder in folders.items():
        pictures = sorted(folder.glob("*.png"))
        if not pictures or camera not in calibration.projections:
            continue
        numbers = [int(p.stem) for p in pictures]
        if seconds is not None and numbers[-1] >= len(seconds):
            raise InfrastructureError(f"{folder}: has {pictures[-1].name}, and times.txt {len(seconds)} lines")
        stamps_ns = [(n + 1) * _PERIOD_NS if seconds is None else _APART_NS + round(seconds[n] * 1e9) for n in numbers]
        sizes[camera] = picture_size(pictures[0])
        topics += camera_topics(calibration, camera, sizes[camera], stamps_ns, pictures, name.raw_images)
        transforms.fix(LIDAR_FRAME, f"camera_{camera}", inverse(calibration.velo_to_camera(camera)))
    return sizes


def _add_poses(
    path: Path,
    calibration: KittiCalibration,
    clouds: Sequence[Path],
    stamps_ns: Sequence[int],
    transforms: TransformTopics,
    name: DatasetName,
) -> None:
    """Add the poses of the rectified camera 0, as ``base_link`` in a map that begins where the vehicle does."""
    rows = np.array([line.split() for line in path.read_text(encoding="utf-8").splitlines()], dtype=np.float64)
    if rows.shape[1:] != (12,) or int(clouds[-1].stem) >= len(rows):
        raise InfrastructureError(f"{path}: got {rows.shape}, expected 12 numbers a line, one for each frame")
    mount = np.eye(4)
    mount[2, 3] = name.number("height", LIDAR_HEIGHT_M)
    base_to_rect = calibration.velo_to_rect @ inverse(mount)
    poses = [np.vstack([rows[int(p.stem)].reshape(3, 4), [0, 0, 0, 1]]) for p in clouds]
    first = inverse(poses[0] @ base_to_rect)
    for stamp_ns, pose in zip(stamps_ns, poses, strict=True):
        transforms.move(stamp_ns, MAP_FRAME, EGO_FRAME, first @ pose @ base_to_rect)


def _camera(
    stamps_ns: Sequence[int], files: Sequence[Path], infos: Sequence[CameraInfo], raw: bool
) -> list[RecordedTopic]:
    return [
        picture_topic("/image_02/image", "camera_2", stamps_ns, files, raw),
        info_topic("/image_02/camera_info", stamps_ns, infos),
    ]


def _object_labels(
    files: Sequence[Path],
    stamps_ns: Sequence[int],
    calibrations: Sequence[KittiCalibration],
    sizes: Sequence[tuple[int, int]],
) -> LabelsAt:
    frames = {stamp_ns: i for i, stamp_ns in enumerate(stamps_ns)}

    def at(stamp_ns: int) -> GroundTruth | None:
        i = frames.get(stamp_ns)
        if i is None or not files[i].is_file():
            return None
        lines = files[i].read_text(encoding="utf-8").splitlines()
        return ground_truth(boxes_of_lines(lines, calibrations[i], str(files[i])), calibrations[i], sizes[i])

    return at


def _calibration(path: Path) -> KittiCalibration:
    calibration = benchmark_calibration(path)
    if 2 not in calibration.projections:
        raise InfrastructureError(f"{path}: no P2, expected the projection of camera 2")
    return calibration


def _picture(folder: Path, stem: str) -> Path:
    path = folder / f"{stem}.png"
    if not path.is_file():
        raise UsageError(f"no {path}, although {folder.parent / 'velodyne'} has a frame {stem}")
    return path
