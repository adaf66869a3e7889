# SPDX-License-Identifier: Apache-2.0
"""Udacity: drives of its challenges as folders (``interpolated.csv``), and of its simulator (``driving_log.csv``).

The challenges' own ROS 1 bags are read as bags; ``interpolated.csv`` and the pictures beside it are what
https://github.com/rwightman/udacity-driving-reader (``script/bagdump.py``) extracts of them. Its columns are those of
Dataspeed's ``dbw_mkz_msgs/SteeringReport``: ``angle`` is ``steering_wheel_angle`` in rad, ``speed`` in m/s;
``timestamp`` is in nanoseconds since 1970. The angle is positive to the left: https://github.com/udacity/CarND-Capstone
commands it so (``twist_controller/yaw_controller.py``: atan(wheelbase / radius) times the steering ratio, of the sign
of the angular velocity, which ROS counts to the left). The script interpolates between messages of the bag, and writes
0 where there is none: a vehicle that stands, or whose wheels are straight, cannot be told from one that nothing is
known of.

The simulator (https://github.com/udacity/self-driving-car-sim, ``CarController.cs``) writes the speed in miles an hour
(``velocity.magnitude * 2.23693629``) and the steering of the front wheels as a share of the greatest angle, 25 degrees:
that number, and that positive is to the right, is said of it by https://github.com/udacity/CarND-MPC-Project; assumed
for all of its versions. Stamps are in the names of the pictures, in the local time of that machine; taken for UTC.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path, PureWindowsPath
from typing import NamedTuple

import numpy as np

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.datasets.dataset_name import DatasetName, by_folder_name
from mt_nodes.data.datasets.picture_files import FORMATS, picture_topic
from mt_nodes.data.datasets.recorded_topic import DatasetRecording, RecordedTopic
from mt_nodes.data.datasets.vehicle_motion import drive_topic, fix_topic

CHALLENGE, SIMULATOR, PICTURES = "interpolated.csv", "driving_log.csv", "IMG"
#: Angle of the steering wheel by that of the road wheels, of the challenges' Lincoln MKZ
#: (https://github.com/udacity/CarND-Capstone, ``dbw.launch``: ``steer_ratio``).
STEERING_RATIO = 14.8
#: Of the simulator: greatest angle of the front wheels, and metres a second of a mile an hour.
GREATEST_STEERING_RAD, MPH_MPS = math.radians(25.0), 1.0 / 2.23693629
_CHALLENGE_COLUMNS = ("timestamp", "frame_id", "filename", "angle", "speed")
_PLACE_COLUMNS = ("lat", "long", "alt")
_SIMULATOR_COLUMNS = ("center", "left", "right", "steering", "throttle", "brake", "speed")
_CAMERAS = ("center_camera", "left_camera", "right_camera")
_TIME = re.compile(r"_(\d{4}(?:_\d\d){5})_(\d{3})$")


class LogLine(NamedTuple):
    """A picture with what the driver did then; ``place`` in degrees and metres, empty where the log has none."""

    stamp_ns: int
    camera: str
    file: Path
    speed_mps: float
    steering_rad: float
    place: tuple[float, ...] = ()


def scenes(name: DatasetName) -> list[str]:
    """Return the drives that a folder is or holds. Raises UsageError: there is none."""
    return list(_logs(name))


def load(name: DatasetName) -> DatasetRecording:
    """Return a drive: pictures of each camera and the driver's speed and steering; of the challenges the place, too.

    There are no intrinsics and no transforms. Raises UsageError: an option is of the other kind of drive.
    InfrastructureError: the log is damaged, or a picture that it names is missing.
    """
    log = _logs(name)[name.scene]
    if log.name == SIMULATOR and "ratio" in name.options:
        raise UsageError(f"{name}: {log} has the angle of the road wheels; leave ratio= out")
    read = _simulator(log) if log.name == SIMULATOR else _challenge(log, name.number("ratio", STEERING_RATIO))
    lines = sorted(read, key=lambda line: line.stamp_ns)
    if not lines:
        raise InfrastructureError(f"{log}: got no line with a picture")
    cameras = {camera: [line for line in lines if line.camera == camera] for camera in {n.camera: 0 for n in lines}}
    topics = [_pictures(log, camera, cameras[camera], name.raw_images) for camera in sorted(cameras)]
    instants = list({line.stamp_ns: line for line in lines}.values())
    stamps_ns = [line.stamp_ns for line in instants]
    motion = np.array([(line.speed_mps, line.steering_rad) for line in instants])
    topics.append(drive_topic(stamps_ns, motion[:, 0], motion[:, 1]))
    if all(line.place for line in instants):
        topics.append(fix_topic(stamps_ns, np.array([line.place for line in instants])))
    return DatasetRecording(name, topics, tables=[log])


def _logs(name: DatasetName) -> dict[str, Path]:
    """Return the log of each drive."""
    for pattern in ("", "*/", "*/*/"):
        logs = [p for file in (CHALLENGE, SIMULATOR) for p in name.path.glob(pattern + file) if p.is_file()]
        homes = {log.parent: log for log in logs}
        if len(homes) < len(logs):
            both = next(log.parent for log in logs if homes[log.parent] != log)
            raise UsageError(f"{both}: has {CHALLENGE} and {SIMULATOR}; move one of them elsewhere")
        if homes:
            return {scene: homes[home] for scene, home in by_folder_name(sorted(homes)).items()}
    raise UsageError(f"{name}: no drive; expected {CHALLENGE} of a challenge or {SIMULATOR} of the simulator")


def _challenge(log: Path, ratio: float) -> Iterator[LogLine]:
    for where, row in _rows(log, None):
        missing = [column for column in _CHALLENGE_COLUMNS if column not in row]
        if missing:
            raise InfrastructureError(f"{log}: got columns {', '.join(row)}, expected also {', '.join(missing)}")
        speed, angle = (_number(row, column, where) for column in ("speed", "angle"))
        place = tuple(_number(row, c, where) for c in _PLACE_COLUMNS) if set(_PLACE_COLUMNS) <= set(row) else ()
        stamp = row["timestamp"]
        if not stamp.isdigit():
            raise InfrastructureError(f"{where}: timestamp: got '{stamp}', expected nanoseconds since 1970")
        if not re.fullmatch(r"\w+", row["frame_id"]):
            raise InfrastructureError(f"{where}: frame_id: got '{row['frame_id']}', expected such as center_camera")
        file = _present(log.parent / row["filename"], where)
        yield LogLine(int(stamp), row["frame_id"], file, speed, angle / ratio, place)


def _simulator(log: Path) -> Iterator[LogLine]:
    for where, row in _rows(log, _SIMULATOR_COLUMNS):
        speed = _number(row, "speed", where) * MPH_MPS
        steering = -_number(row, "steering", where) * GREATEST_STEERING_RAD  # to the right is positive there
        for camera, column in zip(_CAMERAS, _SIMULATOR_COLUMNS, strict=False):
            if row[column]:  # some logs have been stripped of two cameras
                # The path is one of the machine that recorded it, perhaps of Windows.
                file = _present(log.parent / PICTURES / PureWindowsPath(row[column]).name, where)
                yield LogLine(_stamp_ns(file), camera, file, speed, steering)


def _rows(log: Path, columns: Sequence[str] | None) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield each line with its place; ``columns``: of a file whose first line may name them or not; None: it does."""
    try:
        table = list(csv.reader(log.read_text(encoding="utf-8-sig").splitlines(), strict=True, skipinitialspace=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InfrastructureError(f"{log}: cannot be read as a table with commas: {error}") from error
    named = columns is None or bool(table and table[0][:1] == [columns[0]])
    names = columns or (table[0] if table else [])
    for number, cells in enumerate(table[named:], 1 + named):
        if len(cells) != len(names):
            got = f"got {len(cells)} values, expected {len(names)}: {','.join(names)}"
            raise InfrastructureError(f"{log}:{number}: {got}")
        yield f"{log}:{number}", {name: cell.strip() for name, cell in zip(names, cells, strict=True)}


def _number(row: Mapping[str, str], column: str, where: str) -> float:
    try:
        number = float(row[column])
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InfrastructureError(f"{where}: {column}: got '{row[column]}', expected a number")
    return number


def _present(file: Path, where: str) -> Path:
    if file.suffix.lower() not in FORMATS or not file.is_file():
        raise InfrastructureError(f"{where}: there is no picture {file}")
    return file


def _stamp_ns(file: Path) -> int:
    found = _TIME.search(file.stem)
    try:
        if found is None:
            raise ValueError("no time in it")
        whole = datetime.strptime(found[1], "%Y_%m_%d_%H_%M_%S").replace(tzinfo=timezone.utc)
    except ValueError as error:
        expected = "expected a name such as center_2016_12_01_13_30_48_287.jpg"
        raise InfrastructureError(f"{file}: {expected}: {error}") from error
    return int(whole.timestamp()) * 1_000_000_000 + int(found[2]) * 1_000_000


def _pictures(log: Path, camera: str, lines: Sequence[LogLine], raw: bool) -> RecordedTopic:
    stamps_ns = [line.stamp_ns for line in lines]
    for before, after in pairwise(lines):
        if before.stamp_ns == after.stamp_ns:
            raise InfrastructureError(f"{log}: {before.file} and {after.file} of {camera} have one stamp")
    return picture_topic(f"/{camera}/image", camera, stamps_ns, [line.file for line in lines], raw)
