# SPDX-License-Identifier: Apache-2.0
"""Writes exported follow-ups in a data set's format, with a manifest of what each is and where its labels come from."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.directories import as_stored, cannot_write, write_whole
from mt_nodes.base.errors import UsageError
from mt_nodes.data.datasets.kitti_calibration import KittiCalibration
from mt_nodes.data.datasets.kitti_writer import KittiFrame, lidar_alone, write_split
from mt_nodes.data.datasets.nuscenes_writer import NuscenesFrame, NuscenesTables
from mt_nodes.data.datasets.picture_files import FORMATS as ENDINGS
from mt_nodes.data.datasets.picture_files import picture_bytes
from mt_nodes.data.datasets.picture_label_files import BoxedPicture, write_coco, write_yolo
from mt_nodes.data.ground_truth import points_in
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Image
from mt_nodes.data.outputs import Detections, ImageBoxes
from mt_nodes.data.transforms import inverse
from mt_nodes.runs.export.followup_export import CAMERA, LIDAR, ExportedFrame, ExportedPairs, LeftOut
from mt_nodes.runs.export.lidar_frame import LidarFrame

MANIFEST = "manifest.json"
#: Format -> the sensor that it is of.
SENSORS = {"kitti": LIDAR, "nuscenes": LIDAR, "coco": CAMERA, "yolo": CAMERA}


@dataclass
class Export:
    """What was written.

    ``frames``: rows of the manifest. ``origins``: of labels -> how many. ``unwritten``: labels that the format has no
    place for -> how many.
    """

    format: str
    out: Path
    frames: list[dict[str, Any]] = field(default_factory=list)
    origins: Counter[str] = field(default_factory=Counter)
    unwritten: Counter[str] = field(default_factory=Counter)

    def take(self, stem: str, frame: ExportedFrame, about: Mapping[str, Any], kept: Any) -> None:
        """Keep the manifest's row of a frame; ``kept``: (M,) which of its labels were written."""
        origin = [name for name, written in zip(frame.labels.origin, kept.tolist(), strict=True) if written]
        self.origins.update(origin)
        identity = {
            "pair": str(frame.pair),
            "relation": frame.pair.relation,
            "draw": frame.pair.draw,
            "seed": frame.seed,
        }
        source = {"results": as_stored(str(frame.results)), "bag": as_stored(frame.bag), "sha256": frame.sha256}
        row = {"frame": stem, **identity, **source, **about, "origins": origin}
        self.frames.append({**row, "labelled_throughout": frame.labels.throughout})


def write_export(
    pairs: ExportedPairs, file_format: str, out: Path, progress: Callable[[int], None] = lambda count: None
) -> Export:
    """Write what can be exported, and return it; a directory is left only where it is whole, and holds a frame.

    Args:
        pairs: what is exported, counted meanwhile. file_format: one of :data:`SENSORS`.
        out: directory to make. progress: told how many frames there are.

    Raises:
        UsageError: the directory holds something. InfrastructureError: results are damaged, or the disk is full.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"--out {out}: is there already; name a new directory")
    export, whole = Export(file_format, out), False
    try:
        out.mkdir(parents=True, exist_ok=True)
        for frame in _WRITERS[file_format](export, pairs):
            progress(frame)
        if export.frames:
            _write_manifest(export, pairs)
            whole = True
    except OSError as error:
        raise cannot_write(out, error) from error
    finally:
        if not whole:  # without its manifest, a folder would seem to be labelled throughout
            shutil.rmtree(out, ignore_errors=True)
    return export


def _write_manifest(export: Export, pairs: ExportedPairs) -> None:
    about = {
        "schema": 1,
        "format": export.format,
        "labels": list(pairs.preference),
        "origins": {
            "labels": "labels of the recording, moved as the mutation moves the scene",
            "source_output": "pseudo-labels: what the stack under test said of the unchanged input, with its scores",
            "added_object": "objects that the mutation added, exactly known",
        },
        "counts": {"frames": len(export.frames), "labels": dict(export.origins), "unwritten": dict(export.unwritten)},
        "left_out": {**dict(pairs.left_out), **{f"{name}: never exported": n for name, n in pairs.never.items()}},
        "frames": export.frames,
    }
    write_whole(export.out / MANIFEST, json.dumps(about, indent=1) + "\n")


def _lidar_frames(export: Export, pairs: ExportedPairs) -> Iterator[tuple[str, ExportedFrame, LidarFrame]]:
    for frame in pairs:
        try:
            yield f"{len(export.frames):06d}", frame, LidarFrame.of(frame)
        except LeftOut as why:
            pairs.left_out[str(why)] += 1


def _kitti(export: Export, pairs: ExportedPairs) -> Iterator[int]:
    for stem, frame, lidar in _lidar_frames(export, pairs):
        calibration, size, content = lidar_alone(), None, b""
        if (picture := lidar.picture) is not None:
            projection = np.column_stack([picture.k, np.zeros(3)])
            calibration = KittiCalibration({2: projection}, picture.to_camera, None, {})
            size, content = picture.size_px, picture_bytes(picture.image, Path(f"{stem}.png"))
        sized = {} if size is None else {"size_px": size}
        written = KittiFrame(lidar.points[:, :4], lidar.objects, lidar.ignored, calibration, picture=content, **sized)
        seen = written.seen
        if hidden := int((~seen).sum()):
            export.unwritten["outside camera 2's view, to which KITTI's labels are limited"] += hidden
        written.write(export.out / "training", stem)
        export.take(stem, frame, _lidar_row(lidar, ~seen), seen)
        yield len(export.frames)
    write_split(export.out, [row["frame"] for row in export.frames])


def _nuscenes(export: Export, pairs: ExportedPairs) -> Iterator[int]:
    tables = NuscenesTables(export.out)
    for stem, frame, lidar in _lidar_frames(export, pairs):
        points = lidar.points.copy()
        points[:, 3] *= 255.0
        picture = None
        if (shown := lidar.picture) is not None:
            to_ego = inverse(shown.to_camera)
            to_ego[:3, 3] += lidar.mount_m
            suffix = _ending(shown.image)
            picture = picture_bytes(shown.image, Path(stem + suffix)), suffix, shown.size_px, shown.k, to_ego
        returns = points_in(lidar.objects, lidar.points[:, :3].astype(np.float64))
        # Rows of one scene have stamps of their own, whatever run and draw they are of.
        stamp_us = 1_000_000 * (len(export.frames) + 1)
        scene = f"exported-{frame.pair.relation}"
        tables.add(stem, NuscenesFrame(scene, stamp_us, points, lidar.objects, returns, lidar.mount_m, picture))
        everything = np.ones(len(lidar.objects), dtype=bool)
        export.take(stem, frame, _lidar_row(lidar, ~everything), everything)
        yield len(export.frames)
    if export.frames:
        tables.write()


def _lidar_row(lidar: LidarFrame, unwritten: Any) -> dict[str, Any]:
    """Return what the manifest says of a frame; what has no place in its label file is to be ignored, too."""
    parts = (lidar.ignored, lidar.objects.take(unwritten))
    written = lidar.objects.take(~unwritten)
    return {
        "mount_m": lidar.mount_m.tolist(),
        "zone_wkt": lidar.zone.wkt,
        "objects": _boxes(written),
        "ignored": [row for part in parts for row in _boxes(part)],
    }


def _boxes(boxes: Detections) -> list[dict[str, Any]]:
    columns = (boxes.label, boxes.score, boxes.center_m, boxes.size_m, boxes.yaw_rad)
    names = ("class", "score", "center_m", "size_m", "yaw_rad")
    return [dict(zip(names, row, strict=True)) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _pictures(export: Export, pairs: ExportedPairs, folder: str) -> Iterator[BoxedPicture]:
    place = export.out / folder
    for frame in pairs:
        image, labels = frame.image, frame.labels
        assert image is not None and isinstance(labels.objects, ImageBoxes) and isinstance(labels.ignored, ImageBoxes)
        path = place / f"{len(export.frames):06d}{_ending(image)}"
        place.mkdir(parents=True, exist_ok=True)
        write_whole(path, picture_bytes(image, path))
        height, width = decode(image).size
        cut = [_cut(boxes, width, height) for boxes in (labels.objects, labels.ignored)]
        rows = [
            {"class": str(name), "score": float(score), "box_px": box.tolist()}
            for name, score, box in zip(cut[0].label, cut[0].score, cut[0].box_px, strict=True)
        ]
        export.take(path.stem, frame, {"objects": rows, "ignored": len(cut[1])}, np.ones(len(rows), dtype=bool))
        yield BoxedPicture(path, (width, height), *cut)


def _coco(export: Export, pairs: ExportedPairs) -> Iterator[int]:
    pictures: list[BoxedPicture] = []
    for one in _pictures(export, pairs, "images"):
        pictures.append(one)
        yield len(pictures)
    write_coco(export.out, pictures)


def _yolo(export: Export, pairs: ExportedPairs) -> Iterator[int]:
    pictures: list[BoxedPicture] = []
    for one in _pictures(export, pairs, "images/train"):
        pictures.append(one)
        yield len(pictures)
    write_yolo(export.out, pictures)
    if unlabelled := sum(len(one.ignored) for one in pictures):
        export.unwritten["to be ignored, which YOLO cannot say (COCO can): without a label they are background"] = (
            unlabelled
        )


def _cut(boxes: ImageBoxes, width: int, height: int) -> ImageBoxes:
    """Return the boxes cut at the edges of the picture."""
    edges = np.clip(boxes.box_px, -0.5, np.array([width, height, width, height]) - 0.5)
    return ImageBoxes.make(boxes.frame_id, None, edges, boxes.label.tolist(), boxes.score)


def _ending(image: Image) -> str:
    """Return the ending of a file with the picture's own bytes; PNG of a raw one."""
    is_jpeg = image.compressed is not None and image.compressed.startswith(b"\xff\xd8")
    return next(suffix for suffix, name in ENDINGS.items() if name == ("jpeg" if is_jpeg else "png"))


_WRITERS: dict[str, Callable[[Export, ExportedPairs], Iterator[int]]] = {
    "kitti": _kitti,
    "nuscenes": _nuscenes,
    "coco": _coco,
    "yolo": _yolo,
}
