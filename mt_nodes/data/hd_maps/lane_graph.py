# SPDX-License-Identifier: Apache-2.0
"""The lanes of a map as a graph of places, for routes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, dijkstra
from scipy.spatial import cKDTree

from mt_nodes.base.arrays import Floats, Ints, Mask
from mt_nodes.base.errors import UsageError
from mt_nodes.data.hd_maps.hd_map import HdLane, HdMap

#: Step between places of a lane.
STEP_M = 3.0
#: A lane leads into another one that begins this near its end, and not more than this aside of its direction.
_JOINT_M, _JOINT_RAD = 1.0, np.radians(60.0)
#: One changes to a lane beside: so far to the side, so far ahead, in nearly the same direction.
_BESIDE_M, _AHEAD_M, _SAME_RAD = (1.5, 5.0), (1.0, 12.0), np.radians(20.0)
#: What a place in the opposite direction counts as farther away: two lanes.
_OTHER_WAY_M = 7.0
_NOWHERE = -9999


@dataclass(frozen=True, eq=False)
class LaneGraph:
    """Places in the middle of lanes, and the ways of driving from one to the next.

    ``places_m``: (N, 2). ``yaw_rad``: (N,) direction of driving. ``lane``: (N,) row of the lane in the map. ``begin``,
    ``end``: (W,) places that a way joins. ``length_m``: (W,) of the ways.
    """

    places_m: Floats
    yaw_rad: Floats
    lane: Ints
    begin: Ints
    end: Ints
    length_m: Floats

    @classmethod
    def of(cls, hd_map: HdMap) -> LaneGraph:
        """Build the graph of all lanes of a map, which the caller has chosen by kind.

        Raises UsageError: there is no place in it.
        """
        middles = [_even(lane) for lane in hd_map.lanes]
        places = np.concatenate(middles) if middles else np.empty((0, 2))
        if not len(places):
            raise UsageError(f"{hd_map.name}: got no lane to drive on")
        lane = np.repeat(np.arange(len(middles)), [len(middle) for middle in middles])
        yaw = np.concatenate([_directions(middle) for middle in middles])
        first = np.concatenate([[0], np.cumsum([len(middle) for middle in middles])])
        ways = [
            np.column_stack([np.arange(len(places) - 1), np.arange(1, len(places))])[np.diff(lane) == 0],
            _joints(places, yaw, first[:-1], first[1:] - 1),
            _lane_changes(places, yaw, lane),
        ]
        begin, end = np.concatenate(ways).T
        length = np.linalg.norm(places[end] - places[begin], axis=1)
        return cls(places, yaw, lane, begin, end, np.maximum(length, 1e-3))

    def nearest(self, x_m: float, y_m: float, yaw_rad: float | None = None) -> int:
        """Return the nearest place; with a direction, one that leads there is preferred to one some metres nearer."""
        away = np.linalg.norm(self.places_m - (x_m, y_m), axis=1)
        if yaw_rad is not None:
            away = away + _OTHER_WAY_M * (1.0 - np.cos(self.yaw_rad - yaw_rad)) / 2.0
        return int(np.argmin(away))

    def reachable(self, start: int) -> Ints:
        """Return the places to which one can drive from a place, itself excepted."""
        order = breadth_first_order(self._matrix(self.length_m), start, return_predecessors=False)
        return np.asarray(np.sort(order[1:]), dtype=np.int64)

    def shortest(self, start: int, goal: int, cost: Floats | None = None) -> Ints | None:
        """Return the places of the cheapest drive from one to another, or None if there is none.

        ``cost``: (W,) of the ways, infinite where one cannot drive; None: their lengths.
        """
        matrix = self._matrix(self.length_m if cost is None else cost)
        _, before = dijkstra(matrix, indices=start, return_predecessors=True)
        return _back_from(goal, start, before)

    def _matrix(self, costs: Floats) -> csr_array:
        open_ = np.isfinite(costs)
        count = len(self.places_m)
        # A sparse matrix adds what is given twice; the cheapest of parallel ways is wanted.
        order = np.lexsort((costs[open_], self.end[open_], self.begin[open_]))
        begin, end, costs = self.begin[open_][order], self.end[open_][order], costs[open_][order]
        first = np.ones(len(begin), dtype=bool)
        first[1:] = (np.diff(begin) != 0) | (np.diff(end) != 0)
        return csr_array(coo_array((costs[first], (begin[first], end[first])), shape=(count, count)))

    def ways_near(self, x_m: float, y_m: float, within_m: float) -> Mask:
        """Return which ways (W,) come within a distance of a point."""
        begin = self.places_m[self.begin]
        along, to = self.places_m[self.end] - begin, np.array([x_m, y_m]) - begin
        share = np.clip((along * to).sum(axis=1) / np.maximum((along * along).sum(axis=1), 1e-12), 0.0, 1.0)
        return np.asarray(np.linalg.norm(to - along * share[:, None], axis=1) <= within_m)


def _back_from(goal: int, start: int, before: Iterable[int]) -> Ints | None:
    steps, rows = [goal], np.asarray(before)
    while steps[-1] != start:
        if rows[steps[-1]] == _NOWHERE:
            return None
        steps.append(int(rows[steps[-1]]))
    return np.array(steps[::-1], dtype=np.int64)


def _even(lane: HdLane) -> Floats:
    middle = (lane.left_m + lane.right_m) / 2.0
    station = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(middle, axis=0), axis=1))])
    count = max(2, int(np.ceil(station[-1] / STEP_M)) + 1)
    at = np.linspace(0.0, station[-1], count)
    return np.column_stack([np.interp(at, station, middle[:, axis]) for axis in (0, 1)])


def _directions(middle: Floats) -> Floats:
    along = np.gradient(middle, axis=0)
    return np.asarray(np.arctan2(along[:, 1], along[:, 0]))


def _turn(angle: Floats) -> Floats:
    return np.asarray((angle + np.pi) % (2.0 * np.pi) - np.pi)


def _joints(places: Floats, yaw: Floats, first: Ints, last: Ints) -> Ints:
    """Return the ways (J, 2) from the ends of lanes to the beginnings of others."""
    found = cKDTree(places[first]).query_ball_point(places[last], _JOINT_M)
    pairs = np.array([(a, first[b]) for a, row in zip(last, found, strict=True) for b in row], dtype=np.int64)
    pairs = pairs.reshape(-1, 2)
    fits = np.abs(_turn(yaw[pairs[:, 1]] - yaw[pairs[:, 0]])) < _JOINT_RAD
    return np.asarray(pairs[fits])


def _lane_changes(places: Floats, yaw: Floats, lane: Ints) -> Ints:
    """Return the ways (C, 2) to places of parallel lanes, ahead and to the side."""
    pairs = cKDTree(places).query_pairs(float(np.hypot(_BESIDE_M[1], _AHEAD_M[1])), output_type="ndarray")
    both = np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int64)
    both = both[lane[both[:, 0]] != lane[both[:, 1]]]
    a, b = both.T
    away, c, s = places[b] - places[a], np.cos(yaw[a]), np.sin(yaw[a])
    ahead, aside = away[:, 0] * c + away[:, 1] * s, np.abs(away[:, 1] * c - away[:, 0] * s)
    fits = (np.abs(_turn(yaw[b] - yaw[a])) < _SAME_RAD) & (ahead > _AHEAD_M[0]) & (ahead < _AHEAD_M[1])
    return np.asarray(both[fits & (aside > _BESIDE_M[0]) & (aside < _BESIDE_M[1])])
