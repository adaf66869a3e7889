# SPDX-License-Identifier: Apache-2.0
"""Writes frames in nuScenes' tables, which :mod:`~mt_nodes.data.datasets.nuscenes` reads again.

Schema: https://www.nuscenes.org/nuscenes, "Data format", and ``docs/schema_nuscenes.md`` of its development kit
(H. Caesar et al., CVPR 2020): tokens link rows, quaternions are w, x, y, z, stamps microseconds. Each frame is a sample
of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats, Ints, Singles
from mt_nodes.base.directories import write_whole
from mt_nodes.data.datasets.nuscenes import LIDAR
from mt_nodes.data.outputs import Detections

VERSION, CAMERA = "v1.0-trainval", "CAM_FRONT"
_TABLES = (
    *("attribute", "calibrated_sensor", "category", "ego_pose", "instance", "log", "map", "sample"),
    *("sample_annotation", "sample_data", "scene", "sensor", "visibility"),
)
_CATEGORIES = {
    "car": "vehicle.car",
    "truck": "vehicle.truck",
    "bus": "vehicle.bus.rigid",
    "trailer": "vehicle.trailer",
    "motorcycle": "vehicle.motorcycle",
    "bicycle": "vehicle.bicycle",
    "cyclist": "vehicle.bicycle",  # a rider is no object of its own: attribute cycle.with_rider
    "pedestrian": "human.pedestrian.adult",
    "barrier": "movable_object.barrier",
    "traffic_cone": "movable_object.trafficcone",
    "animal": "animal",
}
_OTHER = "movable_object.debris"
_RIDDEN = "cycle.with_rider"


@dataclass(frozen=True, eq=False)
class NuscenesFrame:
    """One frame, the ego vehicle standing in the origin of the map.

    Attributes:
        scene: name; frames of one are a row. stamp_us: no two frames of a scene share one.
        points: (N, 5) float32: x, y, z in metres, intensity of 0..255, ring, in the LiDAR's frame.
        objects: boxes in that frame. returns: (M,) points in each.
        mount_m: of the LiDAR in the ego frame, with the same axes.
        picture: bytes and ending of ``CAM_FRONT``'s file, its (width, height), intrinsics (3, 3), and 4×4 from the
            camera's frame to that of the ego; None for none.
    """

    scene: str
    stamp_us: int
    points: Singles
    objects: Detections
    returns: Ints
    mount_m: Floats
    picture: tuple[bytes, str, tuple[int, int], Floats, Floats] | None = None


@dataclass
class NuscenesTables:
    """Collects the rows of frames, and writes them."""

    home: Path
    rows: dict[str, dict[str, dict[str, Any]]] = field(default_factory=lambda: defaultdict(dict))
    samples: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, stem: str, frame: NuscenesFrame) -> None:
        """Write the files of a frame, and keep its rows. Raises OSError: the disk is full, for example."""
        sample = _token("sample", stem)
        self.samples[frame.scene].append(sample)
        self._put("sample", sample, timestamp=frame.stamp_us, scene_token=_token("scene", frame.scene))
        identity, eye = [1.0, 0.0, 0.0, 0.0], np.eye(4)
        self._put(
            "ego_pose", _token("pose", stem), timestamp=frame.stamp_us, rotation=identity, translation=[0.0, 0.0, 0.0]
        )
        eye[:3, 3] = frame.mount_m
        content = frame.points.astype("<f4").tobytes()
        self._data(stem, frame, (LIDAR, "lidar", "pcd"), content, ".pcd.bin", eye)
        if frame.picture is not None:
            content, suffix, size, k, to_ego = frame.picture
            self._data(stem, frame, (CAMERA, "camera", suffix[1:]), content, suffix, to_ego, k, size)
        for i in range(len(frame.objects)):
            self._annotate(f"{stem}_{i}", sample, frame, i)

    def write(self) -> None:
        """Write the tables. Raises OSError: the disk is full, for example."""
        log = _token("log", "exported")
        self._put("log", log, logfile="", vehicle="", date_captured="", location="exported")
        self._put("map", _token("map", "none"), log_tokens=[log], category="semantic_prior", filename="")
        for name, samples in self.samples.items():
            self._chain("sample", samples)
            first, last = samples[0], samples[-1]
            ends = {"first_sample_token": first, "last_sample_token": last}
            about = {"name": name, "description": "exported follow-ups", "nbr_samples": len(samples)}
            self._put("scene", _token("scene", name), log_token=log, **ends, **about)
        folder = self.home / VERSION
        folder.mkdir(parents=True, exist_ok=True)
        for table in _TABLES:
            write_whole(folder / f"{table}.json", json.dumps(list(self.rows[table].values()), indent=1))

    def _put(self, table: str, token: str, **columns: Any) -> None:
        self.rows[table].setdefault(token, {"token": token, **columns})

    def _chain(self, table: str, tokens: Sequence[str]) -> None:
        for before, token, after in zip(("", *tokens), tokens, (*tokens[1:], ""), strict=False):
            self.rows[table][token].update(prev=before, next=after)

    def _data(
        self,
        stem: str,
        frame: NuscenesFrame,
        sensor: tuple[str, str, str],
        content: bytes,
        suffix: str,
        mount: Floats,
        k: Floats | None = None,
        size_px: tuple[int, int] = (0, 0),
    ) -> None:
        """Write a sensor's file, and keep its rows. ``sensor``: channel, modality, file format."""
        channel, modality, file_format = sensor
        self._put("sensor", _token("sensor", channel), channel=channel, modality=modality)
        quaternion, translation = _quaternion(mount[:3, :3]), mount[:3, 3].tolist()
        intrinsics = [] if k is None else k.tolist()
        mounted = _token("mount", json.dumps([channel, quaternion, translation, intrinsics]))
        place = {"translation": translation, "rotation": quaternion, "camera_intrinsic": intrinsics}
        self._put("calibrated_sensor", mounted, sensor_token=_token("sensor", channel), **place)
        name = f"samples/{channel}/{stem}{suffix}"
        (self.home / name).parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.home / name, content)
        links = {"sample_token": _token("sample", stem), "ego_pose_token": _token("pose", stem)}
        self._put(
            "sample_data",
            _token(channel, stem),
            **links,
            calibrated_sensor_token=mounted,
            timestamp=frame.stamp_us,
            fileformat=file_format,
            is_key_frame=True,
            width=size_px[0],
            height=size_px[1],
            filename=name,
            prev="",
            next="",
        )

    def _annotate(self, name: str, sample: str, frame: NuscenesFrame, i: int) -> None:
        objects, label = frame.objects, str(frame.objects.label[i])
        category, token = _CATEGORIES.get(label, _OTHER), _token("annotation", name)
        self._put("category", _token("category", category), name=category, description="")
        length, width, height = objects.size_m[i].tolist()
        half = float(objects.yaw_rad[i]) / 2.0
        attributes = []
        if label == "cyclist":
            attributes = [_token("attribute", _RIDDEN)]
            self._put("attribute", attributes[0], name=_RIDDEN, description="")
        ends = {"first_annotation_token": token, "last_annotation_token": token}
        instance = _token("instance", name)
        self._put("instance", instance, category_token=_token("category", category), nbr_annotations=1, **ends)
        self._put(
            "sample_annotation",
            token,
            sample_token=sample,
            instance_token=instance,
            visibility_token="",
            attribute_tokens=attributes,
            translation=(objects.center_m[i] + frame.mount_m).tolist(),
            size=[width, length, height],
            rotation=[float(np.cos(half)), 0.0, 0.0, float(np.sin(half))],
            num_lidar_pts=int(frame.returns[i]),
            num_radar_pts=0,
            prev="",
            next="",
        )


def _token(kind: str, name: str) -> str:
    """Return 32 hexadecimal digits, as tokens are; the same for the same name."""
    return hashlib.sha256(f"{kind} {name}".encode()).hexdigest()[:32]


def _quaternion(turn: Floats) -> list[float]:
    """Return w, x, y, z of a rotation (3, 3)."""
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(turn).as_quat().tolist()
    return [w, x, y, z]
