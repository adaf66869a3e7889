# SPDX-License-Identifier: Apache-2.0
"""Which part of what a stack says must stay as it is, by where its input was changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mt_nodes.data.regions import Region
from mt_nodes.data.transforms import EGO_FRAME, TransformTree, UnknownTransform, move

if TYPE_CHECKING:
    from mt_nodes.data.detections import Detections

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

#: A point of an output within this of a changed point of the input may be that point (assumed).
_OWN_M = 0.05
#: A box is a matter of the change if a changed point is so near to its outline (assumed: the reach of clustering).
_REACH_M = 1.0
#: With more of a cloud changed, everything may differ: fog, rain, another sensor.
_EVERYWHERE = 0.5


@dataclass(frozen=True, eq=False)
class Protection:
    """What must stay: in the region of the relation, or without one, away from what was changed.

    Attributes:
        changed: (N, 3) points that one arm was given and the other was not, in ``frame_id``.
        everywhere: whether most points were changed, so that no place of a cloud is protected, and of an obstacle in
            the region alone that it is there.
        untold: whether the input was changed where nobody can tell the place, as in an image.
        region: in which the relation demands something; None: it names none.
        inset_m: so much of the region at its edge is not demanded.
    """

    changed: Floats = field(default_factory=lambda: np.empty((0, 3)))
    everywhere: bool = False
    untold: bool = False
    region: Region | None = None
    inset_m: float = 0.0
    transforms: TransformTree = field(default_factory=TransformTree)
    frame_id: str = EGO_FRAME

    def of_points(self, xyz: Floats, frame_id: str) -> Mask | None:
        """(N,) which points must stay; None: nobody knows."""
        matrix = self._to(frame_id)
        if matrix is None or self.everywhere or self.untold:
            return None
        placed = move(matrix, xyz)
        protected = np.ones(len(xyz), dtype=bool) if self.region is None else self.region.contains(placed)
        return np.asarray(protected & ~self._near(placed, np.full(len(xyz), _OWN_M)))

    def of_boxes(self, boxes: Detections) -> Mask | None:
        """(M,) which boxes must stay; None: nobody knows."""
        matrix = self._to(boxes.frame_id)
        if matrix is None or self.untold or (self.everywhere and self.region is None):
            return None
        placed = move(matrix, boxes.center_m)
        if self.region is not None:
            import shapely

            zone = self.region.buffered(-self.inset_m) if self.inset_m else self.region.geometry
            return np.asarray(shapely.contains_xy(zone, placed[:, :2]))
        reach = np.linalg.norm(boxes.size_m[:, :2], axis=1) / 2.0 + _REACH_M
        flat = Protection(np.column_stack([self.changed[:, :2], np.zeros(len(self.changed))]))
        return ~flat._near(np.column_stack([placed[:, :2], np.zeros(len(placed))]), reach)

    def _near(self, places: Floats, within_m: Floats) -> Mask:
        """(N,) whether a changed point is within a distance (N,) of places (N, 3)."""
        if not len(self.changed) or not len(places):
            return np.zeros(len(places), dtype=bool)
        from scipy.spatial import cKDTree  # heavy

        finite = np.isfinite(places).all(axis=1)
        near = np.zeros(len(places), dtype=bool)
        distance, _ = cKDTree(self.changed).query(places[finite], distance_upper_bound=float(within_m.max()) + 1e-9)
        near[finite] = distance <= within_m[finite]
        return near

    def _to(self, frame_id: str) -> Any:
        """Return the 4x4 from a frame, None where it is not known."""
        target = self.region.frame_id if self.region is not None else self.frame_id
        try:
            return self.transforms.lookup(target, frame_id)
        except UnknownTransform:
            return None


def protection_of(
    clouds: Sequence[tuple[str, Floats, Floats]],
    others_differ: bool,
    region: Region | None,
    inset_m: float,
    transforms: TransformTree,
) -> Protection:
    """Return what must stay where the two arms were given these.

    ``clouds``: frame, points (N, 3) of the source and of the follow-up, of each cloud. ``others_differ``: whether
    inputs of other kinds differ.
    """
    target = region.frame_id if region is not None else EGO_FRAME
    parts, total, untold = [], 0, others_differ
    for frame_id, before, after in clouds:
        changed = _changed(before, after)
        total += max(len(before), len(after))
        try:
            parts.append(move(transforms.lookup(target, frame_id), changed))
        except UnknownTransform:
            untold = untold or len(changed) > 0
    changed = np.concatenate(parts) if parts else np.empty((0, 3))
    everywhere = len(changed) > _EVERYWHERE * max(1, total)
    return Protection(changed, everywhere, untold, region, inset_m, transforms, target)


def _changed(before: Floats, after: Floats) -> Floats:
    """Return the points (K, 3) that are in one of both clouds alone, to the millimetre."""
    rows = [cloud[np.isfinite(cloud).all(axis=1)] for cloud in (before, after)]
    keys = [_key(cloud) for cloud in rows]
    return np.concatenate(
        [cloud[~np.isin(key, other)] for cloud, key, other in zip(rows, keys, keys[::-1], strict=True)]
    )


def _key(xyz: Floats) -> npt.NDArray[np.int64]:
    """Return a number for each point (N, 3): 21 bits of millimetres for each coordinate, which reach 1 km."""
    mm = np.rint(xyz * 1000.0).astype(np.int64) & ((1 << 21) - 1)
    return np.asarray((mm[:, 0] << 42) | (mm[:, 1] << 21) | mm[:, 2])
