# SPDX-License-Identifier: Apache-2.0
"""A plain folder of clouds and pictures.

``clouds/`` (or the folder itself) holds one file a frame; ``images/`` one picture a frame, or a folder for each camera.
``calib.yaml`` is a list of transforms, as :func:`mt_nodes.data.transforms.load_transforms` reads them, or, with the
intrinsics of cameras, ``{transforms: [...], cameras: {front: {k: [[...]], ...}}}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.errors import UsageError
from mt_nodes.base.yaml_files import read, read_mapping, refuse_unknown
from mt_nodes.data.datasets.dataset_name import DatasetName
from mt_nodes.data.datasets.picture_files import FORMATS, info_topic, picture_size, picture_topic, pinhole
from mt_nodes.data.datasets.point_files import SUFFIXES, points_bytes, read_points
from mt_nodes.data.datasets.recorded_topic import DatasetRecording, RecordedTopic, TransformTopics, cloud_topic
from mt_nodes.data.messages import CameraInfo
from mt_nodes.data.transforms import transforms_of_rows

CALIBRATION = "calib.yaml"
CLOUDS, PICTURES = "clouds", "images"
LIDAR_TOPIC, LIDAR_FRAME = "/lidar/points", "lidar"
_RATE_HZ = 10.0
_CAMERA_KEYS = ("k", "distortion", "model", "width", "height")
#: A number of so many digits or more is a stamp: nanoseconds, microseconds or milliseconds since 1970, else of seconds.
_STAMP_DIGITS = {19: 1, 16: 1_000, 13: 1_000_000}


def scenes(name: DatasetName) -> list[str]:
    """Return one drive: a folder is one. Raises UsageError: there is neither a cloud nor a picture in it."""
    if not _clouds(name.path) and not _cameras(name.path):
        expected = f"{CLOUDS}/*{'|'.join(SUFFIXES)} or {PICTURES}/*.png|.jpg"
        raise UsageError(f"{name}: no clouds and no pictures; expected {expected}")
    return [""]


def load(name: DatasetName) -> DatasetRecording:
    """Return the frames of a folder.

    Raises UsageError: names that tell no time stand beside ones that do, or the calibration cannot be used.
    """
    clouds, cameras = _clouds(name.path), _cameras(name.path)
    rows, infos = _calibration(name.path, cameras)
    topics: list[RecordedTopic] = []
    if clouds:
        topics.append(_lidar_topic(name, clouds))
    for camera, files in cameras.items():
        frame = camera or "camera"
        stamps_ns = _stamps_ns(files, name)
        topics.append(picture_topic(f"/{frame}/image", frame, stamps_ns, files, name.raw_images))
        if frame in infos:
            topics.append(info_topic(f"/{frame}/camera_info", stamps_ns, [infos[frame]]))
    transforms = TransformTopics(rows)
    tables = [name.path / CALIBRATION] if (name.path / CALIBRATION).is_file() else []
    first_ns = min(topic.stamps_ns[0] for topic in topics)
    moving = transforms.topics(first_ns) if rows else []
    return DatasetRecording(name, [*topics, *moving], tables=tables)


def _lidar_topic(name: DatasetName, clouds: Sequence[Path]) -> RecordedTopic:
    columns = int(name.number("columns", 4))
    return cloud_topic(
        LIDAR_TOPIC,
        LIDAR_FRAME,
        _stamps_ns(clouds, name),
        clouds,
        load=lambda path: read_points(path, columns),
        store=lambda path, points: points_bytes(points, path.suffix),
    )


def _clouds(folder: Path) -> list[Path]:
    home = folder / CLOUDS if (folder / CLOUDS).is_dir() else folder
    return _in_order(p for p in home.iterdir() if p.suffix in SUFFIXES and p.is_file())


def _cameras(folder: Path) -> dict[str, list[Path]]:
    """Return the pictures of each camera by its name, '' for one without."""
    if not (folder / PICTURES).is_dir():
        found = {"": [p for p in folder.iterdir() if p.suffix.lower() in FORMATS]}
    else:
        homes = [p for p in sorted((folder / PICTURES).iterdir()) if p.is_dir()]
        found = {home.name: [p for p in home.iterdir() if p.suffix.lower() in FORMATS] for home in homes}
        found[""] = [p for p in (folder / PICTURES).iterdir() if p.suffix.lower() in FORMATS]
    return {camera: _in_order(files) for camera, files in found.items() if files}


def _in_order(files: Any) -> list[Path]:
    def number(path: Path) -> list[Any]:
        return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.stem)]

    return sorted(files, key=number)


def _stamps_ns(files: Sequence[Path], name: DatasetName) -> list[int]:
    """Return stamps from names (``1317013200100000000``, ``1317013200.1``), else from the rate and the frame's number.

    A number that is too small for a time since 1970 is the frame's: so frames that are missing leave a gap.
    """
    stamps = [_stamp_ns(path.stem) for path in files]
    if None not in stamps:
        known = [stamp for stamp in stamps if stamp is not None]
        if len(set(known)) < len(known):
            raise UsageError(
                f"{files[0].parent}: two files have one stamp in their names; expected one file an instant"
            )
        return known
    if any(stamp is not None for stamp in stamps):
        other = files[stamps.index(None)].name
        raise UsageError(
            f"{files[0].parent}: {other} tells no time, and others do; expected stamps in all names or in none"
        )
    numbers = [re.findall(r"\d+", path.stem)[-1:] for path in files]
    places = [int(n[0]) for n in numbers if n]
    if len(set(places)) < len(files):
        places = list(range(len(files)))
    return [round(1e9 + 1e9 * place / name.number("rate", _RATE_HZ)) for place in places]


def _stamp_ns(stem: str) -> int | None:
    found = re.search(r"(\d{9,})(?:[._](\d{1,9}))?$", stem)
    if found is None:
        return None
    whole, fraction = found[1], found[2]
    if fraction is None and len(whole) in _STAMP_DIGITS:
        return int(whole) * _STAMP_DIGITS[len(whole)]
    if len(whole) == 10 and not whole.startswith("0"):
        return int(whole) * 1_000_000_000 + int((fraction or "").ljust(9, "0"))
    return None


def _calibration(folder: Path, cameras: Mapping[str, Sequence[Path]]) -> tuple[list[Any], dict[str, CameraInfo]]:
    path = folder / CALIBRATION
    if not path.is_file():
        return [], {}
    data = read(path)
    if data is None or isinstance(data, list):
        return list(transforms_of_rows(data or [], str(path)).transforms), {}
    data = read_mapping(path)
    refuse_unknown(data, ("transforms", "cameras"), str(path))
    rows = transforms_of_rows(data.get("transforms") or [], f"{path}: transforms")
    infos = {
        name: _info(name, row, cameras, f"{path}: cameras.{name}") for name, row in (data.get("cameras") or {}).items()
    }
    return list(rows.transforms), infos


def _info(name: str, row: Any, cameras: Mapping[str, Sequence[Path]], where: str) -> CameraInfo:
    files = cameras.get(name) or (cameras.get("") if name == "camera" else None)
    if not files:
        raise UsageError(
            f"{where}: no pictures of this camera; there are those of {', '.join(map(repr, cameras)) or 'none'}"
        )
    if not isinstance(row, Mapping):
        raise UsageError(
            f"{where}: got {row!r}, expected {{k: [[fx, 0, cx], [0, fy, cy], [0, 0, 1]], distortion: […]}}"
        )
    refuse_unknown(row, _CAMERA_KEYS, where)
    try:
        k = np.array(row["k"], dtype=np.float64).reshape(3, 3)
        distortion = [float(v) for v in row.get("distortion", (0.0,) * 5)]
        size = (int(row["width"]), int(row["height"])) if {"width", "height"} <= set(row) else picture_size(files[0])
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"{where}: got {row!r}, expected k of 3 rows of 3 numbers and distortion of numbers: {error}"
        ) from error
    return replace(pinhole(name, size, k, distortion), distortion_model=str(row.get("model", "plumb_bob")))
