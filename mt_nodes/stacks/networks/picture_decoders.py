# SPDX-License-Identifier: Apache-2.0
"""Boxes out of what camera detectors say, by the name of the family that they are of.

Each decoder takes the outputs by name, the width and height of the network's input, and the number of classes that the
stack file names (0: none), and returns boxes (M, 4) in pixels of the input, scores (M,) and classes (M,). It is not
its business to drop boxes that overlap.

The forms are those that the families' own export writes: ultralytics/yolov5 and ultralytics/ultralytics, Megvii's
YOLOX, RangiLyu/nanodet, dog-qiuqiu/FastestDet, qfgaohao/pytorch-ssd, TensorFlow's detection zoo, torchvision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats, Ints
from mt_nodes.base.errors import UsageError
from mt_nodes.base.network_file import Tensor

Found = tuple[Floats, Floats, Ints]
Decoder = Callable[[Mapping[str, Tensor], tuple[int, int], int], Found]

_YOLOX_STRIDES, _NANODET_STRIDES = (8, 16, 32), (8, 16, 32, 64)


def _only(outputs: Mapping[str, Tensor], expected: str, dimensions: int = 3) -> Floats:
    """Return the first output without its batch. Raises UsageError: it has another number of dimensions."""
    name, tensor = next(iter(outputs.items()))
    if tensor.ndim != dimensions or tensor.shape[0] != 1:
        raise UsageError(f"output '{name}' has the shape {tensor.shape}, expected {expected}")
    return np.asarray(tensor[0], dtype=np.float64)


def _corners(centre_and_size: Floats) -> Floats:
    """Turn x, y of the middle, width, height (M, 4) into edges (M, 4)."""
    middle, half = centre_and_size[:, :2], centre_and_size[:, 2:4] / 2.0
    return np.concatenate([middle - half, middle + half], axis=1)


def _best(edges: Floats, likely: Floats) -> Found:
    """Return boxes with the likeliest of their classes (M, C)."""
    kind = likely.argmax(axis=1)
    return edges, likely[np.arange(len(likely)), kind], kind


def _sized(columns: int, classes: int, other_columns: int, what: str) -> None:
    if columns <= other_columns or (classes and columns != other_columns + classes):
        expected = f"{other_columns} + {classes} classes" if classes else f"more than {other_columns}"
        raise UsageError(f"the output has {columns} numbers a box, expected {expected}: {what}")


def yolov5(outputs: Mapping[str, Tensor], size: tuple[int, int], classes: int) -> Found:
    """(1, M, 5 + C): middle and size in pixels, probability of an object, and of each class."""
    rows = _only(outputs, "(1, boxes, 5 + classes)")
    _sized(rows.shape[1], classes, 5, "x y width height objectness classes")
    return _best(_corners(rows), rows[:, 4:5] * rows[:, 5:])


def yolov8(outputs: Mapping[str, Tensor], size: tuple[int, int], classes: int) -> Found:
    """(1, 4 + C, M): middle and size in pixels, probability of each class."""
    rows = _only(outputs, "(1, 4 + classes, boxes)").T
    _sized(rows.shape[1], classes, 4, "x y width height classes")
    return _best(_corners(rows), rows[:, 4:])


def end_to_end(outputs: Mapping[str, Tensor], size: tuple[int, int], classes: int) -> Found:
    """(1, M, 6): edges in pixels, score, class, as YOLOv10 and exports with their own suppression say it."""
    rows = _only(outputs, "(1, boxes, 6)")
    if rows.shape[1] != 6:
        raise UsageError(f"the output has {rows.shape[1]} numbers a box, expected 6: x0 y0 x1 y1 score class")
    return rows[:, :4], rows[:, 4], rows[:, 5].astype(np.int64)


def yolox(outputs: Mapping[str, Tensor], size: tuple[int, int], classes: int) -> Found:
    """(1, M, 5 + C): offset from a point of a grid and logarithm of the size in strides, then as YOLOv5."""
    rows = _only(outputs, "(1, boxes, 5 + classes)")
    _sized(rows.shape[1], classes, 5, "x y width height objectness classes")
    points, strides = _grid_points(size, _strides_of(len(rows), size, _YOLOX_STRIDES))
    middle, extent = (rows[:, :2] + points) * strides, np.exp(np.minimum(rows[:, 2:4], 20.0)) * strides
    return _best(_corners(np.concatenate([middle, extent], axis=1)), rows[:, 4:5] * rows[:, 5:])


def nanodet(outputs: Mapping[str, Tensor], size: tuple[int, int], classes: int) -> Found:
    """(1, M, C + 4 * (R + 1)): probability of each class, distributions of distances to edges; or strides apart."""
    # The first version says six tensors, and its points are the middles of the cells.
    first = len(outputs) > 1
    rows = _heads_joined(outputs, classes) if first else _only(outputs, "(1, points, classes + 4 * bins)")
    bins = (rows.shape[1] - classes) / 4
    if not classes or bins < 2 or bins != int(bins):
        raise UsageError(
            f"the output has {rows.shape[1]} numbers a point, expected {classes} classes and 4 times the same number "
            "of bins: name all classes under labels"
        )
    points, strides = _grid_points(size, _strides_of(len(rows), size, _NANODET_STRIDES))
    logits = rows[:, classes:].reshape(len(rows), 4, int(bins))
    share = np.exp(logits - logits.max(axis=2, keepdims=True))
    away = (share / share.sum(axis=2, keepdims=True)) @ np.arange(bins) * strides
    middle = (points + 0.5 * first) * strides
    return _best(np.concatenate([middle - away[:, :2], middle + away[:, 2:]], axis=1), rows[:, :classes])


def _heads_joined(outputs: Mapping[str, Tensor], classes: int) -> Floats:
    """Return (M, C + 4 * (R + 1)) of tensors (…, C) and (…, 4 * (R + 1)), the finest grid first."""
    flat = [np.asarray(t, dtype=np.float64).reshape(-1, t.shape[-1]) for t in outputs.values()]
    likely = sorted((t for t in flat if t.shape[1] == classes), key=len, reverse=True)
    away = sorted((t for t in flat if t.shape[1] != classes), key=len, reverse=True)
    if not likely or [len(t) for t in likely] != [len(t) for t in away] or len({t.shape[1] for t in away}) > 1:
        got = ", ".join(f"{name} {t.shape}" for name, t in outputs.items())
        raise UsageError(f"got the outputs {got}, expected for each stride (points, {classes}) and (points, 4 * bins)")
    return np.hstack([np.concatenate(likely), np.concatenate(away)])


def fastestdet(outputs: Mapping[str, Tensor], size: tuple[int, int], classes: int) -> Found:
    """(1, 5 + C, H, W): objectness, logits of place and size in the picture, probability of each class."""
    planes = _only(outputs, "(1, 5 + classes, rows, columns)", 4)
    _sized(len(planes), classes, 5, "objectness x y width height classes")
    rows, columns = planes.shape[1:]
    flat = planes.reshape(len(planes), -1)
    y, x = np.divmod(np.arange(flat.shape[1]), columns)
    middle = (np.stack([x, y]) + np.tanh(flat[1:3])) / np.array([[columns], [rows]])
    extent = 1.0 / (1.0 + np.exp(-flat[3:5]))
    edges = _corners(np.concatenate([middle, extent]).T) * np.tile(size, 2)
    return _best(edges, (flat[:1] ** 0.6 * flat[5:] ** 0.4).T)


def ssd(outputs: Mapping[str, Tensor], size: tuple[int, int], classes: int) -> Found:
    """Edges (1, M, 4) as shares of the picture, probabilities (1, M, 1 + C) of the background and each class."""
    named = {name: t for name, t in outputs.items() if t.ndim == 3 and t.shape[0] == 1}
    boxes = [name for name, t in named.items() if t.shape[2] == 4]
    boxes = [name for name in boxes if "box" in name.lower() or "loc" in name.lower()] or boxes
    scores = [name for name in named if name not in boxes[:1]]
    if not boxes or not scores or named[boxes[0]].shape[1] != named[scores[0]].shape[1]:
        got = ", ".join(f"{name} {t.shape}" for name, t in outputs.items())
        raise UsageError(f"got the outputs {got}, expected boxes (1, M, 4) and scores (1, M, 1 + classes)")
    likely = np.asarray(named[scores[0]][0], dtype=np.float64)
    _sized(likely.shape[1], classes, 1, "the background, then the classes")
    return _best(np.asarray(named[boxes[0]][0], dtype=np.float64) * np.tile(size, 2), likely[:, 1:])


def tensorflow(outputs: Mapping[str, Tensor], size: tuple[int, int], classes: int) -> Found:
    """``detection_boxes`` (1, M, 4) y0 x0 y1 x1 as shares, ``detection_scores``, ``detection_classes`` from 1 on."""
    boxes, score, kind = _named_outputs(outputs, ("detection_boxes", "detection_scores", "detection_classes"))
    edges = boxes.reshape(-1, 4)[:, [1, 0, 3, 2]] * np.tile(size, 2)
    return edges, score.reshape(-1), kind.reshape(-1).astype(np.int64) - 1


def torchvision(outputs: Mapping[str, Tensor], size: tuple[int, int], classes: int) -> Found:
    """Boxes (M, 4) in pixels, labels (M,) of whole numbers, scores (M,): Faster R-CNN, RetinaNet, FCOS, SSD."""
    boxes = [t for t in outputs.values() if t.ndim == 2 and t.shape[1] == 4]
    labels = [t for t in outputs.values() if t.ndim == 1 and t.dtype.kind in "iu"]
    scores = [t for t in outputs.values() if t.ndim == 1 and t.dtype.kind == "f"]
    if not (boxes and labels and scores):
        got = ", ".join(f"{name} {t.shape} {t.dtype}" for name, t in outputs.items())
        raise UsageError(f"got the outputs {got}, expected boxes (M, 4), labels (M,) and scores (M,)")
    return boxes[0].astype(np.float64), scores[0].astype(np.float64), labels[0].astype(np.int64)


def _named_outputs(outputs: Mapping[str, Tensor], names: tuple[str, ...]) -> list[Floats]:
    found = [next((t for key, t in outputs.items() if name in key), None) for name in names]
    if any(t is None for t in found):
        raise UsageError(f"got the outputs {', '.join(outputs)}, expected {', '.join(names)}")
    return [np.asarray(t, dtype=np.float64) for t in found]


def _grid(size: tuple[int, int], stride: int) -> tuple[int, int]:
    return -(-size[0] // stride), -(-size[1] // stride)


def _strides_of(count: int, size: tuple[int, int], known: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of the grids that have so many points together. Raises UsageError: no such grids have."""
    for used in range(len(known), 0, -1):
        if sum(np.prod(_grid(size, stride)) for stride in known[:used]) == count:
            return known[:used]
    raise UsageError(f"got {count} boxes, which no grids of strides {known} have in {size[0]} x {size[1]} pixels")


def _grid_points(size: tuple[int, int], strides: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return column and row (M, 2) of each point in its grid, and its stride (M, 1)."""
    points, each = [], []
    for stride in strides:
        columns, rows = _grid(size, stride)
        y, x = np.divmod(np.arange(columns * rows), columns)
        points.append(np.column_stack([x, y]))
        each.append(np.full((len(x), 1), float(stride)))
    return np.concatenate(points).astype(np.float64), np.concatenate(each)


#: Name in a stack file -> the decoder, and the form of the picture that such networks are trained with.
PICTURE_DECODERS: dict[str, tuple[Decoder, dict[str, Any]]] = {
    "yolov5": (yolov5, {"fit": "letterbox"}),
    "yolov8": (yolov8, {"fit": "letterbox"}),
    "end_to_end": (end_to_end, {"fit": "letterbox"}),
    "yolox": (yolox, {"fit": "corner", "order": "bgr", "spread": (1.0,)}),
    "nanodet": (nanodet, {"order": "bgr", "mean": (103.53, 116.28, 123.675), "spread": (57.375, 57.12, 58.395)}),
    "fastestdet": (fastestdet, {"order": "bgr", "resize": "area"}),
    "ssd": (ssd, {"mean": (127.0,), "spread": (128.0,)}),
    "tensorflow": (tensorflow, {"layout": "nhwc", "spread": (1.0,)}),
    "torchvision": (torchvision, {}),
}
