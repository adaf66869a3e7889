# SPDX-License-Identifier: Apache-2.0
"""Reads the return values of models: rows with names, mappings or tuples of arrays, structured arrays, tensors.

Every detector has its own names for the same columns. Unambiguous names are accepted; others are refused, with the
user's first row and the expected names in the error.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.outputs import Detections, ImageBoxes, Output
from mt_nodes.stacks.box_conventions import CENTRE, KITTI, KITTI_ORDER

Table = Mapping[str, Any]
"""Columns by name, one value a row."""

EXPECTED = (
    "expected for each obstacle x y z (or center), length width height (or size) and yaw in metres and radians, centre "
    "of the box, or for each box in an image box: [x0, y0, x1, y1] in pixels; and where there are any score, label, "
    "track_id and velocity"
)
#: Accepted names of columns.
CENTER = ("center_m", "center", "centre", "position", "location", "xyz")
SIZE = ("size_m", "size", "lwh")
AXES = (("x", "y", "z"), ("cx", "cy", "cz"))
SIDES = (("length", "width", "height"), ("l", "w", "h"), ("dx", "dy", "dz"))
YAW = ("yaw_rad", "yaw", "heading")
SCORE = ("score", "scores", "confidence", "conf", "prob", "probability", "pred_scores", "detection_score")
LABEL = (
    *("label", "labels", "class_name", "class", "category", "cls", "class_id", "pred_labels", "detection_name"),
    *("name", "type"),
)
TRACK = ("track_id", "tracking_id", "id")
VELOCITY = ("velocity_mps", "velocity")
BOXES_3D = ("boxes_3d", "pred_boxes", "boxes_lidar", "boxes", "box")
BOXES_2D = ("box_px", "boxes", "box", "bbox", "xyxy")
#: Names that occur together in nuScenes' boxes.
NUSCENES = ("translation", "size", "rotation")
#: Names whose values have another meaning.
OTHER_CONVENTIONS = {
    "rotation_y": "KITTI's angle about the camera's axis and its bottom centre: write boxes: kitti_camera and "
    "boxes_frame: (the camera's frame) into the stack file, or convert to x y z length width height yaw",
    "alpha": "KITTI's observation angle: convert to x y z length width height yaw in the frame that points_frame names",
    "extent": "half of the size in CARLA, and all of it elsewhere: return size: [length, width, height]",
    "dimensions": "height, width, length in KITTI's labels, and length, height, width in OpenPCDet's: return size: "
    "[length, width, height]",
    "yaw_deg": "an angle in degrees: return yaw in radians",
    "xywh": "a box by its centre or corner and size: return box: [x0, y0, x1, y1]",
}


def is_table(answer: Any) -> bool:
    """Return whether something is a table with named columns, or a list of rows with names, not a plain array."""
    if isinstance(answer, Mapping) or getattr(getattr(answer, "dtype", None), "names", None) or _is_boxes_first(answer):
        return True
    return isinstance(answer, (list, tuple)) and len(answer) > 0 and _has_names(answer[0])


def plain_array(value: Any) -> Any:
    """Return a tensor as an array, from any device; anything else unchanged."""
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def read_table(answer: Any, frame: str, stamp_ns: int, convention: str = CENTRE) -> Output:
    """Return a table as an output: detections, or boxes in an image.

    ``convention``: of boxes, see :mod:`~mt_nodes.stacks.box_conventions`; it is not converted.
    Raises InfrastructureError: it cannot be read; the text has the first row and the expected names.
    """
    try:
        table = _columns(answer)
        if convention == KITTI and "rotation_y" in table:
            table = {YAW[0] if name == "rotation_y" else name: column for name, column in table.items()}
        for name, why in OTHER_CONVENTIONS.items():
            if name in table:
                raise ValueError(f"'{name}' is {why}")
        if not table:
            return Output(detections=Detections.none(frame, stamp_ns))
        place = _place(table, KITTI_ORDER if convention == KITTI else range(7))
        score, label = _column(table, SCORE), _column(table, LABEL)
        _refuse_near_misses(table, score, label)
        labels = None if label is None else _texts(label)
        if place.shape[1] == 4:
            return Output(boxes=ImageBoxes.make(frame, stamp_ns, place, labels, _numbers(score)))
        return Output(detections=_detections(table, place, labels, _numbers(score), frame, stamp_ns))
    except (TypeError, ValueError) as error:
        raise InfrastructureError(
            f"the callable returned {type(answer).__name__} {_first(answer)}, which cannot be read: {error}; {EXPECTED}"
        ) from error


def _detections(
    table: Table, place: Floats, labels: list[str] | None, score: Floats | None, frame: str, stamp_ns: int
) -> Detections:
    track, velocity = _column(table, TRACK), _numbers(_column(table, VELOCITY))
    if velocity is not None and velocity.shape[1:] == (2,):
        velocity = np.column_stack([velocity, np.zeros(len(velocity))])
    return Detections.make(
        frame,
        stamp_ns,
        *(place[:, :3], place[:, 3:6], place[:, 6], labels, score),
        track_id=None if track is None else _texts(track),
        velocity_mps=velocity,
    )


def _place(table: Table, order: Sequence[int]) -> Floats:
    """Return boxes (M, 7) as x y z length width height yaw, or (M, 4) as x0 y0 x1 y1.

    ``order``: their positions in a column that has all seven.
    """
    boxes = _numbers(_column(table, BOXES_3D))
    if boxes is not None and boxes.ndim == 2 and boxes.shape[1] >= 7:
        return boxes[:, list(order)]
    if boxes is not None and boxes.shape == (0,):  # a list of nothing: the host knows what of
        return np.empty((0, 7))
    edges = _numbers(_column(table, BOXES_2D))
    if edges is not None and edges.size == 0:
        return np.empty((0, 4))
    if edges is not None:
        if edges.ndim != 2 or edges.shape[1] != 4:
            raise ValueError(f"its boxes have shape {edges.shape}")
        if (edges[:, 2:] < edges[:, :2]).any():
            raise ValueError("a box has x1 < x0 or y1 < y0: is it x y width height?")
        return edges
    if set(NUSCENES) <= set(table):
        return _nuscenes(*(np.asarray(plain_array(table[name]), dtype=np.float64) for name in NUSCENES))
    center, size, yaw = _triple(table, CENTER, AXES), _triple(table, SIZE, SIDES), _numbers(_column(table, YAW))
    lacking = [name for name, part in (("x y z", center), ("length width height", size), ("yaw", yaw)) if part is None]
    if lacking:
        raise ValueError(f"no {', no '.join(lacking)} among {', '.join(map(str, table))}")
    assert center is not None and size is not None and yaw is not None
    return np.column_stack([center, size, yaw.reshape(len(center))])


def _nuscenes(center: Floats, size: Floats, rotation: Floats) -> Floats:
    """Return boxes (M, 7) of centres, sizes as width, length, height, and quaternions w x y z."""
    w, x, y, z = rotation.reshape(-1, 4).T
    yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    return np.column_stack([center.reshape(-1, 3), size.reshape(-1, 3)[:, [1, 0, 2]], yaw])


def _triple(table: Table, names: Sequence[str], axes: Sequence[Sequence[str]]) -> Floats | None:
    whole = _numbers(_column(table, names))
    if whole is not None:
        return whole.reshape(-1, 3)
    for each in axes:
        if set(each) <= set(table):
            return np.column_stack([np.asarray(plain_array(table[name]), dtype=np.float64) for name in each])
    return None


def _column(table: Table, names: Sequence[str]) -> Any:
    """Return the column with one of these names; None without. Raises ValueError: several columns have."""
    found = [name for name in names if name in table]
    if len(found) > 1:
        raise ValueError(f"{' and '.join(found)} mean the same")
    return table[found[0]] if found else None


def _refuse_near_misses(table: Table, score: Any, label: Any) -> None:
    """Refuse a column that looks like a score or class under another name: ignored, every score would be 1."""
    for known, parts, names in ((score, ("scor", "conf", "prob"), SCORE), (label, ("label", "class"), LABEL)):
        near = [name for name in table if known is None and any(part in str(name).lower() for part in parts)]
        if near:
            raise ValueError(f"'{near[0]}' is none of the names that are known: {', '.join(names)}")


def _numbers(value: Any) -> Floats | None:
    return None if value is None else np.asarray(plain_array(value), dtype=np.float64)


def _columns(answer: Any) -> Table:
    """Return a table by columns."""
    if isinstance(answer, (list, tuple)) and len(answer) == 1 and _holds_columns(answer[0]):
        answer = answer[0]
    if isinstance(answer, Mapping):
        return {str(name): value for name, value in answer.items()}
    if getattr(getattr(answer, "dtype", None), "names", None):
        return {name: answer[name] for name in answer.dtype.names}
    if _is_boxes_first(answer):
        return _by_kind(*(plain_array(part) for part in answer))
    rows = [_row(each) for each in answer]
    for name in rows[0]:
        if uneven := [i for i, row in enumerate(rows) if name not in row]:
            raise ValueError(f"row {uneven[0]} has no '{name}', and row 0 has")
    return {name: [plain_array(row[name]) for row in rows] for name in rows[0]}


def _is_boxes_first(answer: Any) -> bool:
    """Tell whether something is boxes (M, 7) or (M, 4), and beside them one or two columns (M,)."""
    if not isinstance(answer, (tuple, list)) or not 2 <= len(answer) <= 3:
        return False
    boxes, *rest = map(plain_array, answer)
    flat = getattr(boxes, "ndim", 0) == 2 and boxes.shape[1] in (4, 7)
    return flat and all(isinstance(part, (list, np.ndarray)) and np.shape(part) == boxes.shape[:1] for part in rest)


def _by_kind(boxes: Any, *rest: Any) -> Table:
    """Return boxes, scores (numbers with a point) and classes (whole numbers or text) by name, in whatever order."""
    named: dict[str, Any] = {"boxes": boxes}
    for column in map(np.asarray, rest):
        name = "scores" if column.dtype.kind == "f" else "labels"
        if name in named and len(boxes):
            kind = "numbers with a point" if name == "scores" else "whole numbers or text"
            raise ValueError(
                f"both columns beside the boxes are {kind}: return {{'boxes': …, 'scores': …, 'labels': …}}, or scores "
                "as numbers with a point and classes as whole numbers or text"
            )
        named[name] = column
    return named


def _holds_columns(each: Any) -> bool:
    """Tell the answer to a batch of one, as torchvision and OpenPCDet return it, from a row of a table."""
    names = {*BOXES_3D, *BOXES_2D} & set(each) if isinstance(each, Mapping) else ()
    return any(np.ndim(plain_array(each[name])) == 2 for name in names)


def _row(each: Any) -> dict[str, Any]:
    if isinstance(each, Mapping):
        return {str(name): value for name, value in each.items()}
    if dataclasses.is_dataclass(each) and not isinstance(each, type):
        return {field.name: getattr(each, field.name) for field in dataclasses.fields(each)}
    return dict(each._asdict() if hasattr(each, "_asdict") else vars(each))


def _has_names(each: Any) -> bool:
    if isinstance(each, Mapping) or hasattr(each, "_fields") or dataclasses.is_dataclass(each):
        return True
    return hasattr(each, "__dict__") and not hasattr(each, "__array__")


def _texts(column: Any) -> list[str]:
    """Return a column of classes or tracks as texts. Raises ValueError: it is one text, or has rows of several."""
    rows = plain_array(column)
    if isinstance(rows, (str, bytes)) or np.ndim(rows) > 1:
        raise ValueError(f"got {rows!r}, expected one class or track a row")
    return [_text(each) for each in rows]


def _text(value: Any) -> str:
    """Return a class or track as text: a whole number without a point."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return value.decode() if isinstance(value, bytes) else str(value)


def _first(answer: Any) -> str:
    """Return the first row, cut to a line."""
    if _is_boxes_first(answer):
        answer = {str(i): np.asarray(plain_array(part))[:1].tolist() for i, part in enumerate(answer)}
    first = answer if isinstance(answer, Mapping) else answer[0]
    text = repr(first if isinstance(first, (Mapping, np.void)) else _row(first))
    return text if len(text) <= 200 else f"{text[:200]}…"
