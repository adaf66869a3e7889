# SPDX-License-Identifier: Apache-2.0
"""Route planners under test: the reference planner with its faults, and those of users."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.data.hd_maps.lane_graph import STEP_M, LaneGraph
from mt_nodes.runs.routes.route_query import RouteQuery
from mt_nodes.stacks.callables import load_callable
from mt_nodes.stacks.stack import Stack

REFERENCE, SERVICE = "reference_route_planner", "ros:"
#: Ways this near to a closed place are closed.
CLOSED_M = 4.0
_TILE_M, _MOTORWAY_M, _JUNCTION_M, _TURN_RAD = 100.0, 150.0, 30.0, 0.02


class RoutePlanner(Protocol):
    """Answers questions: returns points (N, 2) in metres of the map's frame, or None if there is no route."""

    def __call__(self, query: RouteQuery) -> Any:
        """Return the route."""


class LanePlanner:
    """The reference planner: the shortest drive along the lanes of the map.

    ``fault``: one of :data:`FAULTS`, or empty.
    """

    def __init__(self, graph: LaneGraph, fault: str = "") -> None:
        self._graph, self._fault = graph, fault

    def __call__(self, query: RouteQuery) -> Floats | None:
        """Return the places of the cheapest drive."""
        graph = self._graph
        start, goal = (graph.nearest(*place.xy_m, place.yaw_rad) for place in (query.start, query.goal))
        if self._passes(start, goal):
            return self._around(start, goal, query)
        rows = graph.shortest(start, goal, self._costs(query))
        return None if rows is None else graph.places_m[rows]

    def _passes(self, start: int, goal: int) -> bool:
        """Return whether a planted fault passes the goal, and reaches it only by the next round."""
        lane = self._graph.lane
        if self._fault == "goal_near_junction_passed":
            return start != goal and STEP_M * (np.flatnonzero(lane == lane[goal])[-1] - goal) < _JUNCTION_M
        return self._fault == "goal_on_own_lane_behind" and lane[start] == lane[goal] and start != goal

    def _costs(self, query: RouteQuery) -> Floats:
        weigh = FAULTS.get(self._fault)
        cost = (weigh(self._graph, query) if weigh else self._graph.length_m).copy()
        for place in () if self._fault == "closure_unread" else query.closed:
            cost[self._graph.ways_near(*place.xy_m, CLOSED_M)] = np.inf
        return cost

    def _around(self, start: int, goal: int, query: RouteQuery) -> Floats | None:
        """Leave the goal's lane before looking for the goal, as a planner does that only compares lanes."""
        graph, cost = self._graph, self._costs(query)
        last = int(np.flatnonzero(graph.lane == graph.lane[goal])[-1])
        first = graph.shortest(start, last, cost)
        following = graph.end[(graph.begin == last) & np.isfinite(cost)]
        rest = graph.shortest(int(following[0]), goal, cost) if len(following) else None
        if first is None or rest is None:
            return None
        return np.asarray(graph.places_m[np.concatenate([first, rest])])


def _long_lanes_cheap(graph: LaneGraph, query: RouteQuery) -> Floats:
    """Long lanes count a fifth of their length, as if each of them were a motorway."""
    long = np.bincount(graph.lane)[graph.lane] * STEP_M >= _MOTORWAY_M
    return np.asarray(graph.length_m * np.where(long[graph.begin] & long[graph.end], 0.2, 1.0))


def _tiles_avoided(graph: LaneGraph, query: RouteQuery) -> Floats:
    """Ways from one tile of the map to the next are expensive, so that few tiles must be loaded."""
    tile = np.floor(graph.places_m / _TILE_M)
    crosses = (tile[graph.begin] != tile[graph.end]).any(axis=1)
    return np.asarray(graph.length_m + 150.0 * crosses)


def _left_turns_avoided(graph: LaneGraph, query: RouteQuery) -> Floats:
    """Each way of a left turn costs as much as a block, for the sake of smooth traffic."""
    turn_rad = np.angle(np.exp(1j * (graph.yaw_rad[graph.end] - graph.yaw_rad[graph.begin])))
    return np.asarray(graph.length_m * np.where(turn_rad > _TURN_RAD, 100.0, 1.0))


def _own_length(graph: LaneGraph, query: RouteQuery) -> Floats:
    return graph.length_m


#: Planted errors of the reference planner: how each weighs a way.
FAULTS: dict[str, Callable[[LaneGraph, RouteQuery], Floats]] = {
    "long_lanes_cheap": _long_lanes_cheap,
    "tiles_avoided": _tiles_avoided,
    "goal_on_own_lane_behind": _own_length,
    "goal_near_junction_passed": _own_length,
    "left_turns_avoided": _left_turns_avoided,
    "closure_unread": _own_length,
}


@contextmanager
def opened_planner(name: str, graph: LaneGraph, fault: str = "") -> Iterator[RoutePlanner]:
    """Yield a planner as :func:`load_planner` returns it, and close it where it has something to close."""
    planner = load_planner(name, graph, fault)
    try:
        yield planner
    finally:
        close = getattr(planner, "close", None)
        if callable(close):
            close()


def load_planner(name: str, graph: LaneGraph, fault: str = "") -> RoutePlanner:
    """Return the reference planner, or that of a user.

    ``name``: :data:`REFERENCE`; ``module:function``, called with a :class:`RouteQuery`; or ``ros:/service``.
    Raises UsageError: no such planner, module, function or fault.
    """
    if name == REFERENCE:
        if fault and fault not in FAULTS:
            raise UsageError(f"--fault: {REFERENCE} has no fault '{fault}'{suggest(fault, FAULTS)}")
        return LanePlanner(graph, fault)
    if fault:
        raise UsageError(f"--fault {fault}: faults are planted in {REFERENCE} only, got --planner {name}")
    if name.startswith(SERVICE):
        # Only this planner needs ROS, whose nodes lie above this room.
        client = importlib.import_module("mt_nodes.nodes.route_service").RouteService
        return client(name.removeprefix(SERVICE))  # type: ignore[no-any-return]
    if ":" not in name:
        raise UsageError(
            f"--planner: got '{name}', expected {REFERENCE}, MODULE:FUNCTION of a planner of yours, or {SERVICE}/NAME"
        )
    planner: RoutePlanner = load_callable(Stack(name="planner", callable=name))
    return planner
