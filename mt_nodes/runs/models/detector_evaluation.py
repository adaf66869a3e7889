# SPDX-License-Identifier: Apache-2.0
"""How much a stack finds of what stands in streets that it never saw, and how much it finds that is not there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Ints
from mt_nodes.base.assignment import linear_sum_assignment
from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.image_boxes import iou
from mt_nodes.data.outputs import Detections
from mt_nodes.data.transforms import TransformTree
from mt_nodes.runs.models.labelled_clouds import LabelledCloud
from mt_nodes.runs.models.labelled_pictures import PICTURE_CLASSES, LabelledPicture
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.reference.cell_objects import CLASSES

Bools = npt.NDArray[np.bool_]

#: Ahead from, to, and to either side: what counts is in the middle of what the reference stacks watch.
AREA_M = (4.0, 38.0, 9.0)
#: An object with fewer returns is not asked for; what is found of it is not wrong either.
LEAST_RETURNS = 10
#: An obstacle is that object whose middle is so near, or within so much of its length.
_NEAR_M, _SHARE = 1.2, 0.6
#: In a picture an object that is less high, or shows less of itself, is not asked for, and what is found of it is not
#: wrong either; a box is that object which it overlaps by so much.
LEAST_HEIGHT_PX, LEAST_VISIBLE, LEAST_IOU = 20.0, 0.5, 0.5


@dataclass(frozen=True)
class ClassScore:
    """Of one class: how many objects there were, how many were found, and how many of those as what they are."""

    label: str
    objects: int
    found: int
    named: int


@dataclass(frozen=True)
class DetectorScore:
    """Of all streets.

    Attributes:
        streets: clouds or pictures. classes: of objects. said: obstacles that count. wrong: those where nothing is.
    """

    streets: int
    classes: tuple[ClassScore, ...]
    said: int
    wrong: int

    @property
    def recall(self) -> float:
        """Share of objects that were found; NaN where there were none."""
        objects = sum(row.objects for row in self.classes)
        return sum(row.found for row in self.classes) / objects if objects else float("nan")

    @property
    def precision(self) -> float:
        """Share of obstacles that are objects; NaN where nothing was said."""
        return 1.0 - self.wrong / self.said if self.said else float("nan")


@dataclass(frozen=True, eq=False)
class _Compared:
    """What was said of one street beside what is there.

    ``kind``: (M,) of objects. ``expected``: (M,) whether they are to be found. ``label``: (K,) of obstacles.
    ``counts``: (K,) whether they are wrong where nothing is. ``match``: (K,) their object, or −1.
    """

    kind: Ints
    expected: Bools
    label: npt.NDArray[Any]
    counts: Bools
    match: Ints


def detector_score(host: CallableHost, clouds: Iterable[LabelledCloud], least_score: float = 0.5) -> DetectorScore:
    """Ask a stack about clouds, each by itself.

    ``host``: of a stack that takes a LiDAR and says detections in ``base_link``. ``least_score``: of what counts as
    said.
    Raises InfrastructureError: it says no detections, or in another frame.
    """
    return _score((_in_cloud(host, cloud, least_score) for cloud in clouds), CLASSES)


def picture_score(host: CallableHost, pictures: Iterable[LabelledPicture], least_score: float = 0.5) -> DetectorScore:
    """Ask a stack about pictures, each by itself.

    ``host``: of a stack that takes a camera and says boxes. ``least_score``: of what counts as said.
    Raises InfrastructureError: it says no boxes.
    """
    return _score((_in_picture(host, picture, least_score) for picture in pictures), PICTURE_CLASSES)


def _score(streets: Iterable[_Compared], classes: tuple[str, ...]) -> DetectorScore:
    counts, detections, wrong, number = np.zeros((len(classes), 3), dtype=np.int64), 0, 0, 0
    for one in streets:
        number += 1
        detections, wrong = detections + int(one.counts.sum()), wrong + int((one.counts & (one.match < 0)).sum())
        for row in np.flatnonzero(one.expected).tolist():
            of = np.flatnonzero(one.match == row)
            named = bool(len(of)) and one.label[of[0]] == classes[one.kind[row]]
            counts[one.kind[row]] += (1, bool(len(of)), named)
    rows = tuple(ClassScore(label, *row) for label, row in zip(classes, counts.tolist(), strict=True))
    return DetectorScore(number, rows, detections, wrong)


def _in_cloud(host: CallableHost, cloud: LabelledCloud, least_score: float) -> _Compared:
    found = _detections(host, cloud)
    found = found.take(found.score >= least_score)
    returns = np.bincount(cloud.owner[cloud.owner >= 0], minlength=len(cloud.kind))
    expected = _inside(cloud.centre_m) & (returns >= LEAST_RETURNS)
    away = np.linalg.norm(found.center_m[:, None, :2] - cloud.centre_m[None], axis=2)
    near = np.maximum(_NEAR_M, _SHARE * found.size_m[:, 0])[:, None]
    match = _matched(np.where(away <= near, away, 1e3), lambda cost: cost < 1e3)
    return _Compared(cloud.kind, expected, found.label, _inside(found.center_m[:, :2]), match)


def _detections(host: CallableHost, cloud: LabelledCloud) -> Detections:
    found = host(cloud.message("base_link", cloud.sensor_height_m), TransformTree([])).detections
    if found is None or found.frame_id != "base_link":
        got = "no detections" if found is None else f"detections in {found.frame_id}"
        raise InfrastructureError(f"stack '{host.stack.name}': got {got}, expected detections in base_link")
    return found


def _inside(place_m: Floats) -> Bools:
    near, far, aside = AREA_M
    return np.asarray((place_m[:, 0] >= near) & (place_m[:, 0] <= far) & (np.abs(place_m[:, 1]) <= aside))


def _in_picture(host: CallableHost, picture: LabelledPicture, least_score: float) -> _Compared:
    found = host(picture.message(), TransformTree([])).boxes
    if found is None:
        raise InfrastructureError(f"stack '{host.stack.name}': got no boxes, expected some, or an empty list")
    found = found.take(found.score >= least_score)
    overlap = iou(found.box_px, picture.box_px)
    match = _matched(np.where(overlap >= LEAST_IOU, -overlap, 0.0), lambda cost: cost < 0.0)
    expected = (_height_px(picture.box_px) >= LEAST_HEIGHT_PX) & (picture.visible >= LEAST_VISIBLE)
    return _Compared(picture.kind, expected, found.label, _height_px(found.box_px) >= LEAST_HEIGHT_PX, match)


def _height_px(box_px: Floats) -> Floats:
    return np.asarray(box_px[:, 3] - box_px[:, 1])


def _matched(cost: Floats, near: Callable[[Floats], Bools]) -> Ints:
    """Return (K,) the object that each obstacle is by costs (K, M), −1 for none; an object is found once."""
    match = np.full(len(cost), -1, dtype=np.int64)
    if cost.size:
        rows, columns = linear_sum_assignment(cost)
        good = near(cost[rows, columns])
        match[rows[good]] = columns[good]
    return match
