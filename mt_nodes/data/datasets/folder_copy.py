# SPDX-License-Identifier: Apache-2.0
"""Writes bundles of any recording as a plain folder: clouds, pictures and their calibration."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from mt_nodes.base.directories import staged_directory
from mt_nodes.base.errors import UsageError
from mt_nodes.data.datasets.dataset_name import DatasetName
from mt_nodes.data.datasets.folder import CALIBRATION, CLOUDS, LIDAR_FRAME, PICTURES
from mt_nodes.data.datasets.picture_files import FORMATS, picture_bytes
from mt_nodes.data.datasets.point_files import points_bytes
from mt_nodes.data.messages import Bundle, CameraInfo, Cloud, Image
from mt_nodes.data.rotations import quaternion_of
from mt_nodes.data.transforms import EGO_FRAME, TransformTree, UnknownTransform


class FolderCopy:
    """Writes the decoded clouds and pictures of follow-ups; other topics and labels stay out.

    Raises UsageError: the directory exists.
    """

    labels = "folders hold no labels"

    def __init__(self, out: DatasetName) -> None:
        if out.path.exists():
            raise UsageError(f"{out.path} exists already; give another path or remove it")
        self._out, self._aside = out, Path()
        self._frames: dict[str, str] = {}
        self._cameras: dict[str, dict[str, Any]] = {}
        self._tree = TransformTree()
        self.messages = 0

    @property
    @contextmanager
    def bag(self) -> Iterator[None]:
        """The directory, which appears when it is complete."""
        with staged_directory(self._out.path) as self._aside:
            yield
            self._write_calibration()

    def announce(self) -> None:
        """Nothing is written before the first bundle."""

    def write(self, bundle: Bundle, followups: tuple[tuple[int, Bundle], ...]) -> None:
        """Write the clouds and pictures of every follow-up; a delayed one is stamped later by its delay.

        Raises UsageError: there are clouds of several LiDARs, or two files of one sensor at one time.
        """
        for delay_ns, followup in followups:
            self._tree = followup.transforms
            if len(followup.clouds) > 1:
                topics = ", ".join(cloud.topic for cloud in followup.clouds)
                raise UsageError(f"{self._out}: a folder holds the clouds of one LiDAR, got {topics}; write a bag")
            for cloud in followup.clouds:
                self._write_cloud(cloud, delay_ns)
            for image in followup.images:
                self._write_picture(image, delay_ns)
            for info in followup.camera_infos:
                self._note_camera(info)

    def _write_cloud(self, cloud: Cloud, delay_ns: int) -> None:
        self._frames[LIDAR_FRAME] = cloud.frame_id
        # Open3D has coordinates of single precision alone.
        suffix = ".pcd" if all(cloud.points.dtype[axis] == "<f4" for axis in "xyz") else ".npy"
        self._write(f"{CLOUDS}/{cloud.stamp_ns + delay_ns:019d}{suffix}", points_bytes(cloud.points, suffix))

    def _write_picture(self, image: Image, delay_ns: int) -> None:
        camera = _file_name(image.frame_id)
        self._frames[camera] = image.frame_id
        suffix = ".png"
        if image.compressed is not None and not image.compressed.startswith(b"\x89PNG"):
            suffix = ".jpg"
        assert suffix in FORMATS, "both endings are read again"
        path = f"{PICTURES}/{camera}/{image.stamp_ns + delay_ns:019d}{suffix}"
        self._write(path, picture_bytes(image, Path(path)))

    def _note_camera(self, info: CameraInfo) -> None:
        row: dict[str, Any] = {"k": info.k.tolist(), "distortion": info.d.tolist(), "model": info.distortion_model}
        self._cameras[_file_name(info.frame_id)] = {**row, "width": info.width, "height": info.height}

    def _write(self, path: str, content: bytes) -> None:
        target = self._aside / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            raise UsageError(f"{self._out}: two messages of one sensor have the stamp {target.stem}; write a bag")
        target.write_bytes(content)
        self.messages += 1

    def _write_calibration(self) -> None:
        rows = []
        for child, frame in self._frames.items():
            try:
                matrix = self._tree.lookup(EGO_FRAME, frame)
            except UnknownTransform:
                continue  # as in the recording: --transforms can give it
            translation, quaternion = matrix[:3, 3].tolist(), list(quaternion_of(matrix[:3, :3]))
            row = {"parent": EGO_FRAME, "child": child, "translation_m": translation}
            rows.append({**row, "quaternion_xyzw": [float(q) for q in quaternion]})
        cameras = {name: row for name, row in self._cameras.items() if name in self._frames}
        if rows or cameras:
            content = yaml.safe_dump({"transforms": rows, "cameras": cameras}, sort_keys=False)
            (self._aside / CALIBRATION).write_text(content, encoding="utf-8")


def _file_name(frame_id: str) -> str:
    return re.sub(r"[^\w.-]", "_", frame_id.strip("/")) or "camera"
