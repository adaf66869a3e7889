# SPDX-License-Identifier: Apache-2.0
"""What a model learns from: pictures in the order of drives, with speed and steering. Needs no PyTorch.

A folder of pictures has a file ``samples.csv`` whose first line is ``image,speed_mps,steering_rad,drive`` (others may
follow). The lines of one drive are in the order of time and stand together; steering is that of the road wheels,
positive to the left.
"""

from __future__ import annotations

import csv
import io
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.base.directories import write_whole
from mt_nodes.base.errors import UsageError
from mt_nodes.runs.models.preprocessing import Bytes, Preparation

COLUMNS = ("image", "speed_mps", "steering_rad", "drive")
FILE = "samples.csv"
#: Parts of every drive, in the order of time, and the share of the first two.
PARTS = ("train", "validation", "test")
_TRAIN, _VALIDATION = 0.8, 0.1
#: No road wheel turns farther, and no car on a road is faster: such numbers are in other units.
_MOST_RAD, _MOST_MPS = math.pi / 3.0, 100.0

Indices = npt.NDArray[np.intp]


class Sample(NamedTuple):
    """One frame of a drive: where its picture is, what the vehicle did (or was told to do), which drive it is of."""

    image: Path
    speed_mps: float
    steering_rad: float
    drive: str


class PictureSample(NamedTuple):
    """One frame of a drive with its picture (H, W, 3), red, green, blue."""

    rgb: Bytes
    speed_mps: float
    steering_rad: float
    drive: str


@dataclass(frozen=True, eq=False)
class Frames:
    """Prepared pictures of drives.

    Attributes:
        planes: (N, 3, height, width) uint8, see :class:`~mt_nodes.runs.models.preprocessing.Preparation`.
        commands: (N, 2) speed in m/s and steering in rad at each frame.
        drive: (N,) number of the drive; frames of one follow each other.
    """

    planes: Bytes
    commands: Floats
    drive: Indices

    def __len__(self) -> int:
        return len(self.commands)

    @property
    def crc32(self) -> str:
        """Eight digits that tell other frames from these."""
        return f"{zlib.crc32(self.commands.tobytes(), zlib.crc32(self.planes.data)):08x}"

    @property
    def part(self) -> Indices:
        """(N,) place in :data:`PARTS`: the first 80 % of each drive, the next 10 %, and what is left."""
        _, begins, counts = _runs(self.drive)
        at = np.arange(len(self)) - begins
        train, validation = np.floor(_TRAIN * counts), np.floor(_VALIDATION * counts)
        return np.asarray(np.add(at >= train, at >= train + validation, dtype=np.intp))

    def windows(self, frames: int, ahead: int, part: str = "") -> Windows:
        """Return all stretches of so many frames with what is done ``ahead`` frames after the last, of a part or all.

        None crosses from one drive into another, or from one part into another: of frames next to each other nothing
        could be learned about what is held out.
        """
        parts = self.part if part else np.zeros(len(self), dtype=np.intp)
        _, begins, counts = _runs(self.drive * len(PARTS) + parts)
        at = np.arange(len(self)) - begins
        usable = (at >= frames - 1) & (at + ahead < counts)
        if part:
            usable &= parts == PARTS.index(part)
        last = np.flatnonzero(usable)
        return Windows(self.planes, last[:, None] + np.arange(1 - frames, 1), self.commands[last + ahead])


@dataclass(frozen=True, eq=False)
class Windows:
    """Stretches of frames: ``rows`` (M, T) into ``planes``, and ``targets`` (M, 2), speed and steering."""

    planes: Bytes
    rows: Indices
    targets: Floats

    def __len__(self) -> int:
        return len(self.rows)

    def pictures(self, chosen: Indices) -> Bytes:
        """Return (K, T, 3, height, width) of the stretches that are chosen."""
        return np.asarray(self.planes[self.rows[chosen]])


def load_frames(
    sources: Iterable[Iterable[PictureSample]],
    prepared: Preparation,
    progress: Callable[[int], None] = lambda read: None,
) -> Frames:
    """Read pictures with their labels, of one source after the other; equal names of drives in two are two drives.

    ``progress``: is told how many frames have been read.
    Raises UsageError: there is no frame in them, or a drive of one source is interrupted by another.
    """
    planes: list[Bytes] = []
    commands: list[tuple[float, float]] = []
    drives: list[tuple[int, str]] = []
    for number, source in enumerate(sources):
        for shown in source:
            planes.append(prepared.planes(shown.rgb))
            commands.append((shown.speed_mps, shown.steering_rad))
            drives.append((number, shown.drive))
            progress(len(commands))
    if not commands:
        raise UsageError("got no picture with speed and steering, expected at least one drive of them")
    numbers = {drive: i for i, drive in enumerate(dict.fromkeys(drives))}
    return Frames(np.stack(planes), np.array(commands), np.array([numbers[drive] for drive in drives]))


def read_samples(folder: Path) -> list[Sample]:
    """Return the lines of a folder's ``samples.csv``.

    Raises UsageError: there is none, a column is missing, a value is no number or none in the unit, a drive is
    interrupted by another.
    """
    path = folder / FILE
    if not path.is_file():
        raise UsageError(f"{folder}: got no {FILE}, expected a folder of pictures with one: {','.join(COLUMNS)}")
    try:
        table = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig")), strict=True)
        rows = [(f"{path}:{table.line_num}", row) for row in table]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path}: cannot be read as a table with commas: {error}") from error
    lacking = [name for name in COLUMNS if name not in (table.fieldnames or ())]
    if lacking:
        got = ",".join(table.fieldnames or ()) or "an empty file"
        raise UsageError(f"{path}:1: got {got}, expected also {', '.join(lacking)}")
    samples: list[Sample] = []
    over: set[str] = set()
    for where, row in rows:
        sample = _sample(row, folder, where)
        if samples and sample.drive != samples[-1].drive:
            over.add(samples[-1].drive)
        if sample.drive in over:
            raise UsageError(f"{where}: drive '{sample.drive}' goes on after another; keep its lines together")
        samples.append(sample)
    return samples


def shown_in(folder: Path) -> Iterator[PictureSample]:
    """Yield the frames of a folder. Raises UsageError: as :func:`read_samples`, or a picture cannot be read."""
    import cv2

    for sample in read_samples(folder):
        bgr = cv2.imread(str(sample.image), cv2.IMREAD_COLOR) if sample.image.is_file() else None
        if bgr is None:
            what = "no picture that can be read" if sample.image.is_file() else "no such file"
            raise UsageError(f"{sample.image}: got {what}; {folder / FILE} names it")
        yield PictureSample(np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB), dtype=np.uint8), *sample[1:])


def write_samples(folder: Path, samples: Sequence[Sample]) -> None:
    """Write ``samples.csv`` of a folder, whole or not at all; images are named relative to it where they lie in it."""
    rows = [(_relative(s.image, folder), f"{s.speed_mps:.6g}", f"{s.steering_rad:.6g}", s.drive) for s in samples]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *rows])
    write_whole(folder / FILE, text.getvalue())


def refuse_other_unit(speed_mps: float, steering_rad: float, where: str) -> None:
    """Refuse labels that are no finite numbers, or that no car reaches. Raises UsageError."""
    for name, value, most, mistaken in (
        ("speed_mps", speed_mps, _MOST_MPS, "km/h"),
        ("steering_rad", steering_rad, _MOST_RAD, "degrees, or the steering wheel's angle"),
    ):
        if not math.isfinite(value):
            raise UsageError(f"{where}: {name}: got {value}, expected a number; leave frames out that have none")
        if abs(value) > most:
            raise UsageError(f"{where}: {name}: got {value:g}, expected at most {most:.3g}; is it in {mistaken}?")


def _relative(image: Path, folder: Path) -> str:
    return str(image.relative_to(folder) if image.is_relative_to(folder) else image)


def _sample(row: dict[str, str | None], folder: Path, where: str) -> Sample:
    image, speed, steering, drive = (row[name] for name in COLUMNS)
    if not image or drive is None:
        raise UsageError(f"{where}: got {len([v for v in row.values() if v])} values, expected {','.join(COLUMNS)}")
    try:
        sample = Sample(folder / image, float(speed or "nan"), float(steering or "nan"), drive)
    except ValueError as error:
        raise UsageError(f"{where}: {error}, expected a number") from None
    refuse_other_unit(sample.speed_mps, sample.steering_rad, where)
    return sample


def _runs(keys: Indices) -> tuple[Indices, Indices, Indices]:
    """Return (N,) which run of equal keys each is in, where that begins, and how long it is."""
    begins = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    run = np.cumsum(np.r_[True, keys[1:] != keys[:-1]]) - 1
    counts = np.diff(np.r_[begins, len(keys)])
    return run, begins[run], counts[run]
