# SPDX-License-Identifier: Apache-2.0
"""Lanes of a high-definition map, as outlines on the ground plan."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.base.errors import UsageError

Line = npt.NDArray[np.float64]
#: Kinds of lanes that vehicles use: lane types of OpenDRIVE 1.8 (table 91) and subtypes of Lanelet2's tagging page.
VEHICLE_KINDS = (
    *("driving", "bidirectional", "entry", "exit", "onRamp", "offRamp", "connectingRamp", "slipLane", "bus", "taxi"),
    *("HOV", "shared", "special1", "special2", "special3", "stop", "shoulder", "parking"),
    *("road", "highway", "play_street", "emergency_lane", "bus_lane"),
)
#: Longest piece of a lane. A short piece has no hole, which a lane around a block would have.
_PIECE_M = 10.0


@dataclass(frozen=True, eq=False)
class HdLane:
    """A lane between two borders.

    ``lane_id``: its number in a Lanelet2 map; ``road/section/lane`` in OpenDRIVE. ``kind``: the file's word for its
    type. ``left_m``, ``right_m``: (K, 2) points of the borders in the direction of driving, as many on each side.
    """

    lane_id: str
    kind: str
    left_m: Line
    right_m: Line

    def pieces(self) -> list[Any]:
        """Return shapely polygons of at most some ten metres that cover the lane and touch each other."""
        middle = (self.left_m + self.right_m) / 2.0
        station_m = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(middle, axis=0), axis=1))])
        cuts = np.unique(
            [0, *np.searchsorted(station_m, np.arange(_PIECE_M, station_m[-1], _PIECE_M)), len(middle) - 1]
        )
        rings = [np.concatenate([self.left_m[a : b + 1], self.right_m[a : b + 1][::-1]]) for a, b in pairwise(cuts)]
        return [part for ring in rings for part in _polygons(shapely.make_valid(shapely.Polygon(ring)))]


@dataclass(frozen=True, eq=False)
class HdMap:
    """Every lane of a map. ``name``: the file's name, for messages. ``lanes``: its lanes, in the order of the file."""

    name: str
    lanes: tuple[HdLane, ...]

    def chosen(self, kinds: tuple[str, ...], along: tuple[str, ...]) -> HdMap:
        """Return the map of the lanes of some kinds only, and of a route only if one is given.

        ``along``: lanes by number; a road of OpenDRIVE or ``road/section`` stands for all its lanes.
        Raises UsageError: no lane has such a kind, or a lane of the route is not in the map.
        """
        lanes = tuple(lane for lane in self.lanes if lane.kind in kinds)
        if not lanes:
            known = ", ".join(sorted({lane.kind for lane in self.lanes})) or "(no lanes)"
            raise UsageError(f"{self.name}: got no lane of the kinds {', '.join(kinds)}; its kinds: {known}")
        if not along:
            return HdMap(self.name, lanes)
        for lane_id in along:
            if not any(_belongs(lane, lane_id) for lane in lanes):
                raise UsageError(f"{self.name}: along: got lane {lane_id}, which is not among its {len(lanes)} lanes")
        return HdMap(self.name, tuple(lane for lane in lanes if any(_belongs(lane, one) for one in along)))

    @cached_property
    def pieces(self) -> npt.NDArray[Any]:
        """Shapely polygons of all lanes."""
        return np.array([piece for lane in self.lanes for piece in lane.pieces()], dtype=object)

    @cached_property
    def _tree(self) -> shapely.STRtree:
        return shapely.STRtree(self.pieces)

    def near(self, x_m: float, y_m: float, reach_m: float) -> npt.NDArray[Any]:
        """Return the pieces of lanes within a distance of a place."""
        rows = self._tree.query(shapely.Point(x_m, y_m), predicate="dwithin", distance=reach_m)
        return np.asarray(self.pieces[np.sort(rows)])


def borders_of_same_length(left_m: Line, right_m: Line) -> tuple[Line, Line]:
    """Return two borders (N, 2) and (M, 2) with points at the same shares of their lengths; no corner is lost."""
    left_share, right_share = _shares(left_m), _shares(right_m)
    length_m = max(shapely.length(shapely.LineString(line)) for line in (left_m, right_m))
    even = np.linspace(0.0, 1.0, int(np.ceil(length_m / (_PIECE_M / 2.0))) + 1)
    shares = np.unique(np.concatenate([left_share, right_share, even]))
    return _at(left_m, left_share, shares), _at(right_m, right_share, shares)


def _shares(line: Line) -> Line:
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    return np.asarray(way / way[-1])


def _at(line: Line, share: Line, shares: Line) -> Line:
    return np.column_stack([np.interp(shares, share, line[:, axis]) for axis in (0, 1)])


def _belongs(lane: HdLane, lane_id: str) -> bool:
    return lane.lane_id == lane_id or lane.lane_id.startswith(f"{lane_id}/")


def _polygons(geometry: Any) -> list[Any]:
    return [part for part in shapely.get_parts(geometry) if part.geom_type == "Polygon" and part.area > 0.0]
