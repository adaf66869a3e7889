# SPDX-License-Identifier: Apache-2.0
"""Changes of the returns of a cloud, found by comparing source and follow-up, not from the effects."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.data.messages import Cloud
from mt_nodes.data.transforms import Matrix, move
from mt_nodes.relations.mutations.lidar.placement import empty_returns
from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.base.arrays import Ints

#: Returns farther apart than this, seen from the sensor, are different ones.
_SAME_BEAM_RAD = np.radians(0.05)
_HARDLY_M, _FAR_M = 0.01, 0.5
_SOME = 0.01
#: Moves below this are rounding errors.
LEAST_MOVE_M = 1e-6


@dataclass(frozen=True, eq=False)
class CloudChange:
    """Two clouds of one topic, and which returns correspond.

    ``old_rows``, ``new_rows``: (P,) rows of corresponding returns, rising in ``old_rows``.
    """

    old: Cloud
    new: Cloud
    old_rows: Rows
    new_rows: Rows

    @cached_property
    def removed(self) -> Rows:
        """Rows of the returns that only the old cloud has."""
        return np.setdiff1d(_returns(self.old), self.old_rows)

    @cached_property
    def added(self) -> Rows:
        """Rows of the returns that only the new cloud has."""
        return np.setdiff1d(_returns(self.new), self.new_rows)

    @cached_property
    def moved_m(self) -> Floats:
        """Distance (P,) that each return moves, in metres; 0 for rounding errors."""
        moved = np.linalg.norm(_xyz(self.new, self.new_rows) - _xyz(self.old, self.old_rows), axis=1)
        return np.where(moved < LEAST_MOVE_M, 0.0, moved)

    @cached_property
    def brightened(self) -> Floats:
        """Increase (P,) of each return's intensity, on the cloud's scale; zeros without intensities."""
        name = self.old.intensity_field
        if name is None:
            return np.zeros(len(self.old_rows))
        values = [
            c.points[name][r].astype(np.float64) for c, r in ((self.old, self.old_rows), (self.new, self.new_rows))
        ]
        return np.nan_to_num(values[1] - values[0])

    @cached_property
    def reordered(self) -> bool:
        """Whether corresponding returns come in another order; a few may be confused."""
        return bool(np.count_nonzero(np.diff(self.new_rows) < 0) > _SOME * len(self.new_rows))

    def counts(self) -> dict[str, Any]:
        """Return the change in numbers; moves in metres, of the returns that move."""
        moved = self.moved_m[self.moved_m > 0]
        return {
            "points_before": len(self.old),
            "points_after": len(self.new),
            "added": len(self.added),
            "removed": len(self.removed),
            "moved": len(moved),
            "moved_median_m": float(np.median(moved)) if len(moved) else 0.0,
            "moved_most_m": float(moved.max(initial=0.0)),
            "intensity_changed": int(np.count_nonzero(self.brightened)),
            "reordered": self.reordered,
        }


def compare(
    old: Cloud, new: Cloud, added: npt.NDArray[Any] | None = None, transform: Matrix | None = None
) -> CloudChange:
    """Match returns: by equal coordinates (unless the whole scene moved), else by row, else by beam.

    Rows match if the numbers of points are equal, else the nearest directions from the sensor.
    ``added``: (N, 3) points that a mutation added, in the frame of the clouds; they match no return. ``transform``: 4×4
    with which a mutation moved the whole scene, in the frame of the clouds.
    """
    rows, fresh = _returns(old), _returns(new)
    if added is not None and len(added):
        fresh = fresh[~np.isin(_keys(_xyz(new, fresh)), _keys(added))]
    pairs = [(rows[:0], fresh[:0])]
    if transform is None:
        same, also = _equal(_keys(_xyz(old, rows)), _keys(_xyz(new, fresh)))
        pairs = [(rows[same], fresh[also])]
        rows, fresh = np.delete(rows, same), np.delete(fresh, also)
    if len(old) == len(new):
        both = np.intersect1d(rows, fresh)
        pairs.append((both, both))
    elif len(rows) and len(fresh):
        before = _xyz(old, rows) if transform is None else move(transform, _xyz(old, rows))
        same, also = _on_one_beam(before, _xyz(new, fresh))
        pairs.append((rows[same], fresh[also]))
    old_rows, new_rows = (np.concatenate(part) for part in zip(*pairs, strict=True))
    order = np.argsort(old_rows, kind="stable")
    return _without_replaced(CloudChange(old, new, old_rows[order], new_rows[order]))


def _without_replaced(change: CloudChange) -> CloudChange:
    """Drop matches that are far apart where most returns hardly move: they are different returns of one ray."""
    if not len(change.moved_m) or np.median(change.moved_m) > _HARDLY_M:
        return change
    same = change.moved_m <= _FAR_M
    return CloudChange(change.old, change.new, change.old_rows[same], change.new_rows[same])


def _returns(cloud: Cloud) -> Rows:
    return np.flatnonzero(~empty_returns(cloud)).astype(np.int64)


def _xyz(cloud: Cloud, rows: Rows) -> Floats:
    return np.column_stack([cloud.points[name][rows] for name in "xyz"]).astype(np.float64).reshape(-1, 3)


def _keys(xyz: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return one number (N,) for each place (N, 3), to single precision; -0 counts as 0."""
    bits = (np.asarray(xyz, dtype=np.float32) + np.float32(0.0)).view(np.uint32).astype(np.uint64)
    x, y, z = bits.reshape(-1, 3).T
    mixed: npt.NDArray[np.uint64] = (x << np.uint64(32) | y) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray((mixed ^ mixed >> np.uint64(29)) + z * np.uint64(0xBF58476D1CE4E5B9))


def _equal(old: npt.NDArray[np.uint64], new: npt.NDArray[np.uint64]) -> tuple[Rows, Rows]:
    """Return indices of equal keys in both, each used once, in order."""
    _, inverse = np.unique(np.concatenate([old, new]), return_inverse=True)
    parts = inverse[: len(old)], inverse[len(old) :]
    before, after = (part * len(inverse) + _occurrence(part) for part in parts)
    _, first, second = np.intersect1d(before, after, assume_unique=True, return_indices=True)
    return first.astype(np.int64), second.astype(np.int64)


def _occurrence(keys: Ints) -> Rows:
    """Return how many equal keys (N,) came before each."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    begins = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(keys) else np.empty(0, dtype=np.int64)
    occurrence = np.empty(len(keys), dtype=np.int64)
    occurrence[order] = np.arange(len(keys)) - np.repeat(begins, np.diff(np.r_[begins, len(keys)]))
    return occurrence


def _on_one_beam(old: Floats, new: Floats) -> tuple[Rows, Rows]:
    """Return indices of points (N, 3) in the same direction from the sensor, the nearest of several, each used once."""
    from scipy.spatial import cKDTree

    before, after = (xyz / np.linalg.norm(xyz, axis=1, keepdims=True) for xyz in (old, new))
    apart, nearest = cKDTree(before).query(after, distance_upper_bound=_SAME_BEAM_RAD)
    order = np.argsort(apart, kind="stable")
    order = order[np.isfinite(apart[order])]
    taken, first = np.unique(nearest[order], return_index=True)
    return taken.astype(np.int64), order[first]
