# SPDX-License-Identifier: Apache-2.0
"""Boxes out of what LiDAR detectors say, by the name of the family that they are of.

Each decoder takes the outputs by name, the form of the cloud, and the anchors of the stack file, and returns boxes
(M, 7) of x, y, z of the middle, length, width, height, yaw, scores (M,) and classes (M,). It is not its business to
drop boxes that overlap. The forms are those of the heads in open-mmlab/mmdetection3d and tianweiy/CenterPoint; sizes
and angles are returned as they are said there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Ints
from mt_nodes.base.errors import UsageError
from mt_nodes.base.network_file import Tensor
from mt_nodes.base.params import param
from mt_nodes.stacks.networks.cloud_form import CloudForm

Found = tuple[Floats, Floats, Ints]

#: So many places of a head, or anchors, are looked at, the best first.
_MOST = 1000
#: A logarithm of a size is no larger: e^4 is 54 m.
_LARGEST = 4.0


@dataclass(frozen=True)
class Anchor:
    """One box that is tried everywhere, turned by 0 and by 90 degrees."""

    size_m: tuple[float, float, float] = param((3.9, 1.6, 1.56), low=0.01, unit="m", help="length, width, height")
    bottom_m: float = param(-1.78, unit="m", help="z of its bottom")
    direction_offset_rad: float = param(
        0.0,
        low=-3.2,
        high=3.2,
        unit="rad",
        help="where the first half turn of the directions begins: -1.5708 in mmdetection3d from 1.0 on (dir_offset), "
        "0.7854 in OpenPCDet (DIR_OFFSET)",
    )


CloudDecoder = Callable[[Mapping[str, Tensor], CloudForm, Sequence[Anchor]], Found]


def boxes3d(outputs: Mapping[str, Tensor], form: CloudForm, anchors: Sequence[Anchor]) -> Found:
    """Boxes (M, 7), scores (M,), labels (M,), or a batch of one of them: exports with their own suppression."""
    batched = any(t.ndim == 3 and t.shape[0] == 1 for t in outputs.values())
    flat = {name: t[0] if batched and t.ndim > 1 and t.shape[0] == 1 else t for name, t in outputs.items()}
    boxes = next((t for t in flat.values() if t.ndim == 2 and t.shape[1] >= 7), None)
    labels = next((t.reshape(-1) for t in flat.values() if t.dtype.kind in "iu" and t.ndim in (1, 2)), None)
    scores = next(
        (t.reshape(-1) for t in flat.values() if t.dtype.kind == "f" and t is not boxes and t.ndim in (1, 2)), None
    )
    if boxes is None or scores is None or labels is None or not len(boxes) == len(scores) == len(labels):
        got = ", ".join(f"{name} {t.shape} {t.dtype}" for name, t in outputs.items())
        raise UsageError(f"got the outputs {got}, expected boxes (M, 7), scores (M,) and labels (M,) of whole numbers")
    return boxes[:, :7].astype(np.float64), scores.astype(np.float64), labels.astype(np.int64)


#: Heads of CenterPoint -> how their names begin, and how many channels they have (0: one a class).
_HEADS = {
    "heatmap": (("hm", "heatmap"), 0),
    "offset": (("reg", "offset", "center"), 2),
    "z": (("height", "hei", "z"), 1),
    "size": (("dim", "size"), 3),
    "turn": (("rot", "yaw"), 2),
}


def centerpoint(outputs: Mapping[str, Tensor], form: CloudForm, anchors: Sequence[Anchor]) -> Found:
    """Heads (1, K, H, W): a heatmap of each class, offset in cells, z, logarithm of the size, sine and cosine."""
    heads = {role: _head(outputs, role) for role in _HEADS}
    heat = _probability(heads["heatmap"])
    stride = form.shape[1] / heat.shape[2]
    kind, row, column = _peaks(heat)
    offset, z, size, turn = (heads[role][:, row, column] for role in ("offset", "z", "size", "turn"))
    x = form.x_m[0] + (column + offset[0]) * stride * form.cell_m
    y = form.y_m[0] + (row + offset[1]) * stride * form.cell_m
    extent = np.exp(np.minimum(size, _LARGEST))
    boxes = np.column_stack([x, y, z[0], extent.T, np.arctan2(turn[0], turn[1])])
    return boxes, heat[kind, row, column], kind


def pointpillars(outputs: Mapping[str, Tensor], form: CloudForm, anchors: Sequence[Anchor]) -> Found:
    """Planes (1, A * C, H, W) of classes, (1, A * 7, H, W) of differences to anchors, (1, A * 2, H, W) of directions.

    For each place there are A anchors: each of the file's, turned by 0 and by 90 degrees.
    """
    if not anchors:
        raise UsageError("network.anchors: got none, expected a list such as [{size_m: [3.9, 1.6, 1.56]}]")
    count = 2 * len(anchors)
    planes = [np.asarray(t[0], dtype=np.float64) for t in outputs.values() if t.ndim == 4 and t.shape[0] == 1]
    likely, differs, ways = _planes(planes, count)
    rows, columns = likely.shape[-2:]
    score = _probability(likely).reshape(count, -1, rows, columns)
    best = score.max(axis=1)
    most = np.argsort(-best, axis=None, kind="stable")[:_MOST]
    anchor, row, column = np.unravel_index(most, best.shape)
    tried = _anchor_boxes(anchors, form, (anchor, row, column), (rows, columns))
    boxes = _moved(tried, differs.reshape(count, 7, rows, columns)[anchor, :, row, column])
    way = ways.reshape(count, 2, rows, columns)[anchor, :, row, column].argmax(axis=1)
    # The difference says the turn up to half a turn, and the direction which half it is.
    start = np.array([one.direction_offset_rad for one in anchors])[anchor // 2]
    boxes[:, 6] = np.mod(boxes[:, 6] - start, np.pi) + start + np.pi * way
    return boxes, best.reshape(-1)[most], score[anchor, :, row, column].argmax(axis=1)


def _planes(planes: list[Floats], count: int) -> tuple[Floats, Floats, Floats]:
    differs = next((p for p in planes if len(p) == 7 * count), None)
    ways = next((p for p in planes if len(p) == 2 * count and p is not differs), None)
    likely = next((p for p in planes if len(p) % count == 0 and p is not differs and p is not ways), None)
    if differs is None or ways is None or likely is None:
        got = ", ".join(str(len(p)) for p in planes)
        raise UsageError(
            f"got planes of {got} channels, expected {7 * count} of differences, {2 * count} of directions and a "
            f"multiple of {count} of classes"
        )
    return likely, differs, ways


def _anchor_boxes(
    anchors: Sequence[Anchor], form: CloudForm, at: tuple[npt.NDArray[np.intp], ...], grid: tuple[int, int]
) -> Floats:
    anchor, row, column = at
    (x0, x1), (y0, y1) = form.x_m, form.y_m
    x, y = x0 + (column + 0.5) * (x1 - x0) / grid[1], y0 + (row + 0.5) * (y1 - y0) / grid[0]
    size = np.array([one.size_m for one in anchors])[anchor // 2]
    bottom = np.array([one.bottom_m for one in anchors])[anchor // 2]
    return np.column_stack([x, y, bottom + size[:, 2] / 2.0, size, np.pi / 2 * (anchor % 2)])


def _moved(tried: Floats, differs: Floats) -> Floats:
    """Return anchors (M, 7) with the differences of the network: SECOND's coding of residuals."""
    diagonal = np.hypot(tried[:, 3], tried[:, 4])
    middle = tried[:, :3] + differs[:, :3] * np.column_stack([diagonal, diagonal, tried[:, 5]])
    size = tried[:, 3:6] * np.exp(np.minimum(differs[:, 3:6], _LARGEST))
    return np.column_stack([middle, size, tried[:, 6] + differs[:, 6]])


def _head(outputs: Mapping[str, Tensor], role: str) -> Floats:
    begins, channels = _HEADS[role]
    found = [
        tensor
        for name, tensor in outputs.items()
        if name.lower().split(".")[-1].split("/")[-1].startswith(begins)
        and (tensor.ndim == 4 and channels in (0, tensor.shape[1]))
    ]
    # A network of several tasks has each head several times; one of them alone would leave classes out.
    if len(found) != 1:
        got = ", ".join(f"{name} {t.shape}" for name, t in outputs.items())
        raise UsageError(f"got the outputs {got}, expected one called {' or '.join(begins)} for the {role}")
    return np.asarray(found[0][0], dtype=np.float64)


def _peaks(heat: Floats) -> tuple[npt.NDArray[np.intp], ...]:
    """Return class, row and column of places that none of the eight around them surpasses, the best first."""
    around = np.stack([cv2.dilate(plane, np.ones((3, 3))) for plane in heat])
    place = np.flatnonzero(((heat >= around) & (heat > 0.0)).reshape(-1))
    place = place[np.argsort(-heat.reshape(-1)[place], kind="stable")][:_MOST]
    return np.unravel_index(place, heat.shape)


def _probability(planes: Floats) -> Floats:
    """Return logits as probabilities, and probabilities as they are."""
    if planes.min() >= 0.0 and planes.max() <= 1.0:
        return planes
    return np.asarray(1.0 / (1.0 + np.exp(-planes)))


CLOUD_DECODERS: dict[str, CloudDecoder] = {"boxes3d": boxes3d, "centerpoint": centerpoint, "pointpillars": pointpillars}
