# SPDX-License-Identifier: Apache-2.0
"""Names of recordings that are no bags: ``nuscenes:/data/nuscenes,scene=scene-0061``."""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from mt_nodes.base.errors import UsageError, suggest

#: Data set -> its options.
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "kitti": ("scene", "images", "height"),
    "nuscenes": ("scene", "version", "images"),
    "argoverse2": ("scene", "images", "height"),
    "waymo": ("scene", "images"),
    "a2d2": ("scene", "images", "height", "ratio"),
    "udacity": ("scene", "images", "ratio"),
    "folder": ("images", "rate", "columns"),
}
#: How a camera's pictures are given to a stack.
IMAGES = ("stored", "raw")
FORM = "DATASET:DIR[,OPTION=VALUE…]"
#: What a command that takes a recording says of it.
RECORDING_HELP = "bag directory, .mcap, .db3, ROS 1 .bag, or a data set such as kitti:DIR"


@dataclass(frozen=True)
class DatasetName:
    """A recording of a data set.

    Attributes:
        dataset: one of :data:`OPTIONS`.
        directory: where it is.
        options: ``scene`` (which drive), ``images`` (``stored``: as ``CompressedImage``, the file's own bytes; ``raw``:
            decoded), ``height`` (of the data set's vehicle or LiDAR frame above the ground, in metres), ``ratio`` (of
            the steering wheel's angle to that of the road wheels), ``version`` (of nuScenes), ``rate`` (frames a
            second) and ``columns`` (floats a point of ``.bin``) of a folder.
    """

    dataset: str
    directory: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str | Path) -> DatasetName:
        """Read a name. Raises UsageError: an option is unknown, or has no value that can be used."""
        dataset, _, rest = str(text).partition(":")
        directory, *pairs = _split(rest, OPTIONS[dataset])
        options = dict(pair.split("=", 1) for pair in pairs)
        _refuse_wrong_values(str(text), options)
        if not directory:
            raise UsageError(f"{text}: no directory; expected {FORM}, such as {dataset}:/data/{dataset}")
        return cls(dataset, str(Path(directory).expanduser()), options)

    def __str__(self) -> str:
        return ",".join([f"{self.dataset}:{self.directory}", *(f"{k}={v}" for k, v in self.options.items())])

    @property
    def path(self) -> Path:
        """The directory."""
        return Path(self.directory)

    @property
    def scene(self) -> str:
        """The drive that is chosen, empty where none is."""
        return self.options.get("scene", "")

    @property
    def raw_images(self) -> bool:
        """Whether pictures are decoded."""
        return self.options.get("images") == "raw"

    def number(self, option: str, default: float) -> float:
        """Return an option that is a number."""
        return float(self.options.get(option, default))

    def with_scene(self, scene: str) -> DatasetName:
        """Return the name of one drive."""
        return replace(self, options={**self.options, "scene": scene})

    def beside(self, folder: Path) -> DatasetName:
        """Return it with an absolute directory; a relative one begins at a folder."""
        return replace(self, directory=os.path.normpath(folder.absolute() / self.directory))

    def matches(self) -> list[DatasetName]:
        """Return one name for each directory that it names, by name; wildcards may stand in the directory."""
        if not any(sign in self.directory for sign in "*?["):
            return [self]
        found = sorted(glob.glob(self.directory, recursive=True))  # noqa: PTH207  pathlib knows no absolute patterns
        return [replace(self, directory=place) for place in found if Path(place).is_dir()]


def is_dataset(text: str | Path) -> bool:
    """Whether it is the name of a recording of a data set, and none of a bag."""
    dataset, colon, rest = str(text).partition(":")
    return bool(colon) and dataset in OPTIONS and not rest.startswith("//")


def located(text: str, folder: Path) -> str:
    """Return the name of a bag or data set with an absolute path; a relative one begins at a folder."""
    return str(DatasetName.parse(text).beside(folder)) if is_dataset(text) else str((folder / text).resolve())


def by_folder_name(folders: Iterable[Path]) -> dict[str, Path]:
    """Return folders by their names; with those of the folders above, as far as they need them to differ."""
    places = {folder.resolve(): folder for folder in folders}
    deepest = max((len(place.parts) for place in places), default=1)
    depth = next(n for n in range(1, deepest + 1) if len({place.parts[-n:] for place in places}) == len(places))
    return {"/".join(place.parts[-depth:]): folder for place, folder in places.items()}


def exists(text: str) -> bool:
    """Whether there is such a bag or directory of a data set."""
    return (DatasetName.parse(text).path if is_dataset(text) else Path(text)).exists()


def hint(text: str | Path) -> str:
    """Return a suggestion where a path that does not exist looks like a data set's name, else nothing."""
    dataset, colon, rest = str(text).partition(":")
    close = difflib.get_close_matches(dataset, OPTIONS, n=1) if colon else []
    return f"; did you mean '{close[0]}:{rest}'?" if close else ""


def _split(rest: str, known: tuple[str, ...]) -> list[str]:
    """Return the directory and the ``OPTION=VALUE`` behind it; a comma within the directory stays."""
    parts = rest.split(",")
    first = next((i for i, part in enumerate(parts) if i and "=" in part), len(parts))
    for part in parts[first:]:
        option, equals, value = part.partition("=")
        if option not in known or not equals or not value:
            expected = ", ".join(f"{name}=…" for name in known)
            raise UsageError(f"got ',{part}' in {rest}, expected {expected}{suggest(option, known)}")
    return [",".join(parts[:first]), *parts[first:]]


def _refuse_wrong_values(text: str, options: Mapping[str, str]) -> None:
    if options.get("images", IMAGES[0]) not in IMAGES:
        raise UsageError(f"{text}: got images={options['images']}, expected {' or '.join(IMAGES)}")
    for option in {"height", "rate", "columns", "ratio"} & set(options):
        try:
            number = float(options[option])
        except ValueError:
            number = -1.0
        least = {"columns": 3.0, "height": -10.0}.get(option, 1e-6)
        if not least <= number < 1e6 or (option == "columns" and number != int(number)):
            raise UsageError(f"{text}: got {option}={options[option]}, expected a number of {least:g} or more")
