# SPDX-License-Identifier: Apache-2.0
"""How much a LiDAR stack finds of what stands in streets that it never saw, and how much it finds that is not there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.base.assignment import linear_sum_assignment
from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.outputs import Detections
from mt_nodes.data.transforms import TransformTree
from mt_nodes.runs.models.labelled_clouds import LabelledCloud
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.reference.cell_objects import CLASSES

Floats = npt.NDArray[np.float64]

#: Ahead from, to, and to either side: what counts is in the middle of what the reference stacks watch.
AREA_M = (4.0, 38.0, 9.0)
#: An object with fewer returns is not asked for; what is found of it is not wrong either.
LEAST_RETURNS = 10
#: An obstacle is that object whose middle is so near, or within so much of its length.
_NEAR_M, _SHARE = 1.2, 0.6


@dataclass(frozen=True)
class ClassScore:
    """Of one class: how many objects there were, how many were found, and how many of those as what they are."""

    label: str
    objects: int
    found: int
    named: int


@dataclass(frozen=True)
class DetectorScore:
    """Of all clouds.

    Attributes:
        classes: of objects. said: obstacles in the area. wrong: those of them where nothing is.
    """

    clouds: int
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


def detector_score(host: CallableHost, clouds: Iterable[LabelledCloud], least_score: float = 0.5) -> DetectorScore:
    """Ask a stack about clouds, each by itself.

    Args:
        host: of a stack that takes a LiDAR and says detections in ``base_link``. least_score: of what counts as said.

    Raises:
        InfrastructureError: it says no detections, or in another frame.
    """
    counts, said, wrong, asked = np.zeros((len(CLASSES), 3), dtype=np.int64), 0, 0, 0
    for cloud in clouds:
        asked += 1
        found = _asked(host, cloud)
        found = found.take(found.score >= least_score)
        inside = _inside(found.center_m[:, :2])
        match = _matched(found, cloud)
        said, wrong = said + int(inside.sum()), wrong + int((inside & (match < 0)).sum())
        returns = np.bincount(cloud.owner[cloud.owner >= 0], minlength=len(cloud.kind))
        for row in np.flatnonzero(_inside(cloud.centre_m) & (returns >= LEAST_RETURNS)).tolist():
            of = np.flatnonzero(match == row)
            named = bool(len(of)) and found.label[of[0]] == CLASSES[cloud.kind[row]]
            counts[cloud.kind[row]] += (1, bool(len(of)), named)
    rows = tuple(ClassScore(label, *row) for label, row in zip(CLASSES, counts.tolist(), strict=True))
    return DetectorScore(asked, rows, said, wrong)


def _asked(host: CallableHost, cloud: LabelledCloud) -> Detections:
    found = host(cloud.message("base_link", cloud.sensor_height_m), TransformTree([])).detections
    if found is None or found.frame_id != "base_link":
        got = "no detections" if found is None else f"detections in {found.frame_id}"
        raise InfrastructureError(f"stack '{host.stack.name}': got {got}, expected detections in base_link")
    return found


def _inside(place_m: Floats) -> npt.NDArray[np.bool_]:
    near, far, aside = AREA_M
    return np.asarray((place_m[:, 0] >= near) & (place_m[:, 0] <= far) & (np.abs(place_m[:, 1]) <= aside))


def _matched(found: Detections, cloud: LabelledCloud) -> npt.NDArray[np.int64]:
    """Return (M,) the object that each obstacle is, −1 for none; an object is found once."""
    match = np.full(len(found), -1, dtype=np.int64)
    if not len(found) or not len(cloud.kind):
        return match
    away = np.linalg.norm(found.center_m[:, None, :2] - cloud.centre_m[None], axis=2)
    near = np.maximum(_NEAR_M, _SHARE * found.size_m[:, 0])[:, None]
    rows, columns = linear_sum_assignment(np.where(away <= near, away, 1e3))
    good = away[rows, columns] <= near[rows, 0]
    match[rows[good]] = columns[good]
    return match
