# SPDX-License-Identifier: Apache-2.0
"""Which part of what a stack says must stay as it is, by where its input was changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mt_nodes.base.arrays import Floats, Ints, Mask
from mt_nodes.data.regions import Region
from mt_nodes.data.transforms import EGO_FRAME, TransformTree, UnknownTransform, move

if TYPE_CHECKING:
    from mt_nodes.data.detections import Detections

#: A point of an output within this of a changed point of the input may be that point (assumed).
_OWN_M = 0.05
#: A box with a changed point so near to its outline may be made of it (assumed: the tolerance of clustering).
_TOUCHES_M = 1.0
#: Farther than this nothing honest reaches (assumed: the cells that estimate the ground, the gate of a tracker).
_REACH_M = 5.0
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
        spared: whether the region is not one in which the check demands something, but one that the change left out.
    """

    changed: Floats = field(default_factory=lambda: np.empty((0, 3)))
    everywhere: bool = False
    untold: bool = False
    region: Region | None = None
    inset_m: float = 0.0
    spared: bool = False
    transforms: TransformTree = field(default_factory=TransformTree)
    frame_id: str = EGO_FRAME

    def of_points(self, xyz: Floats, frame_id: str, discs: Floats | None = None) -> tuple[Mask, Mask] | None:
        """(N,) which points must stay, and which perhaps must; None: nobody knows.

        ``discs``: (D, 3) x, y, radius in the frame of the region, where alone points are of consequence; there all
        that were not changed themselves must stay. None: everywhere, and near a change nobody knows.
        """
        matrix = self._to(frame_id)
        if matrix is None or self.everywhere or self.untold:
            return None
        placed = move(matrix, xyz)
        kept = ~self._near(placed, _OWN_M)
        if discs is not None:
            return kept & _within(placed, discs), np.zeros(len(xyz), dtype=bool)
        zone = np.ones(len(xyz), dtype=bool) if self.region is None else self.region.contains(placed)
        near = self._near(placed, _REACH_M)
        return kept & ~near & (zone | self.spared), kept & near & zone

    def of_boxes(self, boxes: Detections) -> tuple[Mask, Mask, Mask] | None:
        """(M,) which boxes must stay as they are, which perhaps must, and which must only be there; None: nobody knows.

        In the region every box must be there; one near a change may have another outline.
        """
        matrix = self._to(boxes.frame_id)
        if matrix is None or self.untold or (self.everywhere and self.region is None):
            return None
        placed, size_m = move(matrix, boxes.center_m), np.linalg.norm(boxes.size_m[:, :2], axis=1) / 2.0
        zone, none = self._zone(placed), np.zeros(len(boxes), dtype=bool)
        if self.everywhere:
            return none, none, zone
        touched, near = (self._near(placed, size_m + reach, flat=True) for reach in (_TOUCHES_M, _REACH_M))
        if self.region is None:
            return zone & ~near, near & ~touched, none
        return ~near & (zone | self.spared), none, zone & near

    def _zone(self, placed: Floats) -> Mask:
        """(M,) which places the relation speaks of."""
        if self.region is None:
            return np.ones(len(placed), dtype=bool)
        import shapely

        zone = self.region.buffered(-self.inset_m) if self.inset_m else self.region.geometry
        return np.asarray(shapely.contains_xy(zone, placed[:, :2]), dtype=bool)

    def discs(self, boxes: Detections, rows: Mask) -> Floats:
        """Return x, y and radius (K, 3) around some boxes, in the frame of the region."""
        matrix = self._to(boxes.frame_id)
        if matrix is None:
            return np.empty((0, 3))
        reach = np.linalg.norm(boxes.size_m[rows, :2], axis=1) / 2.0 + _TOUCHES_M
        return np.column_stack([move(matrix, boxes.center_m[rows])[:, :2], reach])

    def _near(self, places: Floats, within_m: float | Floats, *, flat: bool = False) -> Mask:
        """(N,) whether a changed point is within a distance, one or (N,), of places (N, 3); ``flat``: over ground."""
        near = np.zeros(len(places), dtype=bool)
        finite = np.isfinite(places).all(axis=1)
        if not len(self.changed) or not finite.any():
            return near
        within = np.broadcast_to(np.asarray(within_m, dtype=np.float64), len(places))[finite]
        tree = self._flat_tree if flat else self._tree
        own = places[finite][:, :2] if flat else places[finite]
        distance, _ = tree.query(own, distance_upper_bound=float(within.max()) + 1e-9)
        near[finite] = distance <= within
        return near

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree  # heavy

        return cKDTree(self.changed)

    @cached_property
    def _flat_tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(self.changed[:, :2])

    def _to(self, frame_id: str) -> Any:
        """Return the 4x4 from a frame, None where it is not known."""
        target = self.region.frame_id if self.region is not None else self.frame_id
        try:
            return self.transforms.lookup(target, frame_id)
        except UnknownTransform:
            return None


def _within(placed: Floats, discs: Floats) -> Mask:
    """(N,) whether places (N, 3) lie in any of discs (D, 3)."""
    inside = np.zeros(len(placed), dtype=bool)
    for x, y, radius in np.unique(discs, axis=0):
        inside |= np.hypot(placed[:, 0] - x, placed[:, 1] - y) <= radius
    return inside


def protection_of(
    clouds: Sequence[tuple[str, Floats, Floats]],
    others_differ: bool,
    region: Region | None,
    inset_m: float,
    transforms: TransformTree,
    spared: Region | None = None,
) -> Protection:
    """Return what must stay where the two arms were given these.

    ``spared``: region that the change is said to leave out; it counts if no changed point lies in it.

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
    if spared is not None and region is None:
        found = protection_of(clouds, others_differ, spared, 0.0, transforms)
        if not found.everywhere and not found.region.contains(found.changed).any():  # type: ignore[union-attr]
            return replace(found, spared=True)
    return Protection(changed, everywhere, untold, region, inset_m, transforms=transforms, frame_id=target)


def _changed(before: Floats, after: Floats) -> Floats:
    """Return the points (K, 3) that are in one of both clouds alone, to the millimetre."""
    rows = [cloud[np.isfinite(cloud).all(axis=1)] for cloud in (before, after)]
    keys = [_key(cloud) for cloud in rows]
    return np.concatenate(
        [cloud[~np.isin(key, other)] for cloud, key, other in zip(rows, keys, keys[::-1], strict=True)]
    )


def _key(xyz: Floats) -> Ints:
    """Return a number for each point (N, 3): 21 bits of millimetres for each coordinate, which reach 1 km."""
    mm = np.rint(xyz * 1000.0).astype(np.int64) & ((1 << 21) - 1)
    return np.asarray((mm[:, 0] << 42) | (mm[:, 1] << 21) | mm[:, 2])
