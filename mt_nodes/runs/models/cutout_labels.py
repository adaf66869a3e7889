# SPDX-License-Identifier: Apache-2.0
"""Labelled objects of pictures, for cut-outs: COCO, instance pictures of Cityscapes and KITTI, boxes of a data set.

COCO: T.-Y. Lin et al., "Microsoft COCO: Common Objects in Context", ECCV 2014, and its development kit (polygons, and
run lengths by columns). Instance pictures: 16 bits, class times 1000 plus number (M. Cordts et al., Cityscapes, CVPR
2016, ``*_instanceIds.png``), or times 256 (KITTI's semantic benchmark, ``instance/*.png``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.world.scene.objects import KINDS

Flags = npt.NDArray[np.bool_]

#: Classes of data sets -> our kinds; a kind's own name is known, too.
_KINDS = {
    "person": "adult", "pedestrian": "adult", "bicyclist": "cyclist", "motorcyclist": "motor_cyclist",
    "motorcycle": "motor_cyclist", "tram": "tram", "train": "tram",
}  # fmt: skip
#: Class numbers of Cityscapes that are things -> our kinds; riders have no vehicle with them, vehicles no rider.
_CITYSCAPES = {24: "adult", 26: "car", 27: "truck", 28: "bus", 31: "tram"}
#: Factors between class and number of an instance in the two formats, and the least of the first.
_FACTORS, _LEAST = (1000, 256), 24_000


@dataclass(frozen=True, eq=False)
class LabelledObject:
    """An object in a picture.

    ``kind``: of the catalogue. ``mask``: (H, W). ``view_deg``: from where the camera sees it: 0 its front, 90 its left,
    180 its rear; None: not known. ``whole``: whether the label says that nothing hides it.
    """

    kind: str
    mask: Flags
    view_deg: float | None = None
    whole: bool = True


def kind_of(name: str) -> str | None:
    """Return the kind that a class name stands for, None for none."""
    plain = name.strip().lower().replace(" ", "_")
    return plain if plain in KINDS else _KINDS.get(plain)


class PictureLabels:
    """Labels by the number in a picture's file name: the frame's, or its stamp in nanoseconds."""

    def __init__(self, by_number: Mapping[int, Any]) -> None:
        self._by_number = by_number

    def __len__(self) -> int:
        return len(self._by_number)

    def of(self, index: int, stamp_ns: int, size: tuple[int, int]) -> list[LabelledObject]:
        """Return the objects of a frame's picture of a size (height, width); none where it has no labels."""
        found = self._by_number.get(stamp_ns, self._by_number.get(index))
        return [] if found is None else self._objects(found, size)

    def _objects(self, found: Any, size: tuple[int, int]) -> list[LabelledObject]:
        raise NotImplementedError


def read_labels(path: Path) -> PictureLabels:
    """Read a COCO file, or a folder of instance pictures. Raises UsageError: it is neither."""
    if path.is_dir():
        files = {number: p for p in sorted(path.glob("*.png")) if (number := number_of(p.name)) is not None}
        if not files:
            raise UsageError(f"--labels {path}: no .png whose name has a frame's number, such as 000012.png")
        return InstancePictures(files)
    if not path.is_file():
        raise UsageError(f"--labels {path}: there is no such file or folder")
    return _coco(path)


def number_of(name: str) -> int | None:
    """Return the last number in a file name that is no part of a word, None for none."""
    numbers = re.findall(r"(?<![A-Za-z0-9])\d+(?![A-Za-z0-9])", Path(name).stem.replace("_", " "))
    return int(numbers[-1]) if numbers else None


class InstancePictures(PictureLabels):
    """A folder of instance pictures."""

    def _objects(self, found: Any, size: tuple[int, int]) -> list[LabelledObject]:
        ids = cv2.imread(str(found), cv2.IMREAD_UNCHANGED)
        if ids is None or ids.dtype != np.uint16 or ids.shape != size:
            got = "no picture" if ids is None else f"{ids.dtype} {ids.shape}"
            raise InfrastructureError(
                f"{found}: got {got}, expected uint16 {size}: class times 1000 or 256 plus number"
            )
        result = []
        for value in np.unique(ids).tolist():
            factor = _FACTORS[0] if value >= _LEAST else _FACTORS[1]
            kind = _CITYSCAPES.get(value // factor)
            if kind is not None and value >= _FACTORS[1]:
                result.append(LabelledObject(kind, ids == value))
        return result


class CocoLabels(PictureLabels):
    """Annotations of a COCO file."""

    def _objects(self, found: Any, size: tuple[int, int]) -> list[LabelledObject]:
        return [item for annotation in found if (item := _annotated(annotation, size)) is not None]


def _coco(path: Path) -> CocoLabels:
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        names = {row["id"]: str(row["name"]) for row in table["categories"]}
        pictures = {row["id"]: str(row["file_name"]) for row in table["images"]}
        by_number: dict[int, list[dict[str, Any]]] = {}
        for row in table["annotations"]:
            number = number_of(pictures[row["image_id"]])
            if number is None:
                raise ValueError(f"'{pictures[row['image_id']]}' has no frame's number in its name")
            by_number.setdefault(number, []).append({**row, "class": names[row["category_id"]]})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"--labels {path}: is no COCO file of annotated pictures: {error}") from error
    return CocoLabels(by_number)


def _annotated(row: Mapping[str, Any], size: tuple[int, int]) -> LabelledObject | None:
    """Return an annotation; None for a crowd, or of a class that is no kind."""
    kind, attributes = kind_of(row["class"]), row.get("attributes") or {}
    if kind is None or row.get("iscrowd"):
        return None
    mask = _mask(row.get("segmentation"), size, str(row.get("id")))
    view = attributes.get("view_deg")
    return LabelledObject(kind, mask, None if view is None else float(view), not attributes.get("occluded"))


def _mask(segmentation: Any, size: tuple[int, int], number: str) -> Flags:
    mask = np.zeros(size, np.uint8)
    if isinstance(segmentation, Mapping):
        counts = segmentation["counts"]
        lengths = _lengths(counts) if isinstance(counts, str) else list(counts)
        if list(segmentation["size"]) != list(size) or sum(lengths) != mask.size:
            raise InfrastructureError(f"annotation {number}: its run lengths are not of a picture of {size}")
        values = np.repeat(np.arange(len(lengths)) % 2, lengths)
        return np.asarray(values.reshape(size[::-1]).T != 0)
    if not segmentation:
        raise InfrastructureError(f"annotation {number}: has no segmentation: polygons or run lengths")
    for polygon in segmentation:
        corners = np.array(polygon, np.float64).reshape(-1, 2)
        cv2.fillPoly(mask, [np.rint(corners * 16.0).astype(np.int32)], 1, shift=4)
    return np.asarray(mask != 0)


def _lengths(text: str) -> Sequence[int]:
    """Return the run lengths of COCO's compressed text (``rleFrString`` of its development kit)."""
    lengths: list[int] = []
    at = 0
    while at < len(text):
        value, shift, more = 0, 0, True
        while more:
            code = ord(text[at]) - 48
            value |= (code & 0x1F) << shift
            more, at, shift = bool(code & 0x20), at + 1, shift + 5
            if not more and code & 0x10:
                value |= -1 << shift
        lengths.append(value + (lengths[-2] if len(lengths) > 2 else 0))
    return lengths
