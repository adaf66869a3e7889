# SPDX-License-Identifier: Apache-2.0
"""Argoverse 2, Sensor Dataset: a folder a log, with ``sensors/``, ``calibration/`` and poses in Feather.

Source: Wilson et al., Argoverse 2, NeurIPS 2021, and its user guide ("Sensor Dataset", "Dataset Structure Format"):
clouds and cuboids stand in the ego vehicle's frame, the middle of the rear axle; pictures are undistorted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Mask
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.datasets.dataset_name import DatasetName
from mt_nodes.data.datasets.feather_tables import arrow, read_feather
from mt_nodes.data.datasets.picture_files import info_topic, picture_topic, pinhole
from mt_nodes.data.datasets.recorded_topic import (
    DatasetRecording,
    RecordedTopic,
    TransformTopics,
    cloud_topic,
    from_first,
)
from mt_nodes.data.ground_truth import GroundTruth, LabelsAt, no_labels
from mt_nodes.data.messages import Points
from mt_nodes.data.outputs import Detections
from mt_nodes.data.transforms import EGO_FRAME, inverse, move, pose_matrix

Matrix = npt.NDArray[np.float64]
DATASET = "argoverse2"
#: The data set's frame, and that of the upper LiDAR, where we give the clouds: rays begin there.
AXLE_FRAME, LIDAR_FRAME = "egovehicle", "up_lidar"
#: Height of the rear axle above the road, in metres: the radius of a wheel of the Ford Fusion.
AXLE_HEIGHT_M = 0.33
#: Beyond the drivable area, objects are labelled up to here.
LABELLED_BESIDE_M = 5.0
_POSE = ("qw", "qx", "qy", "qz", "tx_m", "ty_m", "tz_m")
_POINT = ("x", "y", "z", "intensity", "laser_number", "offset_ns")
_INTRINSICS = ("sensor_name", "fx_px", "fy_px", "cx_px", "cy_px", "height_px", "width_px")
_BOX = ("timestamp_ns", "track_uuid", "category", "length_m", "width_m", "height_m", *_POSE, "num_interior_pts")
#: Argoverse's category -> our class; others keep their own name in small letters.
_CLASSES = {
    "REGULAR_VEHICLE": "car",
    "LARGE_VEHICLE": "truck",
    "BOX_TRUCK": "truck",
    "TRUCK": "truck",
    "TRUCK_CAB": "truck",
    "VEHICULAR_TRAILER": "trailer",
    "BUS": "bus",
    "SCHOOL_BUS": "bus",
    "ARTICULATED_BUS": "bus",
    "MOTORCYCLIST": "motorcycle",
    "BICYCLIST": "cyclist",
    "CONSTRUCTION_CONE": "traffic_cone",
    "OFFICIAL_SIGNALER": "pedestrian",
}
_LABELLED = frozenset(
    {"car", "truck", "trailer", "bus", "motorcycle", "bicycle", "cyclist", "pedestrian", "traffic_cone"}
)


def scenes(name: DatasetName) -> list[str]:
    """Return the logs that a folder is or holds, also one with a folder for each split. Raises UsageError: none."""
    return [log.resolve().name for log in _logs(name)]


def load(name: DatasetName) -> DatasetRecording:
    """Return a log: the clouds of both LiDARs together, cameras, poses and cuboids.

    Raises UsageError: files or PyArrow are missing. InfrastructureError: a table is damaged.
    """
    log = next(log for log in _logs(name) if log.resolve().name == name.scene)
    mounts = _poses_by(log / "calibration" / "egovehicle_SE3_sensor.feather", "sensor_name")
    if LIDAR_FRAME not in mounts:
        raise UsageError(f"{log}: its calibration has {', '.join(map(str, mounts))}, expected {LIDAR_FRAME} among them")
    clouds = _numbered(log / "sensors" / "lidar", ".feather")
    stamps_ns = [int(p.stem) for p in clouds]
    topics, transforms = [_lidar(stamps_ns, clouds, mounts[LIDAR_FRAME])], TransformTopics()
    axle = np.eye(4)
    axle[2, 3] = name.number("height", AXLE_HEIGHT_M)
    transforms.fix(EGO_FRAME, AXLE_FRAME, axle)
    for sensor, mount in mounts.items():
        transforms.fix(AXLE_FRAME, str(sensor), mount)
    topics += _cameras(log, name.raw_images)
    poses = _poses_by(log / "city_SE3_egovehicle.feather", "timestamp_ns")
    placed_ns = sorted(poses)
    transforms.locate(placed_ns, from_first([poses[t] @ inverse(axle) for t in placed_ns]))
    tables = [p for p in sorted(log.rglob("*")) if p.is_file() and "sensors" not in p.relative_to(log).parts]
    cuboids = log / "annotations.feather"
    label_files = [cuboids] if cuboids.is_file() else []
    labels = _labels(cuboids, stamps_ns, poses, _labelled_outlines(log)) if label_files else no_labels
    first_ns = min(topic.stamps_ns[0] for topic in topics)
    rest = [p for p in tables if p not in label_files]
    return DatasetRecording(name, [*topics, *transforms.topics(first_ns)], labels, rest, label_files)


def _logs(name: DatasetName) -> list[Path]:
    for pattern in ("sensors/lidar", "*/sensors/lidar", "*/*/sensors/lidar"):
        if found := sorted(p.parent.parent for p in name.path.glob(pattern) if p.is_dir()):
            return found
    raise UsageError(f"{name}: no log; expected {name.path}/<log>/sensors/lidar/<stamp>.feather")


def _numbered(folder: Path, suffix: str) -> list[Path]:
    """Return the files of a folder whose names are stamps in nanoseconds, in their order."""
    files = sorted((p for p in folder.glob(f"*{suffix}") if p.stem.isdigit()), key=lambda p: int(p.stem))
    if not files:
        raise UsageError(f"{folder}: no *{suffix}; expected files such as 315968867659956000{suffix}")
    return files


def _lidar(stamps_ns: Sequence[int], files: Sequence[Path], mount: Matrix) -> RecordedTopic:
    """Return the clouds in the frame of the upper LiDAR, ego motion compensated as in the data set."""
    to_lidar = inverse(mount)

    def load_points(path: Path) -> Points:
        columns = read_feather(path, _POINT, DATASET)
        # A PointCloud2 has no numbers of 16 bits with a fraction: coordinates become float32.
        xyz = move(to_lidar, np.column_stack([columns[axis].astype(np.float64) for axis in "xyz"])).astype(np.float32)
        made = np.empty(len(xyz), _layout(columns))
        for i, axis in enumerate("xyz"):
            made[axis] = xyz[:, i]
        for field in _POINT[3:]:
            made[field] = columns[field]
        return made

    def store_points(path: Path, points: Points) -> bytes:
        xyz = move(mount, np.column_stack([points[axis] for axis in "xyz"]))
        given = read_feather(path, _POINT, DATASET)
        rows = {axis: xyz[:, i].astype(given[axis].dtype) for i, axis in enumerate("xyz")}
        rows |= {field: points[field].astype(given[field].dtype) for field in _POINT[3:]}
        return _feather_bytes(rows)

    return cloud_topic("/lidar", LIDAR_FRAME, stamps_ns, files, load_points, store_points)


def _layout(columns: Mapping[str, Any]) -> np.dtype[Any]:
    # Time within the sweep in nanoseconds fits int32: a sweep lasts 0.1 s.
    kinds = {"intensity": "u1", "laser_number": "u1", "offset_ns": "<i4"}
    return np.dtype([(name, kinds.get(name, "<f4")) for name in columns])


def _feather_bytes(columns: Mapping[str, Any]) -> bytes:
    import io

    table, file = arrow("lib", DATASET).table(dict(columns)), io.BytesIO()
    arrow("feather", DATASET).write_feather(table, file, compression="uncompressed")
    return file.getvalue()


def _cameras(log: Path, raw: bool) -> list[RecordedTopic]:
    rows = read_feather(log / "calibration" / "intrinsics.feather", _INTRINSICS, DATASET)
    topics = []
    for i, sensor in enumerate(map(str, rows["sensor_name"])):
        if not (log / "sensors" / "cameras" / sensor).is_dir():
            continue
        files = _numbered(log / "sensors" / "cameras" / sensor, ".jpg")
        fx, fy, cx, cy = (float(rows[name][i]) for name in _INTRINSICS[1:5])
        k = np.array([[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]])
        info = pinhole(sensor, (int(rows["width_px"][i]), int(rows["height_px"][i])), k)
        stamps_ns = [int(p.stem) for p in files]
        topics += [
            picture_topic(f"/{sensor}/image", sensor, stamps_ns, files, raw),
            info_topic(f"/{sensor}/camera_info", stamps_ns, [info]),
        ]
    return topics


def _poses_by(path: Path, key: str) -> dict[Any, Matrix]:
    columns = read_feather(path, (key, *_POSE), DATASET)
    rows = np.column_stack([columns[name] for name in _POSE]).astype(np.float64).tolist()
    return {k: pose_matrix(t, (x, y, z, w)) for k, (w, x, y, z, *t) in zip(columns[key].tolist(), rows, strict=True)}


def _labelled_outlines(log: Path) -> list[Matrix]:
    """Return the outlines (N, 3), in the city, within which objects are labelled: 5 m around the drivable area.

    Source: user guide, "Sensor Dataset Taxonomy"; the map's ``drivable_areas``. A log without a map has none: then no
    detection without a label can be called false.
    """
    import shapely

    found = []
    for path in sorted(log.glob("map/log_map_archive_*.json")):
        try:
            areas = json.loads(path.read_text(encoding="utf-8"))["drivable_areas"].values()
            corners = [[(p["x"], p["y"], p.get("z", 0.0)) for p in area["area_boundary"]] for area in areas]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InfrastructureError(f"{path}: has no drivable areas of Argoverse 2: {error!r}") from error
        for outline in (np.array(rows, dtype=np.float64) for rows in corners):
            wide = shapely.Polygon(outline[:, :2]).buffer(LABELLED_BESIDE_M)
            xy = np.array(wide.exterior.coords)
            found.append(np.column_stack([xy, np.full(len(xy), outline[:, 2].mean())]))
    return found


def _labels(path: Path, stamps_ns: Sequence[int], poses: Mapping[int, Matrix], outlines: Sequence[Matrix]) -> LabelsAt:
    columns, known = read_feather(path, _BOX, DATASET), frozenset(stamps_ns) & set(poses)

    def at(stamp_ns: int) -> GroundTruth | None:
        if stamp_ns not in known:
            return None
        to_axle = inverse(poses[stamp_ns])
        areas = tuple(tuple((float(x), float(y)) for x, y, _ in move(to_axle, outline)) for outline in outlines)
        return _truth(columns, columns["timestamp_ns"] == stamp_ns, areas)

    return at


def _truth(columns: Mapping[str, Any], chosen: Mask, areas: tuple[tuple[tuple[float, float], ...], ...]) -> GroundTruth:
    rows = {name: columns[name][chosen] for name in _BOX}
    w, x, y, z = (rows[name].astype(np.float64) for name in _POSE[:4])
    objects = Detections.make(
        AXLE_FRAME,
        None,
        np.column_stack([rows[name] for name in _POSE[4:]]),
        np.column_stack([rows[name] for name in ("length_m", "width_m", "height_m")]),
        np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)),
        [_CLASSES.get(category, str(category).lower()) for category in rows["category"]],
        track_id=[str(track) for track in rows["track_uuid"]],
    )
    return GroundTruth(objects, _LABELLED, rows["num_interior_pts"].astype(np.int64), areas)
