# SPDX-License-Identifier: Apache-2.0
"""How far what a topic says in one arm is from what it says in the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import shapely

from mt_nodes.base.arrays import Floats, Mask, Singles
from mt_nodes.base.assignment import linear_sum_assignment
from mt_nodes.data.detections import Detections
from mt_nodes.data.rotations import rectangle_corners
from mt_nodes.runs.blame.protection import Protection

#: What is nearer than that is the same (assumed): points, a tenth of the range noise of a LiDAR of 2 cm.
SAME_POINT_M = 0.002
#: Boxes whose footprints overlap by all but this share are the same (assumed), and numbers that differ by less.
SAME_BOX, SAME_NUMBER = 0.02, 1e-3
#: Centres of one obstacle's boxes are at most so far apart (assumed, the gate of cars in ``obstacles_kept``).
GATE_M = 2.0
#: Numbers below are compared with this in place of themselves: a yaw rate of 1e-17 is nought (assumed).
_SMALL = 1e-3
#: Means of pictures that differ by less, as a share of full scale, are the same (assumed): a twentieth of a step.
_SAME_PICTURE = 2e-4


@dataclass(frozen=True, eq=False)
class PointsContent:
    """A cloud: ``xyz`` (N, 3) in metres."""

    frame_id: str
    xyz: Floats


@dataclass(frozen=True, eq=False)
class BoxesContent:
    """Obstacles."""

    boxes: Detections


@dataclass(frozen=True, eq=False)
class PictureContent:
    """An image: values (H, W, …) from 0 to 1."""

    values: Singles


@dataclass(frozen=True, eq=False)
class FieldsContent:
    """Any other message: its numbers (N,) and texts (N,) by the path of their field, without stamps."""

    numbers: Mapping[str, Floats] = field(default_factory=dict)
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


Content = PointsContent | BoxesContent | PictureContent | FieldsContent


@dataclass(frozen=True)
class Divergence:
    """How far two messages are from each other, 0 for the same.

    Attributes:
        whole: of all that they say. protected: of what the change of the input must not touch; None where that part
            cannot be told apart. doubtful: of what may be of the change or not.
        words: what differs most of the protected part; empty for nothing.
    """

    whole: float
    protected: float | None
    words: str = ""
    doubtful: float = 0.0


#: One arm says something and the other does not, or something of another kind.
def _unlike(words: str) -> Divergence:
    return Divergence(1.0, 1.0, words)


def divergence(
    source: Content | None, followup: Content | None, protection: Protection, discs: Floats | None = None
) -> Divergence:
    """Return how far the follow-up's content is from the source's.

    Points: share without a partner within :data:`SAME_POINT_M` in the other cloud. Boxes: sum over boxes of one minus
    the overlap with the partner (intersection over union), 1 without one. Images: mean absolute difference. Anything
    else: the largest relative difference of a field.
    ``discs``: where alone points are of consequence, see :meth:`Protection.of_points`.
    """
    if source is None or followup is None:
        if source is followup:
            return Divergence(0.0, 0.0)
        return _unlike("no message in the follow-up arm" if followup is None else "no message in the source arm")
    if isinstance(source, PointsContent) and isinstance(followup, PointsContent):
        return _of_points(source, followup, protection, discs)
    if isinstance(source, BoxesContent) and isinstance(followup, BoxesContent):
        return _of_boxes(source.boxes, followup.boxes, protection)
    if isinstance(source, PictureContent) and isinstance(followup, PictureContent):
        return _of_pictures(source, followup)
    if isinstance(source, FieldsContent) and isinstance(followup, FieldsContent):
        return _of_fields(source, followup)
    return _unlike("contents of another kind")


def _of_points(
    source: PointsContent, followup: PointsContent, protection: Protection, discs: Floats | None
) -> Divergence:
    lost, gained = _alone(source.xyz, followup.xyz), _alone(followup.xyz, source.xyz)
    total = max(1, len(source.xyz) + len(followup.xyz))
    whole = float(lost.sum() + gained.sum()) / total
    earlier, later = (protection.of_points(c.xyz, c.frame_id, discs) for c in (source, followup))
    if earlier is None or later is None:
        return Divergence(whole, 0.0 if whole == 0.0 else None)
    (kept, near), (kept_after, near_after) = earlier, later
    before, after = int((lost & kept).sum()), int((gained & kept_after).sum())
    words = f"{before} points lost, {after} gained of {int(kept.sum())}" if before or after else ""
    doubtful = float((lost & near).sum() + (gained & near_after).sum()) / max(1, int(near.sum() + near_after.sum()))
    return Divergence(whole, (before + after) / max(1, int(kept.sum() + kept_after.sum())), words, doubtful)


def _alone(points: Floats, others: Floats) -> Mask:
    """(N,) whether each point has no other within :data:`SAME_POINT_M`; what is not finite is never alone."""
    alone: Mask = np.asarray(np.isfinite(points).all(axis=1))
    others = others[np.isfinite(others).all(axis=1)]
    if not len(others) or not alone.any():
        return alone
    from scipy.spatial import cKDTree  # heavy

    distance, _ = cKDTree(others).query(points[alone], distance_upper_bound=SAME_POINT_M)
    alone[alone] = ~np.isfinite(distance)
    return alone


def _of_boxes(source: Detections, followup: Detections, protection: Protection) -> Divergence:
    source, followup = source.take(source.finite), followup.take(followup.finite)
    mismatches = _mismatch(source, followup)
    whole = float(sum(mismatch.sum() for mismatch in mismatches))
    earlier, later = (protection.of_boxes(boxes) for boxes in (source, followup))
    if earlier is None or later is None:
        return Divergence(whole, 0.0 if whole == 0.0 else None)
    parts = [_parts(mismatches[0], *earlier), _parts(mismatches[1], *later)]
    if protection.everywhere:  # gained is what was unsure before
        parts[1] = (np.zeros(len(followup)), np.zeros(len(followup)))
    (before, unsure), (after, unsure_after) = parts
    words = _worst(source, before, "lost") or _worst(followup, after, "gained")
    return Divergence(whole, float(before.sum() + after.sum()), words, float(unsure.sum() + unsure_after.sum()))


def _parts(mismatch: Floats, stays: Any, unsure: Any, exists: Any) -> tuple[Floats, Floats]:
    """Return what counts of each mismatch (M,), and what is doubtful of it."""
    lost = np.floor(mismatch)
    return mismatch * stays + lost * exists, mismatch * unsure + (mismatch - lost) * exists


def _worst(boxes: Detections, mismatch: Floats, alone: str) -> str:
    if not mismatch.any():
        return ""
    row = int(np.argmax(mismatch))
    x, y = boxes.center_m[row, :2]
    what = alone if mismatch[row] == 1.0 else f"changed by {100 * mismatch[row]:.0f} %"
    return f"{boxes.label[row]} at x {x:.1f}, y {y:.1f} m {what}"


def differing_discs(source: Content | None, followup: Content | None, protection: Protection) -> Floats:
    """Return x, y, radius (K, 3) of all boxes that differ and are not of the change alone; none of other contents."""
    if not isinstance(source, BoxesContent) or not isinstance(followup, BoxesContent):
        return np.empty((0, 3))
    sides = [content.boxes.take(content.boxes.finite) for content in (source, followup)]
    rows = []
    for boxes, mismatch in zip(sides, _mismatch(*sides), strict=True):
        masks = protection.of_boxes(boxes)
        if masks is not None:
            rows.append(protection.discs(boxes, (mismatch > 0.0) & np.logical_or.reduce(masks)))
    return np.concatenate(rows) if rows else np.empty((0, 3))


def _mismatch(one: Detections, other: Detections) -> tuple[Floats, Floats]:
    """Return one minus the overlap with its partner for each box (M,), (K,); 1 without a partner."""
    left, right = np.ones(len(one)), np.ones(len(other))
    if len(one) and len(other):
        distance = np.linalg.norm(one.center_m[:, None, :2] - other.center_m[None, :, :2], axis=2)
        rows, columns = linear_sum_assignment(np.minimum(distance, GATE_M))
        near = distance[rows, columns] < GATE_M
        rows, columns = rows[near], columns[near]
        a, b = _footprints(one)[rows], _footprints(other)[columns]
        union = shapely.area(shapely.union(a, b))
        share = 1.0 - np.divide(
            shapely.area(shapely.intersection(a, b)), union, out=np.ones(len(rows)), where=union > 0
        )
        # A partner without any overlap is another box than none.
        share = np.where(share < SAME_BOX, 0.0, np.minimum(share, 0.99))
        left[rows], right[columns] = share, share
    return left, right


def _footprints(boxes: Detections) -> Any:
    return shapely.polygons(rectangle_corners(boxes.center_m[:, :2], boxes.size_m[:, :2], boxes.yaw_rad))


def _of_pictures(source: PictureContent, followup: PictureContent) -> Divergence:
    if source.values.shape != followup.values.shape:
        return _unlike(f"an image of {followup.values.shape}, was {source.values.shape}")
    mean = float(np.abs(source.values - followup.values).mean()) if source.values.size else 0.0
    same = mean < _SAME_PICTURE
    return Divergence(0.0 if same else mean, 0.0 if same else None, "" if same else f"{100 * mean:.2f} % of full scale")


def _of_fields(source: FieldsContent, followup: FieldsContent) -> Divergence:
    worst, words = 0.0, ""
    for name in dict.fromkeys((*source.numbers, *followup.numbers)):
        one, other = source.numbers.get(name), followup.numbers.get(name)
        share, row = (1.0, -1) if one is None or other is None else _relative(one, other)
        if share > worst:
            worst, words = share, _described(name, one, other, row)
    for name in dict.fromkeys((*source.texts, *followup.texts)):
        if source.texts.get(name) != followup.texts.get(name) and worst < 1.0:
            worst, words = 1.0, f"{name} differs"
    return Divergence(worst, worst, words)


def _relative(one: Floats, other: Floats) -> tuple[float, int]:
    """Return the largest relative difference of numbers (N,), and its row; 1 and -1 for another number of them."""
    if len(one) != len(other):
        return 1.0, -1
    if not len(one):
        return 0.0, -1
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore", over="ignore"):
        share = np.abs(one - other) / np.maximum(np.maximum(np.abs(one), np.abs(other)), _SMALL)
    share = np.where(same, 0.0, np.where(np.isfinite(share), np.minimum(share, 1.0), 1.0))
    row = int(np.argmax(share))
    return (float(share[row]), row) if share[row] >= SAME_NUMBER else (0.0, -1)


def _described(name: str, one: Floats | None, other: Floats | None, row: int) -> str:
    if one is None or other is None:
        return f"{name} in one arm only"
    if row < 0:
        return f"{name}: {len(one)} values in the source, {len(other)} in the follow-up"
    return (
        f"{name}{f'[{row}]' if len(one) > 1 else ''}: {one[row]:.4g} in the source, {other[row]:.4g} in the follow-up"
    )
