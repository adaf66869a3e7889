# SPDX-License-Identifier: Apache-2.0
"""Poses of the ego vehicle as they were published, and the one of any instant."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

from mt_nodes.data.ego.ego_motion import Floats, TimedPose, between, motion_between, moved_m, turned_rad
from mt_nodes.data.transforms import Matrix

#: Seconds for which poses are stored; tf2's default.
HISTORY_S = 10.0
#: Poses that far from an instant still tell it, at constant velocity (assumed: half a second of braking at 8 m/s² moves
#: the ego by 4 cm in 0.1 s).
REACH_S = 0.1
#: A gap between two poses beyond which nothing is interpolated.
GAP_S = 1.0
#: Seconds before and after an instant over which velocity is measured.
_WINDOW_S = 0.1
#: A vehicle that has moved or turned so far does not stand.
MOVED_M, TURNED_RAD, DRIVES_MPS = 0.1, 0.02, 0.5


@dataclass(eq=False)
class PoseHistory:
    """Timed poses of ``base_link`` in one fixed frame, in the order of their stamps.

    ``source``: where they come from, for people.
    """

    source: str
    _rows: list[TimedPose] = field(default_factory=list)
    moves: bool = False

    def add(self, row: TimedPose) -> None:
        """Add a pose; one with the stamp of another replaces it."""
        at = bisect_right(self._rows, row.stamp_ns, key=_stamp)
        if at and self._rows[at - 1].stamp_ns == row.stamp_ns:
            self._rows[at - 1] = row
        else:
            self._rows.insert(at, row)
        oldest_ns = self._rows[-1].stamp_ns - int(HISTORY_S * 1e9)
        while self._rows[0].stamp_ns < oldest_ns:
            self._rows.pop(0)
        first, last = self._rows[0].pose, self._rows[-1].pose
        drives = row.twist is not None and float(np.linalg.norm(row.twist[0])) > DRIVES_MPS
        self.moves = self.moves or drives or moved_m(first, last) > MOVED_M or turned_rad(first, last) > TURNED_RAD

    def at(self, stamp_ns: int) -> Matrix | None:
        """Return the pose (4, 4) at an instant; None where no pose is near enough."""
        rows = self._rows
        after = bisect_right(rows, stamp_ns, key=_stamp)
        if after and rows[after - 1].stamp_ns == stamp_ns:
            return rows[after - 1].pose
        reach_ns = int(REACH_S * 1e9)
        if 0 < after < len(rows):
            a, b = rows[after - 1], rows[after]
            return between(a, b, stamp_ns) if b.stamp_ns - a.stamp_ns <= int(GAP_S * 1e9) else None
        if not rows or min(abs(row.stamp_ns - stamp_ns) for row in (rows[0], rows[-1])) > reach_ns:
            return None
        if len(rows) == 1:
            return None
        a, b = (rows[0], rows[1]) if after == 0 else (rows[-2], rows[-1])
        return between(a, b, stamp_ns)

    def motion(self, stamp_ns: int, axes: Matrix) -> tuple[Floats, float] | None:
        """Return velocity (3,) along the axes of a pose and yaw rate at an instant; None where they are unknown."""
        window_ns = int(_WINDOW_S * 1e9)
        near = [row for row in self._rows if abs(row.stamp_ns - stamp_ns) <= window_ns]
        if len(near) < 2:
            near = sorted(sorted(self._rows, key=lambda row: abs(row.stamp_ns - stamp_ns))[:2], key=_stamp)
        if len(near) < 2 or near[-1].stamp_ns - near[0].stamp_ns > int(GAP_S * 1e9):
            return near[0].twist if near else None
        return motion_between(near[0], near[-1], axes)


def _stamp(row: TimedPose) -> int:
    return row.stamp_ns
