# SPDX-License-Identifier: Apache-2.0
"""Lanes along a way: its own, parallel ones, and oncoming ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.data.lanes import ALONG, ONCOMING, OWN, Strip
from mt_nodes.world.drive.road_map import RoadMap, SameMap

#: Spacing of points along lanes; the way is sampled at twice that.
_STEP_M = 2.0
#: Lanes farther beside the way, or with a larger angle to it, are no neighbours.
_NEIGHBOUR_M, _TURN_RAD = 9.0, 0.5


#: Ways along which the lanes are kept: those of a drive of a minute, which all arms of a run drive.
_KEPT = 1024


class LanesAround:
    """The lanes for vehicles of a map, and their places along a way. Pavements are not included."""

    def __init__(self, road: RoadMap) -> None:
        lanes = [lane for lane in road.lanes.values() if lane.on_road]
        self._names, self._widths = [lane.name for lane in lanes], [lane.width_m for lane in lanes]
        rows = [_poses(lane.line_m, lane.stations_m) for lane in lanes]
        self._poses = np.concatenate(rows)
        self._lane = np.repeat(np.arange(len(lanes)), [len(part) for part in rows])
        self._known = lru_cache(maxsize=_KEPT)(self._found)

    def along(self, way: Floats) -> list[Strip]:
        """Return the pieces of lanes along a way (K, 3) of poses, one per metre; those of the last ways are cached."""
        return self._known(np.ascontiguousarray(way[:: int(2 * _STEP_M)]).tobytes())

    def _found(self, sampled_way: bytes) -> list[Strip]:
        sampled = np.frombuffer(sampled_way).reshape(-1, 3)
        rows = self._around(sampled)
        poses = self._poses[rows]
        off = poses[:, None, :2] - sampled[:, :2]
        nearest = np.argmin(np.einsum("nki,nki->nk", off, off), axis=1)
        poses_near, off = sampled[nearest], off[np.arange(len(off)), nearest]
        c, s = np.cos(poses_near[:, 2]), np.sin(poses_near[:, 2])
        ahead, left = c * off[:, 0] + s * off[:, 1], c * off[:, 1] - s * off[:, 0]
        turn = np.abs(np.angle(np.exp(1j * (poses[:, 2] - poses_near[:, 2]))))
        same = turn < _TURN_RAD
        near = (np.abs(ahead) <= 2 * _STEP_M) & (np.abs(left) < _NEIGHBOUR_M) & (same | (turn > np.pi - _TURN_RAD))
        own = same & (np.abs(left) < np.take(self._widths, self._lane[rows]) / 2.0)
        direction = np.where(own, 0, np.where(same, 1, 2))
        return list(self._strips(rows[near], direction[near]))

    def _around(self, sampled: Floats) -> npt.NDArray[np.intp]:
        """Return the rows that may be near a way, which excludes most of a map."""
        beyond = _NEIGHBOUR_M + 2 * _STEP_M
        low, high = sampled[:, :2].min(axis=0) - beyond, sampled[:, :2].max(axis=0) + beyond
        return np.flatnonzero(((self._poses[:, :2] >= low) & (self._poses[:, :2] <= high)).all(axis=1))

    def _strips(self, rows: npt.NDArray[np.intp], direction: npt.NDArray[np.int_]) -> Iterator[Strip]:
        """Yield rows that follow each other on one lane in one direction; single points are left out.

        ``rows``: those near the way, in their order. ``direction``: of each.
        """
        breaks = np.diff(rows) != 1
        breaks |= (np.diff(self._lane[rows]) != 0) | (np.diff(direction) != 0)
        for begin, end in pairwise([0, *(np.flatnonzero(breaks) + 1).tolist(), len(rows)]):
            if end - begin > 1:
                lane, way = int(self._lane[rows[begin]]), int(direction[begin])
                middle = self._poses[rows[begin:end], :2]
                yield Strip(self._names[lane], (OWN, ALONG, ONCOMING)[way], self._widths[lane], middle)


def lanes_around(road: RoadMap) -> LanesAround:
    """Return the lanes of a map; cached per object: each drive of a run asks for them."""
    return _built(SameMap(road))


@lru_cache(maxsize=8)
def _built(key: SameMap) -> LanesAround:
    return LanesAround(key.road)


def _poses(line_m: Floats, stations_m: Floats) -> Floats:
    """Return poses (n, 3) at even distances along a centre line, including its ends."""
    at = np.linspace(0.0, stations_m[-1], max(2, int(np.ceil(stations_m[-1] / _STEP_M)) + 1))
    xy = np.column_stack([np.interp(at, stations_m, column) for column in line_m.T])
    step = np.diff(line_m, axis=0)
    piece = np.clip(np.searchsorted(stations_m, at, side="right") - 1, 0, len(step) - 1)
    return np.column_stack([xy, np.arctan2(step[piece, 1], step[piece, 0])])
