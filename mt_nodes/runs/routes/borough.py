# SPDX-License-Identifier: Apache-2.0
"""A map made for routes: streets of uneven blocks, some of them missing, so that ways compete."""

from __future__ import annotations

import numpy as np

from mt_nodes.data.hd_maps.hd_map import HdLane, HdMap
from mt_nodes.world.drive.grid_maps import grid
from mt_nodes.world.drive.map_parts import parallel_line
from mt_nodes.world.drive.road_map import Lane, RoadMap

NAME = "borough"
_X_M, _Y_M = (0.0, 90.0, 260.0, 340.0, 560.0, 640.0), (0.0, 130.0, 200.0, 420.0, 500.0)
#: Streets that are not there, from the crossing in this column and row to the right or upwards.
_MISSING_RIGHT, _MISSING_UP = {(1, 1), (2, 3), (4, 2)}, {(2, 0), (3, 2), (1, 3)}


def borough() -> HdMap:
    """Return the lanes of the map."""
    columns, rows = range(len(_X_M)), range(len(_Y_M))
    crossings = {f"{i}_{j}": (_X_M[i], _Y_M[j]) for i in columns for j in rows}
    right = [(f"{i}_{j}", f"{i + 1}_{j}") for i in columns[:-1] for j in rows if (i, j) not in _MISSING_RIGHT]
    up = [(f"{i}_{j}", f"{i}_{j + 1}") for i in columns for j in rows[:-1] if (i, j) not in _MISSING_UP]
    return _lanes_of(grid(NAME, crossings, [*right, *up]))


def _lanes_of(road_map: RoadMap) -> HdMap:
    lanes = [_lane(lane) for lane in road_map.lanes.values() if lane.on_road]
    return HdMap(road_map.name, tuple(lanes))


def _lane(lane: Lane) -> HdLane:
    line = np.asarray(lane.middle_m, dtype=np.float64)
    left, right = (parallel_line(line, side * lane.width_m / 2.0) for side in (1.0, -1.0))
    return HdLane(lane.name, "driving", left, right)
