# SPDX-License-Identifier: Apache-2.0
"""Adjacent lanes that continue beside the vehicle's own for long enough to be used."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from mt_nodes.data.lanes import ALONG, ONCOMING, OWN, Lanes
from mt_nodes.stacks.reference.way import LanePath

#: Middles that lie nearer to each other are of one lane, and who is so near is on it.
APART_M = 1.0
#: A lane ends where no point of it comes for so long.
_GAP_M = 6.0


@dataclass(frozen=True)
class AdjacentLane:
    """An adjacent lane: the offset of its middle to the left, and its direction of traffic."""

    left_m: float
    direction: str


def adjacent_lanes(lanes: Lanes, way: LanePath, begin_m: float, end_m: float) -> list[AdjacentLane]:
    """Return the lanes that run beside a path all the way from one station to another."""
    known = np.isfinite(lanes.point_m).all(axis=1)
    station, left = way.place(lanes.point_m[known])
    near = (station > begin_m - _GAP_M) & (station < end_m + _GAP_M)
    found = []
    for direction in (ALONG, ONCOMING):
        of = near & (lanes.direction[known] == direction)
        order = np.argsort(left[of], kind="stable")
        lefts, stations = left[of][order], station[of][order]
        for rows in np.split(np.arange(len(lefts)), np.flatnonzero(np.diff(lefts) > APART_M / 2.0) + 1):
            along = np.concatenate([[begin_m], np.sort(stations[rows]), [end_m]])
            middle = lefts[rows]
            if len(rows) and np.diff(along).max() <= _GAP_M and middle[-1] - middle[0] < APART_M:
                found.append(AdjacentLane(float(np.median(middle)), direction))
    return found


def room_in(lanes: Lanes, width_m: float) -> float:
    """Return how far a vehicle of a width can move from the middle of its lane; infinite if no lane is known."""
    own = lanes.width_m[lanes.direction == OWN]
    return max(0.0, float(own.min(initial=inf)) - width_m) / 2.0
