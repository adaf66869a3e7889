# SPDX-License-Identifier: Apache-2.0
"""A2D2, sensor fusion sequences: scenes ``YYYYMMDD_hhmmss`` with cameras, the LiDAR points that each sees, bus signals.

Source: Geyer et al., A2D2: Audi Autonomous Driving Dataset, arXiv 2004.06320; its ``README-SensorFusion.txt`` and
tutorial; JSON schemata and FAQ (answered by the A2D2 team) of https://github.com/ros-box/a2d2_to_ros. Stamps are
microseconds since 1970, UTC. A view of ``cams_lidars.json`` is a frame by its origin in m and two axes in the vehicle's
frame; that of a camera has x along the line of sight, y to the left, z up. Pictures are distorted as the lens does it,
by ``CamMatrixOriginal`` and ``Distortion`` (four numbers of OpenCV's fisheye model, five of its ordinary one), and
rectified by ``CamMatrix``, which the tutorial calls the new camera matrix.

A cloud is what one camera sees at the time of its picture: points of all five LiDARs of about 0.2 s, two revolutions,
moved by the vehicle's motion to that time, in the frame of the camera's view. Pictures come 30 times a second, so a
point returns in up to six clouds, and in those of cameras whose views overlap
(https://github.com/tum-gis/a2d2_ros_preparer, "Dataset Preparation"). ``rectime`` has the cameras' clock. That points
stand in the camera's view, and not in the vehicle's frame, is the converter's reading
(``sensor_fusion_bus_signals_to_ros.cpp``); a frame whose ``pcld_view`` says otherwise is refused.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.cdr import codec
from mt_nodes.data.datasets.a2d2_bus import STEERING_RATIO, bus_topics, read_json
from mt_nodes.data.datasets.dataset_name import DatasetName, by_folder_name
from mt_nodes.data.datasets.picture_files import info_topic, picture_topic, pinhole
from mt_nodes.data.datasets.point_files import numpy_arrays
from mt_nodes.data.datasets.recorded_topic import DatasetRecording, RecordedTopic, TransformTopics
from mt_nodes.data.messages import CameraInfo, Cloud, Points
from mt_nodes.data.transforms import EGO_FRAME

Matrix = npt.NDArray[np.float64]
CONFIGURATION, VEHICLE_FRAME = "cams_lidars.json", "vehicle"
CAMERAS = ("front_center", "front_left", "front_right", "side_left", "side_right", "rear_center")
#: From the axes of a lens (x right, y down, z ahead) to those of a view.
_LENS = np.array([[0.0, 0.0, 1.0, 0.0], [-1.0, 0.0, 0.0, 0.0], [0.0, -1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
_LENSES = {"Fisheye": ("equidistant", 4), "Telecam": ("plumb_bob", 5)}
_US_NS = 1000
_POINT = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "u1"), ("lidar_id", "u1"), ("time", "<f4")])
#: Two views are one if they differ by no more, in m and in parts of a unit vector.
_SAME = 1e-4


class StampedFile(NamedTuple):
    """A picture's ``.json``: its stamp, and where its picture and cloud lie, if they do."""

    stamp_ns: int
    file: Path


def scenes(name: DatasetName) -> list[str]:
    """Return the scenes that a folder is or holds. Raises UsageError: there is none."""
    return list(_homes(name))


def load(name: DatasetName) -> DatasetRecording:
    """Return a scene: of each camera its pictures and the LiDAR points that it sees, of the bus the driver's motion.

    Raises UsageError: calibration or all frames are missing. InfrastructureError: a file is damaged, or one that
    belongs to another is missing.
    """
    home = _homes(name)[name.scene]
    path = _configuration(home)
    configuration, transforms = read_json(path), TransformTopics()
    transforms.fix(EGO_FRAME, VEHICLE_FRAME, _raised(_height(path, configuration, name)))
    clouds: list[RecordedTopic] = []
    pictures: list[RecordedTopic] = []
    tables = [path]
    for camera in CAMERAS:
        if not any((home / kind / f"cam_{camera}").is_dir() for kind in ("camera", "lidar")):
            continue
        view, info = _view(path, configuration, camera), _info(path, configuration, camera)
        frames = _frames(home, camera, view)
        transforms.fix(VEHICLE_FRAME, camera, view)
        transforms.fix(camera, info.frame_id, _LENS)
        clouds += _cloud_topic(home, camera, frames)
        pictures += _picture_topics(camera, frames, info, name.raw_images)
        tables += [frame.file for frame in frames]
    if not clouds and not pictures:
        raise UsageError(f"{name}: {home}: no frames; expected camera/cam_front_center/*.json with *.png beside them")
    bus = _bus(home)
    topics = [*clouds, *pictures, *(bus_topics(bus, name.number("ratio", STEERING_RATIO)) if bus else ())]
    first_ns = min(topic.stamps_ns[0] for topic in topics)
    return DatasetRecording(name, [*topics, *transforms.topics(first_ns)], tables=[*tables, *([bus] if bus else ())])


def _homes(name: DatasetName) -> dict[str, Path]:
    for pattern in ("", "*/", "*/*/", "*/*/*/"):
        found = {p.parent.parent for p in name.path.glob(f"{pattern}camera/cam_*") if p.is_dir()}
        if found:
            return by_folder_name(sorted(found))
    raise UsageError(f"{name}: no scene; expected {name.path}/<YYYYMMDD_hhmmss>/camera/cam_front_center and lidar/ …")


def _configuration(home: Path) -> Path:
    """Return ``cams_lidars.json``, which is published apart from the scenes: beside them or in a folder above."""
    places = [home, *home.resolve().parents[:3]]
    found = next((place / CONFIGURATION for place in places if (place / CONFIGURATION).is_file()), None)
    if found is None:
        raise UsageError(f"{home}: no {CONFIGURATION}; expected the data set's file in it or up to three folders above")
    return found


def _bus(home: Path) -> Path | None:
    """Return the file of bus signals, None where it was not downloaded."""
    date = home.resolve().name.replace("_", "")
    patterns = ("bus/*_bus_signals.json", "*_bus_signals.json", f"../bus/{date}*.json", f"../{date}_bus_signals.json")
    return next((path for pattern in patterns for path in sorted(home.glob(pattern))), None)


def _frames(home: Path, camera: str, view: Matrix) -> list[StampedFile]:
    """Return the frames of a camera in the order of their stamps; their numbers mean nothing across cameras."""
    files = sorted((home / "camera" / f"cam_{camera}").glob("*.json"))
    clouds = {_frame_of(p) for p in (home / "lidar" / f"cam_{camera}").glob("*.npz")}
    pictures = {p.with_suffix(".json").name for p in (home / "camera" / f"cam_{camera}").glob("*.png")}
    if missing := sorted((clouds | pictures) - {p.name for p in files}):
        lost = home / "camera" / f"cam_{camera}" / missing[0]
        raise InfrastructureError(f"{lost}: there is no such file, which has the stamp of its picture and cloud")
    frames, seen = [], None
    for path in (p for p in files if p.name in clouds | pictures):
        row = read_json(path)
        if row.get("pcld_view", seen) != seen:
            _refuse_other_view(path, row, view)
            seen = row["pcld_view"]
        frames.append(StampedFile(_stamp_ns(path, row), path))
    frames.sort()
    for before, after in pairwise(frames):
        if before.stamp_ns == after.stamp_ns:
            raise InfrastructureError(f"{after.file}: has the stamp of {before.file.name}")
    return frames


def _frame_of(cloud: Path) -> str:
    return cloud.with_suffix(".json").name.replace("_lidar_", "_camera_")


def _stamp_ns(path: Path, row: Mapping[str, Any]) -> int:
    stamp = row.get("cam_tstamp")
    if not isinstance(stamp, int) or stamp <= 0:
        raise InfrastructureError(f"{path}: cam_tstamp: got {stamp}, expected microseconds since 1970")
    return stamp * _US_NS


def _refuse_other_view(path: Path, row: Mapping[str, Any], view: Matrix) -> None:
    """Refuse a frame whose points stand in another frame than the camera's view."""
    if not np.allclose(_matrix(path, row, "pcld_view"), view, atol=_SAME):
        raise InfrastructureError(f"{path}: pcld_view is not the camera's view of {CONFIGURATION}")


def _view(path: Path, configuration: Any, camera: str) -> Matrix:
    try:
        row = configuration["cameras"][camera]
    except (KeyError, TypeError) as error:
        raise InfrastructureError(f"{path}: lacks cameras.{camera}: {error!r}") from error
    return _matrix(path, row, "view")


def _matrix(path: Path, row: Any, key: str) -> Matrix:
    """Return the pose (4, 4) of a view in the vehicle's frame; the y axis is made square to x, as the tutorial does."""
    try:
        origin, x, y = (np.array(row[key][part], dtype=np.float64) for part in ("origin", "x-axis", "y-axis"))
        z = np.cross(x, y)
        axes = np.column_stack([x, np.cross(z, x), z])
        lengths = np.linalg.norm(axes, axis=0)
        if not (lengths > 1e-6).all() or not np.isfinite(origin).all():
            raise ValueError(f"axes {x.tolist()} and {y.tolist()} span no plane")
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = axes / lengths, origin
    except (KeyError, TypeError, ValueError) as error:
        raise InfrastructureError(f"{path}: {key}: expected origin, x-axis and y-axis: {error!r}") from error
    return pose


def _info(path: Path, configuration: Any, camera: str) -> CameraInfo:
    row = configuration["cameras"][camera]
    try:
        model, count = _LENSES[row["Lens"]]
        distortion = np.array(row["Distortion"], dtype=np.float64).reshape(count)
        k, rectified = (np.array(row[n], dtype=np.float64).reshape(3, 3) for n in ("CamMatrixOriginal", "CamMatrix"))
        width, height = (int(v) for v in row["Resolution"])
    except (KeyError, TypeError, ValueError) as error:
        expected = "expected Lens, Distortion, CamMatrixOriginal, CamMatrix and Resolution"
        raise InfrastructureError(f"{path}: cameras.{camera}: {expected}: {error!r}") from error
    info = pinhole(f"{camera}_optical", (width, height), k, distortion.tolist())
    return replace(info, distortion_model=model, p=np.column_stack([rectified, np.zeros(3)]))


def _height(path: Path, configuration: Any, name: DatasetName) -> float:
    """Return how high the vehicle's frame is above the road, in m.

    Assumed: the box of ``ego-dimensions`` stands on it, since it is as high as the vehicle.
    """
    if "height" in name.options:
        return name.number("height", 0.0)
    try:
        low, high = (float(v) for v in configuration["vehicle"]["ego-dimensions"]["z-range"])
    except (KeyError, TypeError, ValueError) as error:
        expected = "expected vehicle.ego-dimensions.z-range; give the height with ,height=M"
        raise InfrastructureError(f"{path}: {expected}: {error!r}") from error
    if not low < high:
        raise InfrastructureError(f"{path}: vehicle.ego-dimensions.z-range: got {low} to {high}")
    return -low


def _raised(height_m: float) -> Matrix:
    pose = np.eye(4)
    pose[2, 3] = height_m
    return pose


def _picture_topics(camera: str, frames: Sequence[StampedFile], info: CameraInfo, raw: bool) -> list[RecordedTopic]:
    shown = [(frame.stamp_ns, p) for frame in frames if (p := frame.file.with_suffix(".png")).is_file()]
    if not shown:
        return []
    stamps_ns = [stamp_ns for stamp_ns, _ in shown]
    return [
        picture_topic(f"/{camera}/image", info.frame_id, stamps_ns, [p for _, p in shown], raw),
        info_topic(f"/{camera}/camera_info", stamps_ns, [info]),
    ]


def _cloud_topic(home: Path, camera: str, frames: Sequence[StampedFile]) -> list[RecordedTopic]:
    """Return the clouds; they are not written: of moved points nobody knows what row, column and depth would be."""
    files = {_frame_of(path): path for path in (home / "lidar" / f"cam_{camera}").glob("*.npz")}
    found = [(frame.stamp_ns, files[frame.file.name]) for frame in frames if frame.file.name in files]
    if not found:
        return []
    stamps_ns, topic = [stamp_ns for stamp_ns, _ in found], f"/lidar_{camera}"

    def read(i: int) -> bytes:
        return codec.encode_cloud(Cloud(topic, found[i][0], camera, read_points(found[i][1], found[i][0])))

    return [RecordedTopic(topic, codec.POINT_CLOUD, stamps_ns, read, [path for _, path in found])]


def read_points(path: Path, stamp_ns: int) -> Points:
    """Return the points (N,) that are valid: x y z in m, intensity 0 to 255, LiDAR, and time after a stamp in s.

    Coordinates become float32, in which they were recorded. Raises InfrastructureError: the file is damaged.
    """
    try:
        columns = {key.rpartition(".")[2].removeprefix("pcloud_"): array for key, array in numpy_arrays(path).items()}
        xyz = columns["points"].reshape(-1, 3)
        valid = columns["valid"].astype(bool) if "valid" in columns else np.ones(len(xyz), dtype=bool)
        made = np.zeros(int(valid.sum()), _POINT)
        for i, axis in enumerate("xyz"):
            made[axis] = xyz[valid, i]
        for field, key in (("intensity", "reflectance"), ("lidar_id", "lidar_id")):
            values = columns[key][valid]
            if len(values) and not 0 <= values.min() <= values.max() <= 255:
                raise ValueError(f"{key} from {values.min()} to {values.max()}, expected 0 to 255")
            made[field] = values
        if "rectime" in columns:
            made["time"] = (columns["rectime"][valid] - stamp_ns // _US_NS) * 1e-6
    except (OSError, EOFError, KeyError, ValueError, IndexError, zipfile.BadZipFile, zlib.error) as error:
        expected = "expected an .npz with pcloud_points, pcloud_attr.reflectance and pcloud_attr.lidar_id"
        raise InfrastructureError(f"{path}: {expected}: {error}") from error
    return made
