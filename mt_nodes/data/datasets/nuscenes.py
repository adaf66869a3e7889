# SPDX-License-Identifier: Apache-2.0
"""nuScenes: ``v1.0-*/*.json``, ``samples/`` and ``sweeps/``.

Source: Caesar et al., nuScenes: A multimodal dataset for autonomous driving, CVPR 2020, and the schema of its
development kit (https://www.nuscenes.org/nuscenes, "Data format"): quaternions are w, x, y, z, stamps microseconds; the
ego frame is the middle of the rear axle projected on the ground, which is our ``base_link``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.association import moved
from mt_nodes.data.datasets.dataset_name import DatasetName
from mt_nodes.data.datasets.json_tables import Row, by_token, table_rows
from mt_nodes.data.datasets.picture_files import info_topic, picture_topic, pinhole
from mt_nodes.data.datasets.point_files import points_bytes, read_bin
from mt_nodes.data.datasets.recorded_topic import (
    DatasetRecording,
    RecordedTopic,
    TransformTopics,
    cloud_topic,
    from_first,
)
from mt_nodes.data.ground_truth import GroundTruth, LabelsAt
from mt_nodes.data.messages import Points
from mt_nodes.data.outputs import Detections
from mt_nodes.data.transforms import EGO_FRAME, MAP_FRAME, inverse, pose_matrix

_KINDS = {"F": "f", "I": "i", "U": "u"}
_DATA = b"DATA binary\n"


def load_radar(path: Path) -> Points:
    """Return the detections (N,) of a file, with every field of its header.

    Raises InfrastructureError: it is no binary ``.pcd``, or holds fewer detections than it says.
    """
    head, _, body = path.read_bytes().partition(_DATA)
    rows = {line.split()[0]: line.split()[1:] for line in head.decode("latin-1").splitlines() if line.split()}
    try:
        columns = zip(rows["FIELDS"], rows["TYPE"], rows["SIZE"], strict=True)
        dtype = np.dtype([(name, f"<{_KINDS[kind]}{size}") for name, kind, size in columns])
        count = int(rows["POINTS"][0])
        return np.frombuffer(body, dtype, count)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        got = f"got {len(body)} bytes behind its header"
        text = f"{path}: {got}, expected a binary .pcd with FIELDS, TYPE, SIZE and POINTS: {error}"
        raise InfrastructureError(text) from error


def store_radar(path: Path, points: Any) -> bytes:
    """Return the content of a file with other detections of the same fields."""
    head = path.read_bytes().partition(_DATA)[0].decode("latin-1")
    for name in ("WIDTH", "POINTS"):
        head = re.sub(rf"(?m)^{name} \d+$", f"{name} {len(points)}", head)
    return b"".join((head.encode("latin-1"), _DATA, points.tobytes()))


#: Columns of ``.pcd.bin``, each float32.
POINT = ("x", "y", "z", "intensity", "ring")
LIDAR, ANNOTATIONS = "LIDAR_TOP", "sample_annotation.json"
#: Beginnings of nuScenes' categories, the first that fits counts -> our class.
_CLASSES = (
    ("vehicle.car", "car"),
    ("vehicle.emergency", "car"),
    ("vehicle.truck", "truck"),
    ("vehicle.construction", "truck"),
    ("vehicle.bus", "bus"),
    ("vehicle.trailer", "trailer"),
    ("vehicle.motorcycle", "motorcycle"),
    ("vehicle.bicycle", "bicycle"),
    ("human.pedestrian", "pedestrian"),
    ("movable_object.barrier", "barrier"),
    ("movable_object.trafficcone", "traffic_cone"),
    ("animal", "animal"),
)
#: A rider's bicycle is one object with its rider, so that ``cyclist`` is labelled, too.
_LABELLED = frozenset(label for _, label in _CLASSES) | {"cyclist"}


def scenes(name: DatasetName) -> list[str]:
    """Return the scenes of a version by name. Raises UsageError: there is no version, or several and none is chosen."""
    return sorted(row["name"] for row in table_rows(_tables(name) / "scene.json"))


def load(name: DatasetName) -> DatasetRecording:
    """Return a scene: key frames and sweeps of the LiDAR, all cameras and radars that are there, poses and annotations.

    Raises UsageError: clouds are missing. InfrastructureError: a table is damaged.
    """
    home, tables = name.path, _tables(name)
    scene = next(row for row in table_rows(tables / "scene.json") if row["name"] == name.scene)
    samples = {row["token"]: row for row in table_rows(tables / "sample.json", "scene_token", {scene["token"]})}
    mounts = _mounts(tables)
    channels = _channels(table_rows(tables / "sample_data.json", "sample_token", samples), mounts)
    present = {channel: found for channel, rows in channels.items() if (found := _present(home, channel, rows))}
    if LIDAR not in present:
        raise UsageError(f"{name}: no clouds; expected {home / 'samples' / LIDAR}/*.pcd.bin and sweeps/ beside it")
    topics, transforms = [], TransformTopics()
    for channel, rows in present.items():
        mount = mounts[rows[0]["calibrated_sensor_token"]]
        transforms.fix(EGO_FRAME, channel, _pose(mount))
        topics += _topics(home, channel, rows, mount, name.raw_images)
    frames = present[LIDAR]
    poses = by_token(tables / "ego_pose.json", {row["ego_pose_token"] for row in frames})
    placed = [_pose(poses[row["ego_pose_token"]]) for row in frames]
    stamps_ns = [_stamp_ns(row) for row in frames]
    transforms.locate(stamps_ns, from_first(placed))
    labels = _labels(tables, {t: (row, pose) for t, row, pose in zip(stamps_ns, frames, placed, strict=True)})
    first_ns = min(topic.stamps_ns[0] for topic in topics)
    tops = sorted(topics, key=lambda topic: not topic.topic.startswith(f"/{LIDAR}"))
    files = sorted(tables.glob("*.json"))
    label_files = [path for path in files if path.name == ANNOTATIONS]
    others = [path for path in files if path not in label_files]
    return DatasetRecording(name, [*tops, *transforms.topics(first_ns)], labels, others, label_files)


def _tables(name: DatasetName) -> Path:
    asked = name.options.get("version", "")
    found = sorted(p for p in name.path.glob(asked or "v1.0-*") if (p / "scene.json").is_file())
    if not found:
        raise UsageError(f"{name}: no tables; expected {name.path / (asked or 'v1.0-*')}/scene.json")
    if len(found) > 1:
        versions = ", ".join(p.name for p in found)
        raise UsageError(f"{name}: has {versions}; choose one with ,version={found[0].name}")
    return found[0]


def _mounts(tables: Path) -> dict[str, Row]:
    """Return the mounted sensors by token, each with its ``channel``."""
    sensors = by_token(tables / "sensor.json")
    rows = by_token(tables / "calibrated_sensor.json")
    return {token: {**row, **sensors[row["sensor_token"]]} for token, row in rows.items()}


def _channels(rows: Sequence[Row], mounts: Mapping[str, Row]) -> dict[str, list[Row]]:
    """Return the messages of LiDAR, cameras and radars by channel, in the order of their stamps."""
    channels: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        sensor = mounts.get(row["calibrated_sensor_token"], {})
        if sensor.get("modality") in ("lidar", "camera", "radar"):
            channels[sensor["channel"]].append(row)
    return {channel: sorted(channels[channel], key=_stamp_ns) for channel in sorted(channels)}


def _present(home: Path, channel: str, rows: Sequence[Row]) -> list[Row]:
    """Return the messages whose files are there: all, the key frames where no sweep was unpacked, or none."""
    if not (home / "samples" / channel).is_dir():
        return []
    wanted = [row for row in rows if row["is_key_frame"] or (home / "sweeps" / channel).is_dir()]
    missing = [row["filename"] for row in wanted if not (home / row["filename"]).is_file()]
    if missing and len(missing) == len(wanted):
        return []
    if missing:
        raise UsageError(
            f"{home}: {len(missing)} of {len(wanted)} files of {channel} are missing, such as {missing[0]}"
        )
    return wanted


def _topics(home: Path, channel: str, rows: Sequence[Row], mount: Row, raw: bool) -> list[RecordedTopic]:
    stamps_ns, files = [_stamp_ns(row) for row in rows], [home / row["filename"] for row in rows]
    if mount["modality"] == "lidar":
        return [cloud_topic(f"/{channel}", channel, stamps_ns, files, _load_points, _store_points)]
    if mount["modality"] == "radar":
        return [cloud_topic(f"/{channel}", channel, stamps_ns, files, load_radar, store_radar, radar=True)]
    size = int(rows[0]["width"]), int(rows[0]["height"])
    info = pinhole(channel, size, np.array(mount["camera_intrinsic"], dtype=np.float64).reshape(3, 3))
    return [
        picture_topic(f"/{channel}/image", channel, stamps_ns, files, raw),
        info_topic(f"/{channel}/camera_info", stamps_ns, [info]),
    ]


def _load_points(path: Path) -> Any:
    return read_bin(path, POINT)


def _store_points(_: Path, points: Any) -> bytes:
    return points_bytes(points[list(POINT)], ".bin")


def _stamp_ns(row: Row) -> int:
    return int(row["timestamp"]) * 1000


def _pose(row: Row) -> Floats:
    try:
        w, x, y, z = row["rotation"]
        return pose_matrix(row["translation"], (x, y, z, w))
    except (KeyError, TypeError, ValueError) as error:
        raise InfrastructureError(
            f"nuScenes row {row.get('token')}: no pose of translation and rotation: {error}"
        ) from error


def _labels(tables: Path, frames: Mapping[int, tuple[Row, Floats]]) -> LabelsAt:
    """Return the annotations of each key frame of the LiDAR; between them nothing is labelled."""
    keys = {row["sample_token"] for row, _ in frames.values() if row["is_key_frame"]}
    path = tables / ANNOTATIONS
    rows = table_rows(path, "sample_token", keys) if path.is_file() else []
    categories = _categories(tables, {row["instance_token"] for row in rows}) if rows else {}
    boxes: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        boxes[row["sample_token"]].append(row)

    def at(stamp_ns: int) -> GroundTruth | None:
        frame, pose = frames.get(stamp_ns, (None, None))
        if frame is None or pose is None or not frame["is_key_frame"] or not rows:
            return None  # a split without annotations, such as v1.0-test, says nothing of what is there
        return _truth(boxes[frame["sample_token"]], categories, pose)

    return at


def _categories(tables: Path, instances: set[str]) -> dict[str, str]:
    """Return our class of each instance."""
    names = {token: row["name"] for token, row in by_token(tables / "category.json").items()}
    rows = by_token(tables / "instance.json", instances)
    return {token: _class_of(names[row["category_token"]]) for token, row in rows.items()}


def _class_of(category: str) -> str:
    return next((label for start, label in _CLASSES if category.startswith(start)), "unknown")


def _truth(rows: Sequence[Row], classes: Mapping[str, str], pose: Floats) -> GroundTruth:
    """Return annotations, which stand in the global frame, as boxes in that of the ego vehicle."""
    turned = [_pose(row) for row in rows]
    objects = Detections.make(
        MAP_FRAME,
        None,
        [row["translation"] for row in rows],
        [(row["size"][1], row["size"][0], row["size"][2]) for row in rows],
        [float(np.arctan2(matrix[1, 0], matrix[0, 0])) for matrix in turned],
        [classes[row["instance_token"]] for row in rows],
        track_id=[row["instance_token"] for row in rows],
    )
    points = np.array([int(row.get("num_lidar_pts", -1)) for row in rows], dtype=np.int64)
    return GroundTruth(moved(objects, inverse(pose), EGO_FRAME), _LABELLED, points)
