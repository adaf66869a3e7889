# SPDX-License-Identifier: Apache-2.0
"""Collects transforms as they arrive, and returns the tree of any recent instant."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from mt_nodes.data.transforms import Transform, TransformTree, pose_between

#: Seconds for which moving transforms are kept; tf2's default.
HISTORY_S = 10.0


class TransformBuffer:
    """Static transforms never expire; moving ones are interpolated (linear, slerp) between their neighbours in time.

    Before the first and after the last known pose of a frame, that pose is taken. Transforms given as ``fixed`` (the
    user's file) stand above those that come later.
    """

    def __init__(self, fixed: TransformTree | None = None) -> None:
        self._fixed = fixed.transforms if fixed else ()
        self._static = TransformTree(self._fixed)
        self._moving: dict[str, list[Transform]] = {}

    def add(self, transforms: Iterable[Transform]) -> None:
        """Add transforms; ``static`` of each says whether it moves."""
        fixed = {t.child for t in self._fixed}
        known = [t for t in transforms if t.child not in fixed]
        if static := [t for t in known if t.static]:
            self._static = self._static.extended(static)
        for t in known:
            if not t.static:
                self._insert(t)

    def at(self, stamp_ns: int) -> TransformTree:
        """Return the tree of an instant."""
        if not self._moving:
            return self._static
        return self._static.extended(_interpolated(rows, stamp_ns) for rows in self._moving.values())

    def _insert(self, t: Transform) -> None:
        rows = self._moving.setdefault(t.child, [])
        rows.insert(bisect_right(rows, t.stamp_ns, key=lambda r: r.stamp_ns), t)
        oldest_ns = rows[-1].stamp_ns - int(HISTORY_S * 1e9)
        while rows[0].stamp_ns < oldest_ns:
            rows.pop(0)


def _interpolated(rows: list[Transform], stamp_ns: int) -> Transform:
    after = bisect_right(rows, stamp_ns, key=lambda r: r.stamp_ns)
    if after == 0 or after == len(rows):
        return rows[min(after, len(rows) - 1)]
    a, b = rows[after - 1], rows[after]
    share = (stamp_ns - a.stamp_ns) / (b.stamp_ns - a.stamp_ns)
    return Transform(a.parent, a.child, pose_between(a.matrix, b.matrix, share), stamp_ns, static=False)
