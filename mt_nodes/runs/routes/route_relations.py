# SPDX-License-Identifier: Apache-2.0
"""Relations between a route and the routes of related questions.

After J. Brown, Z. Q. Zhou, Y.-W. Chow, "Metamorphic Testing of Navigation Software: A Pilot Study with Google Maps",
HICSS 2018, which Zhou and Sun (CACM 62(3), 2019) quote: a restriction never makes a route better, and one of their
cases is a destination beside the origin with a route of 4.9 miles. Lengths are compared, since planners that minimise
another cost are tested by asking them for the shortest route.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.data.hd_maps.lane_graph import LaneGraph
from mt_nodes.runs.routes.route_query import PlannedRoute, RoutePlace, RouteQuery

#: A planner puts places onto its own lanes and points some metres apart: no difference below this counts.
TOLERANCE_M, TOLERANCE_SHARE = 15.0, 0.02
#: A way back may be so much longer, in a town with one-way streets; tolerated, not demanded.
BACK_FACTOR, BACK_M = 2.0, 300.0
_NEAR_M = (10.0, 60.0)


@dataclass(frozen=True)
class RouteDraw:
    """The questions of one pair after the source question.

    ``queries``: what is asked next. ``known_m``: a length that the check needs besides, such as that of a move.
    """

    queries: tuple[RouteQuery, ...]
    known_m: float = 0.0


Draw = Callable[[RouteQuery, PlannedRoute, LaneGraph, np.random.Generator], "RouteDraw | str"]
Check = Callable[[PlannedRoute, tuple[PlannedRoute, ...], RouteDraw], tuple[float, str]]


@dataclass(frozen=True)
class RouteRelation:
    """A relation between routes.

    Attributes:
        name, kind, because: as of other relations. draw: makes the questions, or says why it cannot.
        check: returns by how many metres the relation is violated (at most 0: it holds), and the comparison in words.
        closes: whether it closes a road, which a planner must be able to take.
    """

    name: str
    kind: str
    because: str
    draw: Draw
    check: Check
    closes: bool = False


def place_at(graph: LaneGraph, row: int) -> RoutePlace:
    """Return a place of the map as one of a question."""
    return RoutePlace(float(graph.places_m[row, 0]), float(graph.places_m[row, 1]), float(graph.yaw_rad[row]))


def excess_m(longer_m: float, limit_m: float) -> float:
    """Return by how much a length exceeds a limit and the tolerance; infinite if there is no route."""
    if not np.isfinite(longer_m):
        return float("inf")
    return longer_m - limit_m * (1.0 + TOLERANCE_SHARE) - TOLERANCE_M


def _back(query: RouteQuery, route: PlannedRoute, graph: LaneGraph, rng: np.random.Generator) -> RouteDraw | str:
    """Ask for the way back, between places of the opposite direction where the road has one."""
    start, goal = (replace(place, yaw_rad=place.yaw_rad + np.pi) for place in (query.goal, query.start))
    return RouteDraw((RouteQuery(start, goal),))


def _back_check(route: PlannedRoute, others: tuple[PlannedRoute, ...], draw: RouteDraw) -> tuple[float, str]:
    back_m, limit_m = others[0].length_m, BACK_FACTOR * route.length_m + BACK_M
    if not others[0].found:
        return float("-inf"), "the planner knows no way back, which may lie beyond the map"
    return excess_m(back_m, limit_m), f"there {route.length_m:.0f} m, back {back_m:.0f} m"


def _stop(query: RouteQuery, route: PlannedRoute, graph: LaneGraph, rng: np.random.Generator) -> RouteDraw | str:
    stop = route.at(float(rng.uniform(0.2, 0.8)))
    return RouteDraw((RouteQuery(query.start, stop), RouteQuery(stop, query.goal)))


def _stop_check(route: PlannedRoute, others: tuple[PlannedRoute, ...], draw: RouteDraw) -> tuple[float, str]:
    first_m, second_m = (other.length_m for other in others)
    words = f"direct {route.length_m:.0f} m, with a stop on this way {first_m:.0f} + {second_m:.0f} m"
    return excess_m(first_m + second_m, route.length_m), words


def _detour(query: RouteQuery, route: PlannedRoute, graph: LaneGraph, rng: np.random.Generator) -> RouteDraw | str:
    """Choose a place that could lie on a shorter way: as the crow flies, the way by it is shorter."""
    ends = np.array([query.start.xy_m, query.goal.xy_m])
    by_m = np.linalg.norm(graph.places_m[:, None] - ends, axis=2).sum(axis=1)
    rows = np.flatnonzero(by_m < route.length_m)
    if not len(rows):
        return "the route is as straight as can be"
    row = int(rng.choice(rows))
    stop = place_at(graph, row)
    return RouteDraw((RouteQuery(query.start, stop), RouteQuery(stop, query.goal)))


def _detour_check(route: PlannedRoute, others: tuple[PlannedRoute, ...], draw: RouteDraw) -> tuple[float, str]:
    by_m = sum(other.length_m for other in others)
    if not np.isfinite(by_m):
        return float("-inf"), "there is no way by that place"
    return excess_m(route.length_m, by_m), f"direct {route.length_m:.0f} m, by another place {by_m:.0f} m"


def _moved(query: RouteQuery, route: PlannedRoute, graph: LaneGraph, rng: np.random.Generator) -> RouteDraw | str:
    lane = np.flatnonzero(graph.lane == graph.lane[graph.nearest(*query.goal.xy_m, query.goal.yaw_rad)])
    here = graph.nearest(*query.goal.xy_m, query.goal.yaw_rad)
    ahead = lane[lane > here]
    if not len(ahead):
        return "the destination is at the end of its lane"
    row = int(rng.choice(ahead))
    steps = graph.places_m[here : row + 1]
    by_m = float(np.linalg.norm(np.diff(steps, axis=0), axis=1).sum())
    goal = place_at(graph, row)
    return RouteDraw((replace(query, goal=goal),), by_m)


def _moved_check(route: PlannedRoute, others: tuple[PlannedRoute, ...], draw: RouteDraw) -> tuple[float, str]:
    after_m = others[0].length_m
    words = f"{route.length_m:.0f} m, and {after_m:.0f} m to a destination {draw.known_m:.0f} m further along its lane"
    return excess_m(after_m, route.length_m + draw.known_m), words


def _beside(query: RouteQuery, route: PlannedRoute, graph: LaneGraph, rng: np.random.Generator) -> RouteDraw | str:
    here = graph.nearest(*query.start.xy_m, query.start.yaw_rad)
    lane = np.flatnonzero(graph.lane == graph.lane[here])
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(graph.places_m[lane], axis=0), axis=1))])
    away = way - way[int(np.searchsorted(lane, here))]
    near = lane[(away >= _NEAR_M[0]) & (away <= _NEAR_M[1])]
    if not len(near):
        return f"the lane ends less than {_NEAR_M[0]:g} m ahead of the start"
    row = int(rng.choice(near))
    goal = place_at(graph, row)
    return RouteDraw((replace(query, goal=goal),), float(away[int(np.searchsorted(lane, row))]))


def _beside_check(route: PlannedRoute, others: tuple[PlannedRoute, ...], draw: RouteDraw) -> tuple[float, str]:
    words = f"{others[0].length_m:.0f} m to a destination {draw.known_m:.0f} m ahead on the same lane"
    return excess_m(others[0].length_m, draw.known_m), words


def _closed(query: RouteQuery, route: PlannedRoute, graph: LaneGraph, rng: np.random.Generator) -> RouteDraw | str:
    if route.length_m < 100.0:
        return f"the route of {route.length_m:.0f} m is too short to close a road on it"
    return RouteDraw((replace(query, closed=(route.at(float(rng.uniform(0.3, 0.7))),)),))


def _closed_check(route: PlannedRoute, others: tuple[PlannedRoute, ...], draw: RouteDraw) -> tuple[float, str]:
    other, place = others[0], draw.queries[0].closed[0]
    if not other.found:
        return float("-inf"), "no other way is left"
    near_m = other.nearest_m(place)
    if near_m < 1.0:
        return float("inf"), f"the route leads over the closed place at x {place.x_m:.0f}, y {place.y_m:.0f} m"
    words = f"{route.length_m:.0f} m, and {other.length_m:.0f} m with a road closed"
    return excess_m(route.length_m, other.length_m), words


RELATIONS: tuple[RouteRelation, ...] = (
    RouteRelation(
        "route_stop_on_the_way",
        "necessary",
        "Whoever stops at a place of the shortest route and drives on drives no farther: its parts are shortest, too.",
        _stop,
        _stop_check,
    ),
    RouteRelation(
        "route_by_another_place",
        "necessary",
        "The shortest route is not longer than the way by any other place.",
        _detour,
        _detour_check,
    ),
    RouteRelation(
        "route_destination_moved",
        "necessary",
        "A destination further along its lane is reached by driving on: the route grows by no more than the move.",
        _moved,
        _moved_check,
    ),
    RouteRelation(
        "route_destination_ahead",
        "necessary",
        "A destination some metres ahead on the own lane is reached by driving there, not round the block.",
        _beside,
        _beside_check,
    ),
    RouteRelation(
        "route_road_closed",
        "necessary",
        "A closed road makes no route shorter, and no route leads over it.",
        _closed,
        _closed_check,
        closes=True,
    ),
    RouteRelation(
        "route_way_back",
        "expected",
        f"The way back is at most {BACK_FACTOR:g} times as long and {BACK_M:g} m longer, one-way streets included.",
        _back,
        _back_check,
    ),
)


def chosen_relations(names: Sequence[str], *, closes: bool) -> tuple[list[RouteRelation], dict[str, str]]:
    """Return the relations to judge, and those left out with the reason.

    ``names``: empty: all. ``closes``: whether the planner can be told of closed roads.
    Raises UsageError: there is no such relation, or none is left.
    """
    known = {relation.name: relation for relation in RELATIONS}
    for name in names:
        if name not in known:
            raise UsageError(f"--relations: no relation between routes '{name}'{suggest(name, known)}")
    wanted = [known[name] for name in names] if names else list(RELATIONS)
    kept = [relation for relation in wanted if closes or not relation.closes]
    if not kept:
        raise UsageError(f"--relations {','.join(names)}: this planner cannot be told of closed roads")
    return kept, {r.name: "this planner cannot be told of closed roads" for r in wanted if r not in kept}
