# SPDX-License-Identifier: Apache-2.0
"""Labelled frames in folders of KITTI's, COCO's or YOLO's layout, from which a detector learns beside streets.

The manifest of `mt replay failures export` says where everything is labelled, and what is to be ignored. Where labels
are what a stack said, nobody knows what the rest is: but for the road it is taken neither for an object nor for
background, or a training would unlearn what the stack had missed. A folder without a manifest is taken to be labelled
throughout: of KITTI, within the view of camera 2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import shapely

from mt_nodes.base.arrays import Ints, Mask, Singles
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.datasets.kitti_calibration import LIDAR_HEIGHT_M, benchmark_calibration
from mt_nodes.data.datasets.kitti_labels import boxes_of_lines, ground_truth
from mt_nodes.data.datasets.kitti_writer import SIZE_PX
from mt_nodes.data.datasets.picture_files import picture_size
from mt_nodes.data.datasets.picture_label_files import BoxedPicture, read_boxed_pictures
from mt_nodes.data.datasets.point_files import read_bin
from mt_nodes.data.outputs import Detections
from mt_nodes.runs.models.labelled_clouds import BACKGROUND, NOT_TOLD, LabelledCloud
from mt_nodes.runs.models.labelled_pictures import PICTURE_CLASSES, LabelledPicture
from mt_nodes.stacks.reference.cell_objects import CLASSES

_MANIFEST = "manifest.json"
#: Classes of data sets -> those of the reference detectors.
_KINDS = {"bus": "truck", "trailer": "truck", "tram": "truck", "motorcycle": "cyclist", "bicycle": "cyclist"}
#: A box stands on the road: returns so near to its lower side may be the road's. Returns scatter around a box by noise.
_ROAD_M, _AROUND_M = 0.15, 0.05
_FULL_SCALE = 255.0
#: What is so much above the lowest return of its neighbourhood, cells of this width and the eight around, is no road.
_RISE_M, _NEIGHBOURHOOD_M = 0.3, 2.0


@dataclass(frozen=True)
class AddedSamples:
    """Frames of folders, and how often one is taken in place of a street.

    ``frames``: (folder, name) of each. ``share``: 0..1 of the samples.
    """

    frames: tuple[tuple[Path, str], ...] = ()
    share: float = 0.0

    def drawn(self, rng: np.random.Generator) -> tuple[Path, str] | None:
        """Draw a frame; None: a street is to be taken."""
        if not self.frames or rng.random() >= self.share:
            return None
        return self.frames[int(rng.integers(len(self.frames)))]


def added_clouds(folders: Sequence[Path], share: float) -> AddedSamples:
    """Return the frames of folders in KITTI's layout. Raises UsageError: one is none, or holds no frame."""
    frames = []
    for folder in folders:
        stems = sorted(path.stem for path in (folder / "training" / "label_2").glob("*.txt"))
        if not stems:
            text = f"--add {folder}: no training/label_2/*.txt; expected KITTI's layout for a LiDAR's detector"
            raise UsageError(f"{text}, as `mt replay failures export --format kitti` writes it")
        frames += [(folder, stem) for stem in stems]
    return AddedSamples(tuple(frames), share)


def added_pictures(folders: Sequence[Path], share: float) -> AddedSamples:
    """Return the frames of folders in COCO's or YOLO's layout. Raises UsageError: one is none, or holds no picture."""
    frames = [(folder, str(i)) for folder in folders for i in range(len(_boxed(folder)))]
    if folders and not frames:
        raise UsageError(f"--add {folders[0]}: holds no picture")
    return AddedSamples(tuple(frames), share)


def cloud_of(folder: Path, stem: str) -> LabelledCloud:
    """Return a frame of KITTI's object benchmark. Raises InfrastructureError: one of its files is damaged."""
    home, about = folder / "training", _manifest(folder).get(stem)
    columns = read_bin(home / "velodyne" / f"{stem}.bin", ("x", "y", "z", "intensity"))
    points = np.column_stack([columns[name] for name in columns.dtype.names or ()])
    points[:, 3] *= _FULL_SCALE
    calibration, labels = benchmark_calibration(home / "calib" / f"{stem}.txt"), home / "label_2" / f"{stem}.txt"
    picture = home / "image_2" / f"{stem}.png"
    size = picture_size(picture) if picture.is_file() else SIZE_PX
    lines = labels.read_text(encoding="utf-8").splitlines()
    truth = ground_truth(boxes_of_lines(lines, calibration, str(labels)), calibration, size)
    objects = truth.objects
    owner = _owners(points, objects)
    doubtful = ~_inside(points, about, truth.areas_m)
    if not _throughout(about):
        doubtful |= _above_road(points)
    return LabelledCloud(
        points.astype(np.float32),
        np.where((owner == BACKGROUND) & doubtful, NOT_TOLD, owner),
        objects.center_m[:, :2],
        objects.center_m[:, 2] + objects.size_m[:, 2] / 2.0,
        objects.yaw_rad,
        np.array([_kind(str(label)) for label in objects.label], dtype=np.int64),
        objects.size_m,
        LIDAR_HEIGHT_M if about is None else float(about["mount_m"][2]),
    )


def picture_of(folder: Path, number: str) -> LabelledPicture:
    """Return a picture with its boxes. Raises InfrastructureError: its file is damaged."""
    one = _boxed(folder)[int(number)]
    about = _manifest(folder).get(one.path.stem)
    pixels = cv2.imread(str(one.path))
    if pixels is None:
        raise InfrastructureError(f"{one.path}: cannot be read as a picture")
    labels = [_KINDS.get(str(name), str(name)) for name in (*one.boxes.label, *one.ignored.label)]
    known = np.array([name in PICTURE_CLASSES for name in labels], dtype=bool)
    # What shows nothing of itself is neither to be found nor wrong.
    visible = (known & (np.arange(len(labels)) < len(one.boxes))).astype(np.float64)
    kind = [PICTURE_CLASSES.index(name) if name in PICTURE_CLASSES else 0 for name in labels]
    boxes = np.concatenate([one.boxes.box_px, one.ignored.box_px])
    if not _throughout(about):  # all that no box has is ignored
        height, width = pixels.shape[:2]
        boxes = np.concatenate([boxes, [[-0.5, -0.5, width - 0.5, height - 0.5]]])
        visible, kind = np.append(visible, 0.0), [*kind, 0]
    owner = np.full(pixels.shape[:2], -1, dtype=np.int64)
    return LabelledPicture(
        np.ascontiguousarray(pixels[..., ::-1]), boxes, np.array(kind, dtype=np.int64), visible, owner
    )


def _owners(points: Singles, objects: Detections) -> Ints:
    """Return the row of the object (N,) whose box a point lies in, the smallest of several.

    At a box's lower side returns are the road's or the object's: nobody knows, unless they are in another box.
    """
    owner = np.full(len(points), BACKGROUND, dtype=np.int64)

    def within(row: int, above_m: float) -> Mask:
        return _in_box(points, objects.center_m[row], objects.size_m[row], float(objects.yaw_rad[row]), above_m)

    rows = np.argsort(-objects.size_m.prod(axis=1), kind="stable").tolist()
    for row in rows:
        owner[within(row, 0.0)] = NOT_TOLD
    for row in rows:
        owner[within(row, _ROAD_M)] = row
    return owner


def _in_box(points: Any, center_m: Any, size_m: Any, yaw_rad: float, above_m: float = 0.0) -> Mask:
    away = points[:, :3] - np.asarray(center_m)
    c, s = np.cos(yaw_rad), np.sin(yaw_rad)
    local = np.column_stack([c * away[:, 0] + s * away[:, 1], c * away[:, 1] - s * away[:, 0], away[:, 2]])
    half = np.asarray(size_m) / 2.0 + _AROUND_M
    return np.asarray((np.abs(local) <= half).all(axis=1) & (local[:, 2] >= above_m - half[2]))


def _inside(points: Any, about: Mapping[str, Any] | None, areas_m: Any) -> Mask:
    """Return which points lie where everything is labelled, and in nothing that is to be ignored."""
    x, y = points[:, 0].astype(np.float64), points[:, 1].astype(np.float64)
    if about is None:
        area = shapely.union_all([shapely.Polygon(outline) for outline in areas_m])
        return np.asarray(shapely.contains_xy(area, x, y))
    inside = np.asarray(shapely.contains_xy(shapely.from_wkt(about["zone_wkt"]), x, y))
    for box in about["ignored"]:
        inside &= ~_in_box(points, box["center_m"], box["size_m"], box["yaw_rad"])
    return inside


def _throughout(about: Mapping[str, Any] | None) -> bool:
    """Return whether what has no label is background: not where nobody says so."""
    return about is None or bool(about.get("labelled_throughout", False))


def _above_road(points: Singles) -> Mask:
    """Return which returns (N,) are not of the road."""
    if not len(points):
        return np.zeros(0, dtype=bool)
    cell = np.floor(points[:, :2] / _NEIGHBOURHOOD_M).astype(np.int64)
    row, column = (cell - cell.min(axis=0)).T
    lowest = np.full((row.max() + 1, column.max() + 1), np.inf, dtype=np.float32)
    np.minimum.at(lowest, (row, column), points[:, 2])
    around = cv2.erode(lowest, np.ones((3, 3), np.uint8))
    return np.asarray(points[:, 2] > around[row, column] + _RISE_M)


def _kind(label: str) -> int:
    name = _KINDS.get(label, label)
    return CLASSES.index(name if name in CLASSES else "unknown")


_READ: dict[Path, Any] = {}


def _manifest(folder: Path) -> dict[str, Any]:
    """Return the rows of a folder's manifest by frame, read once a process; none where there is no manifest."""
    path = folder / _MANIFEST
    if path not in _READ:
        try:
            frames = json.loads(path.read_text(encoding="utf-8"))["frames"] if path.is_file() else []
            _READ[path] = {row["frame"]: row for row in frames}
        except (ValueError, LookupError, TypeError) as error:
            raise InfrastructureError(f"{path}: is no manifest of an export: {error}") from error
    rows: dict[str, Any] = _READ[path]
    return rows


def _boxed(folder: Path) -> list[BoxedPicture]:
    if folder not in _READ:
        _READ[folder] = read_boxed_pictures(folder)
    pictures: list[BoxedPicture] = _READ[folder]
    return pictures
