# SPDX-License-Identifier: Apache-2.0
"""Which object a mutation of one object changes: the nearest ahead, by the cloud or by the labels of the recording."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import shapely

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.data.association import footprints
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import Matrix, UnknownTransform, move
from mt_nodes.relations.mutations.objects.object_exchange import SIZES
from mt_nodes.relations.mutations.objects.object_removed import Floats, ground_around, things_ahead
from mt_nodes.world.scene.nearest_object import Search

CHOICES = ("auto", "cloud", "labels")
#: Labels enclose an object tightly; its returns scatter around by range noise.
_AROUND_LABEL_M = 0.1


Outline = tuple[Floats, Floats]
"""An object: its outline (k, 2) in the ego's frame, and the ground (5,) around it."""


def search_of(size: str, ahead_m: tuple[float, float], aside_m: float, least_points: int, largest_m: float) -> Search:
    """Return the search for objects as large as ``size``, one of :data:`SIZES`."""
    (shortest, longest), height = SIZES[size]
    return Search(ahead_m, aside_m, least_points, (shortest, min(longest, largest_m)), height)


def objects_of(bundle: Bundle, to_ego: Matrix, search: Search, by: str, ego_frame_id: str) -> Iterator[Outline]:
    """Yield outline (k, 2) and ground (5,) of objects ahead in the ego's frame, nearest first.

    ``to_ego``: of the first cloud. ``by``: ``labels``, ``cloud``, or ``auto``: labels where the recording has them.
    Raises NotApplicable: there is none; or no label, or no ground around one.
    """
    if by == "cloud" or (by == "auto" and bundle.truth is None):
        yield from things_ahead(bundle, to_ego, search)
        return
    outlines = _labelled(bundle, search, ego_frame_id)
    if not outlines:
        count = 0 if bundle.truth is None else len(bundle.truth.objects)
        raise NotApplicable(f"none of {count} labelled objects is ahead and as large as is asked for")
    for outline in outlines:
        yield outline, ground_around(bundle.clouds[0], to_ego, outline)


def _labelled(bundle: Bundle, search: Search, ego_frame_id: str) -> list[Floats]:
    """Return the outlines (4, 2) of labelled objects that fit a search, nearest first."""
    if bundle.truth is None:
        raise NotApplicable(f"bundle {bundle.index} has no labels")
    boxes = bundle.truth.objects
    try:
        matrix = bundle.transforms.lookup(ego_frame_id, boxes.frame_id)
    except UnknownTransform as error:
        raise UsageError(f"labels: {error}") from error
    center = move(matrix, boxes.center_m)
    yaw = boxes.yaw_rad + float(np.arctan2(matrix[1, 0], matrix[0, 0]))
    (near, far), longest = search.ahead_m, boxes.size_m[:, :2].max(axis=1, initial=0.0)
    fits = (center[:, 0] >= near) & (center[:, 0] <= far) & (np.abs(center[:, 1]) <= search.aside_m)
    fits &= (longest >= search.length_m[0]) & (longest <= search.length_m[1])
    fits &= (boxes.size_m[:, 2] >= search.height_m[0]) & (boxes.size_m[:, 2] <= search.height_m[1])
    fits &= (bundle.truth.points < 0) | (bundle.truth.points >= search.least_points)
    order = np.flatnonzero(fits)[np.argsort(np.hypot(*center[fits, :2].T), kind="stable")]
    margin = np.array([2.0 * _AROUND_LABEL_M, 2.0 * _AROUND_LABEL_M, 0.0])
    around = replace(boxes, center_m=center, size_m=boxes.size_m + margin, yaw_rad=yaw).take(order)
    return [shapely.get_coordinates(outline)[:-1] for outline in footprints(around)]
