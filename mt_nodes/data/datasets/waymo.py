# SPDX-License-Identifier: Apache-2.0
"""Waymo Open Dataset, Perception, format 2 (Parquet): a folder a component, a file a segment.

Source: Sun et al., Scalability in Perception for Autonomous Driving: Waymo Open Dataset, CVPR 2020, and the components
that its development kit describes (``v2/perception``). Format 1 (``.tfrecord``) needs TensorFlow and is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.cdr import codec
from mt_nodes.data.datasets.dataset_name import DatasetName
from mt_nodes.data.datasets.feather_tables import arrow
from mt_nodes.data.datasets.picture_files import info_topic, picture_message, pinhole
from mt_nodes.data.datasets.range_image import RangeImageModel
from mt_nodes.data.datasets.recorded_topic import DatasetRecording, RecordedTopic, TransformTopics, from_first
from mt_nodes.data.ground_truth import GroundTruth, LabelsAt, no_labels
from mt_nodes.data.messages import Cloud
from mt_nodes.data.outputs import Detections
from mt_nodes.data.transforms import EGO_FRAME

DATASET = "waymo"
#: The LiDAR on the roof, and its name in the data set.
LIDAR_FRAME, TOP = "lidar_top", 1
_CAMERA_NAMES = {1: "front", 2: "front_left", 3: "front_right", 4: "side_left", 5: "side_right"}
#: From a camera as ROS has it (z ahead, x to the right) to Waymo's (x ahead, z up).
_FROM_OPTICAL = np.array([[0.0, 0.0, 1.0, 0.0], [-1.0, 0.0, 0.0, 0.0], [0.0, -1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
_CLASSES = {1: "car", 2: "pedestrian", 3: "sign", 4: "cyclist"}
#: ``car`` stands for every vehicle here.
_LABELLED = frozenset({"car", "truck", "bus", "motorcycle", "pedestrian", "cyclist"})
_STAMP, _LASER, _CAMERA = "key.frame_timestamp_micros", "key.laser_name", "key.camera_name"
_RANGE, _POSES = "[LiDARComponent].range_image_return1", "[LiDARPoseComponent].range_image_return1"
_LIDAR_MODEL, _CAMERA_MODEL = "[LiDARCalibrationComponent]", "[CameraCalibrationComponent]"
_PICTURE, _VEHICLE = "[CameraImageComponent].image", "[VehiclePoseComponent].world_from_vehicle.transform"
_BOX = "[LiDARBoxComponent]"
Matrix = npt.NDArray[np.float64]


def scenes(name: DatasetName) -> list[str]:
    """Return the segments. Raises UsageError: none, saying what to do with files of format 1."""
    found = sorted(p.stem for p in (name.path / "lidar").glob("*.parquet"))
    if found:
        return found
    if any(name.path.glob("*.tfrecord")):
        raise UsageError(
            f"{name}: holds .tfrecord (format 1), which is not read; expected format 2: download the folders lidar, "
            "lidar_calibration, lidar_pose, vehicle_pose, lidar_box, camera_image and camera_calibration of "
            "waymo_open_dataset_v_2_0_1"
        )
    raise UsageError(f"{name}: no segment; expected {name.path}/lidar/<segment>.parquet (format 2)")


def load(name: DatasetName) -> DatasetRecording:
    """Return a segment: first returns of the roof's LiDAR, cameras, poses and boxes of what is there.

    Raises UsageError: a component or PyArrow is missing. InfrastructureError: one is damaged.
    """
    segment = _Segment(name)
    lidar = segment.rows("lidar_calibration", {_LASER: TOP})[0]
    extrinsic, poses = _square(lidar[f"{_LIDAR_MODEL}.extrinsic.transform"]), _vehicle_poses(segment)
    stamps_us = sorted(set(segment.column("lidar", _STAMP, {_LASER: TOP})) & set(poses))
    stamps_ns = [t * 1000 for t in stamps_us]
    if not stamps_ns:
        raise UsageError(f"{name}: no frame has both a cloud of the roof's LiDAR and a pose of the vehicle")
    transforms = TransformTopics()
    transforms.fix(EGO_FRAME, LIDAR_FRAME, extrinsic)
    transforms.locate(stamps_ns, from_first([poses[t] for t in stamps_us]))
    model = RangeImageModel(extrinsic, _inclinations(lidar))
    topics = [_lidar_topic(segment, stamps_us, model, poses), *_camera_topics(segment, name.raw_images, transforms)]
    has_labels = segment.file("lidar_box").is_file()
    labels = _labels(segment, frozenset(stamps_ns)) if has_labels else no_labels
    tables, label_files = segment.files_but("lidar_box"), [segment.file("lidar_box")] if has_labels else []
    first_ns = min(topic.stamps_ns[0] for topic in topics)
    return DatasetRecording(name, [*topics, *transforms.topics(first_ns)], labels, tables, label_files)


class _Segment:
    """The components of one segment, each a file of Parquet that is read row by row."""

    def __init__(self, name: DatasetName) -> None:
        self._name = name
        self._parquet = arrow("parquet", DATASET)

    def file(self, component: str) -> Path:
        return self._name.path / component / f"{self._name.scene}.parquet"

    def files_but(self, component: str) -> list[Path]:
        found = sorted(self._name.path.glob(f"*/{self._name.scene}.parquet"))
        return [path for path in found if path.parent.name != component]

    def rows(
        self, component: str, where: Mapping[str, Any], columns: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return the rows with these values.

        Raises UsageError: the component is missing. InfrastructureError: it is damaged, or has no such row.
        """
        table = self._table(component, where, columns)
        if not table.num_rows:
            raise InfrastructureError(f"{self.file(component)}: no row with {dict(where)}")
        found: list[dict[str, Any]] = table.to_pylist()
        return found

    def column(self, component: str, name: str, where: Mapping[str, Any]) -> list[Any]:
        """Return the values of a column where others have these values."""
        found: list[Any] = self._table(component, where, [name, *where])[name].to_pylist()
        return found

    def array(self, component: str, prefix: str, where: Mapping[str, Any]) -> npt.NDArray[Any]:
        """Return a range image (H, W, C) of one row."""
        names = [f"{prefix}.values", f"{prefix}.shape"]
        table = self._table(component, where, [*where, *names])
        if table.num_rows != 1:
            raise InfrastructureError(f"{self.file(component)}: {table.num_rows} rows with {dict(where)}, expected one")
        values = table[names[0]].combine_chunks().flatten().to_numpy()
        return np.asarray(values).reshape(table[names[1]][0].as_py())

    def _table(self, component: str, where: Mapping[str, Any], columns: Sequence[str] | None) -> Any:
        path = self.file(component)
        if not path.is_file():
            raise UsageError(f"no {path}; expected the component {component} of the segment")
        chosen = [(name, "=", value) for name, value in where.items()] or None
        try:
            return self._parquet.read_table(
                path,
                columns=None if columns is None else list(columns),
                filters=chosen,
                use_threads=False,
                partitioning=None,
            )
        except (OSError, ValueError, KeyError) as error:
            raise InfrastructureError(f"{path}: cannot be read as Waymo's {component}: {error}") from error


def _lidar_topic(
    segment: _Segment, stamps_us: Sequence[int], model: RangeImageModel, poses: Mapping[int, Matrix]
) -> RecordedTopic:
    with_poses = segment.file("lidar_pose").is_file()

    def read(i: int) -> bytes:
        where = {_STAMP: stamps_us[i], _LASER: TOP}
        image = segment.array("lidar", _RANGE, where)
        pixel_poses = segment.array("lidar_pose", _POSES, where) if with_poses else None
        points = model.points(image, pixel_poses, poses[stamps_us[i]])
        return codec.encode_cloud(Cloud("/lidar_top", stamps_us[i] * 1000, LIDAR_FRAME, points))

    return RecordedTopic("/lidar_top", codec.POINT_CLOUD, [t * 1000 for t in stamps_us], read)


def _camera_topics(segment: _Segment, raw: bool, transforms: TransformTopics) -> list[RecordedTopic]:
    if not (segment.file("camera_image").is_file() and segment.file("camera_calibration").is_file()):
        return []
    topics = []
    for row in segment.rows("camera_calibration", {}):
        number = int(row[_CAMERA])
        frame = f"camera_{_CAMERA_NAMES.get(number, number)}"
        transforms.fix(EGO_FRAME, frame, _square(row[f"{_CAMERA_MODEL}.extrinsic.transform"]) @ _FROM_OPTICAL)
        stamps_us = sorted(segment.column("camera_image", _STAMP, {_CAMERA: number}))
        if not stamps_us:
            continue
        stamps_ns, kind = [t * 1000 for t in stamps_us], codec.IMAGE if raw else codec.COMPRESSED_IMAGE
        read = _picture_reader(segment, number, frame, stamps_us, raw)
        topics += [
            RecordedTopic(f"/{frame}/image", kind, stamps_ns, read),
            info_topic(f"/{frame}/camera_info", stamps_ns, [_info(row, frame)]),
        ]
    return topics


def _picture_reader(
    segment: _Segment, number: int, frame: str, stamps_us: Sequence[int], raw: bool
) -> Callable[[int], bytes]:
    def read(i: int) -> bytes:
        where = {_STAMP: stamps_us[i], _CAMERA: number}
        content = segment.rows("camera_image", where, [*where, _PICTURE])[0][_PICTURE]
        path = segment.file("camera_image").with_suffix(".jpg")
        return picture_message(f"/{frame}/image", frame, stamps_us[i] * 1000, content, path, raw)

    return read


def _info(row: Mapping[str, Any], frame: str) -> Any:
    f_u, f_v, c_u, c_v = (row[f"{_CAMERA_MODEL}.intrinsic.{name}"] for name in ("f_u", "f_v", "c_u", "c_v"))
    distortion = [row[f"{_CAMERA_MODEL}.intrinsic.{name}"] for name in ("k1", "k2", "p1", "p2", "k3")]
    size = int(row[f"{_CAMERA_MODEL}.width"]), int(row[f"{_CAMERA_MODEL}.height"])
    return pinhole(frame, size, np.array([[f_u, 0.0, c_u], [0.0, f_v, c_v], [0.0, 0.0, 1.0]]), distortion)


def _inclinations(row: Mapping[str, Any]) -> Callable[[int], Floats]:
    """Return what gives the elevation of each row of a range image of some height, the uppermost first."""
    values = row.get(f"{_LIDAR_MODEL}.beam_inclination.values")
    low, high = (row[f"{_LIDAR_MODEL}.beam_inclination.{name}"] for name in ("min", "max"))
    return partial(_elevations, values, low, high)


def _elevations(values: Sequence[float] | None, low: float, high: float, height: int) -> Floats:
    upwards = np.array(values) if values else low + (np.arange(height) + 0.5) / height * (high - low)
    return np.asarray(upwards[::-1], dtype=np.float64)


def _vehicle_poses(segment: _Segment) -> dict[int, Matrix]:
    return {int(row[_STAMP]): _square(row[_VEHICLE]) for row in segment.rows("vehicle_pose", {})}


def _square(values: Sequence[float]) -> Matrix:
    return np.array(values, dtype=np.float64).reshape(4, 4)


def _labels(segment: _Segment, known_ns: frozenset[int]) -> LabelsAt:
    place = [
        f"{_BOX}.box.{name}" for name in ("center.x", "center.y", "center.z", "size.x", "size.y", "size.z", "heading")
    ]
    counted = f"{_BOX}.num_lidar_points_in_box"
    names = [_STAMP, "key.laser_object_id", f"{_BOX}.type", counted, *place]
    rows = segment.rows("lidar_box", {}, names)

    def at(stamp_ns: int) -> GroundTruth | None:
        if stamp_ns not in known_ns:
            return None
        here = [row for row in rows if row[_STAMP] * 1000 == stamp_ns and _CLASSES.get(row[f"{_BOX}.type"]) != "sign"]
        boxes = np.array([[row[name] for name in place] for row in here], dtype=np.float64).reshape(-1, 7)
        labels = [_CLASSES.get(row[f"{_BOX}.type"], "unknown") for row in here]
        tracks = [str(row["key.laser_object_id"]) for row in here]
        objects = Detections.make(EGO_FRAME, None, boxes[:, :3], boxes[:, 3:6], boxes[:, 6], labels, track_id=tracks)
        return GroundTruth(objects, _LABELLED, np.array([row[counted] for row in here], dtype=np.int64))

    return at
