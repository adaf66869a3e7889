# SPDX-License-Identifier: Apache-2.0
"""Pictures with boxes in files: COCO's instances, and the folders of YOLO; written, and read again.

COCO: https://cocodataset.org/#format-data (``bbox`` is x, y, width, height; ``iscrowd`` 1 is neither to be found nor
wrong). YOLO: https://docs.ultralytics.com/datasets/detect/ (a line: class, middle x and y, width and height in shares
of the picture's). In both the upper left corner of the picture is (0, 0), here it is (-0.5, -0.5): pixel centres lie at
whole numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from mt_nodes.base.directories import write_whole
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.yaml_files import read_mapping
from mt_nodes.data.datasets.picture_files import FORMATS, picture_size
from mt_nodes.data.outputs import ImageBoxes

COCO_FILE, YOLO_FILE = "annotations/instances_train.json", "data.yaml"
_YOLO_HEAD = """# Failing inputs to learn from. To validate, name images of your own that were not learned from:
# val: /path/to/images
"""


@dataclass(frozen=True, eq=False)
class BoxedPicture:
    """A picture's file, its (width, height), and its boxes; ``ignored``: neither to be found nor wrong."""

    path: Path
    size_px: tuple[int, int]
    boxes: ImageBoxes
    ignored: ImageBoxes


def write_coco(home: Path, pictures: Sequence[BoxedPicture]) -> None:
    """Write the annotations of pictures in ``home/images``. Raises OSError: the disk is full, for example."""
    ids = _class_ids([one.boxes for one in pictures] + [one.ignored for one in pictures], first=1)
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number, one in enumerate(pictures, 1):
        width, height = one.size_px
        images.append({"id": number, "file_name": one.path.name, "width": width, "height": height})
        for boxes, crowd in ((one.boxes, 0), (one.ignored, 1)):
            for (x0, y0, x1, y1), label, score in zip(boxes.box_px, boxes.label, boxes.score, strict=True):
                bbox = [round(float(v), 3) for v in (x0 + 0.5, y0 + 0.5, x1 - x0, y1 - y0)]
                row = {"id": len(annotations) + 1, "image_id": number, "category_id": ids[str(label)], "bbox": bbox}
                area = {"area": round(bbox[2] * bbox[3], 3), "iscrowd": crowd, "segmentation": []}
                annotations.append({**row, **area, "attributes": {"score": round(float(score), 6)}})
    categories = [{"id": number, "name": name, "supercategory": ""} for name, number in ids.items()]
    table = {"images": images, "annotations": annotations, "categories": categories}
    (home / COCO_FILE).parent.mkdir(parents=True, exist_ok=True)
    write_whole(home / COCO_FILE, json.dumps(table, indent=1))


def write_yolo(home: Path, pictures: Sequence[BoxedPicture]) -> None:
    """Write the labels of pictures in ``home/images/train``; the format cannot say what is to be ignored."""
    ids = _class_ids([one.boxes for one in pictures], first=0)
    (home / "labels" / "train").mkdir(parents=True, exist_ok=True)
    for one in pictures:
        scale = np.tile(one.size_px, 2)
        middle = np.column_stack([one.boxes.box_px[:, :2] + one.boxes.box_px[:, 2:] + 1.0]) / 2.0
        extent = one.boxes.box_px[:, 2:] - one.boxes.box_px[:, :2]
        rows = np.column_stack([middle, extent]) / scale
        lines = (
            f"{ids[str(n)]} {' '.join(f'{v:.6f}' for v in r)}\n" for n, r in zip(one.boxes.label, rows, strict=True)
        )
        write_whole(home / "labels" / "train" / f"{one.path.stem}.txt", "".join(lines))
    about = {"path": ".", "train": "images/train", "names": {number: name for name, number in ids.items()}}
    write_whole(home / YOLO_FILE, _YOLO_HEAD + yaml.safe_dump(about, sort_keys=False))


def read_boxed_pictures(home: Path) -> list[BoxedPicture]:
    """Read a folder with COCO's instances or YOLO's labels.

    Raises UsageError: it is neither. InfrastructureError: a file is damaged.
    """
    if (home / COCO_FILE).is_file():
        return _read(home / COCO_FILE, lambda: list(_coco(home)))
    if (home / YOLO_FILE).is_file():
        return _read(home / YOLO_FILE, lambda: list(_yolo(home)))
    raise UsageError(f"{home}: no {COCO_FILE} and no {YOLO_FILE}; expected a folder of `mt replay failures export`")


def _read(path: Path, read: Any) -> list[BoxedPicture]:
    try:
        found: list[BoxedPicture] = read()
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise InfrastructureError(f"{path}: cannot be read: {type(error).__name__}: {error}") from error
    return found


def _coco(home: Path) -> Iterator[BoxedPicture]:
    table = json.loads((home / COCO_FILE).read_text(encoding="utf-8"))
    names = {row["id"]: row["name"] for row in table["categories"]}
    rows: dict[int, dict[bool, list[Mapping[str, Any]]]] = {}
    for row in table["annotations"]:
        rows.setdefault(row["image_id"], {}).setdefault(bool(row["iscrowd"]), []).append(row)

    def boxes(found: Sequence[Mapping[str, Any]]) -> ImageBoxes:
        corner = np.array([row["bbox"] for row in found], dtype=np.float64).reshape(-1, 4)
        edges = np.column_stack([corner[:, :2], corner[:, :2] + corner[:, 2:]]) - 0.5
        scores = [row.get("attributes", {}).get("score", 1.0) for row in found]
        return ImageBoxes.make("camera", None, edges, [names[row["category_id"]] for row in found], scores)

    for image in table["images"]:
        both = rows.get(image["id"], {})
        path = home / "images" / image["file_name"]
        size = (int(image["width"]), int(image["height"]))
        yield BoxedPicture(path, size, boxes(both.get(False, [])), boxes(both.get(True, [])))


def _yolo(home: Path) -> Iterator[BoxedPicture]:
    about = read_mapping(home / YOLO_FILE)
    names, folder = about["names"], home / about["train"]
    for path in sorted(p for p in folder.iterdir() if p.suffix.lower() in FORMATS):
        size = picture_size(path)
        file = Path(str(folder).replace("images", "labels")) / f"{path.stem}.txt"
        rows = np.array([line.split() for line in file.read_text().splitlines()], dtype=np.float64).reshape(-1, 5)
        middle, half = rows[:, 1:3] * size, rows[:, 3:] * size / 2.0
        edges = np.column_stack([middle - half, middle + half]) - 0.5
        labels = [str(names[int(number)]) for number in rows[:, 0]]
        boxes = ImageBoxes.make("camera", None, edges, labels)
        yield BoxedPicture(path, size, boxes, ImageBoxes.none("camera", None))


def _class_ids(boxes: Sequence[ImageBoxes], first: int) -> dict[str, int]:
    names = {str(label) for one in boxes for label in one.label}
    return {name: number for number, name in enumerate(sorted(names), first)}
