# SPDX-License-Identifier: Apache-2.0
"""Maps of streets along x and y: one lane per direction, and lights where three or more streets meet.

Lanes are named after the places that they join: ``a_b`` leads from ``a`` to ``b``, ``a_b_c`` over ``b`` towards ``c``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import atan2, hypot, pi, sin

import numpy as np

from mt_nodes.world.drive.map_parts import GUTTER_M, PAVEMENT_M, across, along, course, finished, outline, parallel_line
from mt_nodes.world.drive.road_map import Crossing, Lane, RoadMap, TrafficLight
from mt_nodes.world.drive.scenario import Pose

WIDTH_M = 3.5
_KERB_M = WIDTH_M + GUTTER_M
#: Distances from the centre of a junction: end of lanes, begin and end of the crossing, stop line.
_BOX_M, _CROSSING_M, _STOP_M = 8.0, (9.0, 12.0), 13.0
_LIMIT_MPS, _COMFORTABLE_MPS2 = 13.9, 2.0
#: Lights along x begin with green, those along y follow; pedestrians have green while the street that they cross has
#: red.
_ALONG_X = (("green", 12.0), ("yellow", 3.0), ("red", 19.0))
_ALONG_Y = (("red", 17.0), ("green", 12.0), ("yellow", 3.0), ("red", 2.0))
_OVER_X = (("red", 17.0), ("green", 8.0), ("red", 9.0))
_OVER_Y = (("green", 8.0), ("red", 26.0))

Places = Mapping[str, tuple[float, float]]


def grid(name: str, places: Places, streets: Sequence[tuple[str, str]]) -> RoadMap:
    """Return a map of places joined by streets along x or y."""
    arms = {place: _arms(place, streets) for place in places}
    ways = [way for a, b in streets for way in ((a, b), (b, a))]
    lanes = [_street(places, arms, a, b) for a, b in ways]
    named = {lane.name: lane for lane in lanes}
    turns = [_turn(named, a, b, c) for a, b in ways for c in arms[b] if c != a]
    pavements = [_pavement(lane) for lane in lanes]
    crossings, signals = list[Crossing](), list[TrafficLight]()
    for place in places:
        if len(arms[place]) >= 3:
            for arm in arms[place]:
                crossing, lights = _lit(named[f"{arm}_{place}"], place, arm)
                crossings.append(crossing)
                signals += lights
    return finished(name, [*lanes, *turns, *pavements], crossings, signals)


def _arms(place: str, streets: Sequence[tuple[str, str]]) -> list[str]:
    return [b if a == place else a for a, b in streets if place in (a, b)]


def _street(places: Places, arms: Mapping[str, Sequence[str]], a: str, b: str) -> Lane:
    """Return the lane from the box of one place to that of another."""
    (xa, ya), (xb, yb) = places[a], places[b]
    yaw, length = atan2(yb - ya, xb - xa), hypot(xb - xa, yb - ya)
    begin, end = (_BOX_M if len(arms[place]) > 1 else 0.0 for place in (a, b))
    middle = course(Pose(xa, ya, yaw), [(length, 0.0)])
    first, last = along(middle, begin, -WIDTH_M / 2.0), along(middle, length - end, -WIDTH_M / 2.0)
    line = ((first.x_m, first.y_m), (last.x_m, last.y_m))
    return Lane(f"{a}_{b}", line, WIDTH_M, _LIMIT_MPS, next=tuple(f"{a}_{b}_{c}" for c in arms[b] if c != a))


def _turn(named: Mapping[str, Lane], a: str, b: str, c: str) -> Lane:
    """Return the lane over a place: straight, or a quarter of a circle."""
    before, after = named[f"{a}_{b}"], named[f"{b}_{c}"]
    begin, end = before.pose_at(before.length_m), after.pose_at(0.0)
    turn = round(sin(end.yaw_rad - begin.yaw_rad))
    radius = _BOX_M + turn * WIDTH_M / 2.0
    legs = [(radius * pi / 2.0, turn / radius)] if turn else [(2.0 * _BOX_M, 0.0)]
    limit = float(np.sqrt(_COMFORTABLE_MPS2 * radius)) if turn else _LIMIT_MPS
    return Lane(f"{a}_{b}_{c}", outline(course(begin, legs)), WIDTH_M, limit, next=(after.name,))


def _pavement(lane: Lane) -> Lane:
    right = WIDTH_M / 2.0 + GUTTER_M + PAVEMENT_M / 2.0
    return Lane(f"pavement_{lane.name}", outline(parallel_line(lane.line_m, -right)), PAVEMENT_M, 3.0, on_road=False)


def _lit(lane: Lane, place: str, arm: str) -> tuple[Crossing, tuple[TrafficLight, TrafficLight]]:
    """Return the crossing of one arm of a place, and the lights for incoming vehicles and for pedestrians."""
    end, line = lane.length_m, lane.line_m
    of_box = end + _BOX_M
    # The crossing lies before the lane's end; the centre of the street is to the lane's left.
    begin, stop = of_box - _CROSSING_M[1], of_box - _STOP_M
    left = WIDTH_M / 2.0 + _KERB_M
    right = WIDTH_M / 2.0 + GUTTER_M
    outline_m = across(line, begin, of_box - _CROSSING_M[0], right, left)
    post = along(line, stop + 0.5, -right - 0.5)
    walkers = along(line, of_box - sum(_CROSSING_M) / 2.0 - 2.0, left + 0.5)
    is_x = abs(sin(post.yaw_rad)) < 0.5
    walk = f"walk_{place}_{arm}"
    lights = (
        TrafficLight(f"light_{lane.name}", post, _ALONG_X if is_x else _ALONG_Y, lane.name, stop),
        TrafficLight(walk, Pose(walkers.x_m, walkers.y_m, walkers.yaw_rad + pi / 2.0), _OVER_X if is_x else _OVER_Y),
    )
    return Crossing(f"crossing_{place}_{arm}", outline_m, walk), lights
