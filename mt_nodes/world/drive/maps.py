# SPDX-License-Identifier: Apache-2.0
"""The maps that we ship. Traffic keeps to the right.

==============  ======================================================================================================
straight        600 m east, one way: ``lane_1``, ``lane_2`` to its left; parking at the right; crossings at 150, 300 m
two_way         600 m east: ``lane_1`` east, ``lane_2`` west; parking on both sides; crossings at 150 and 300 m
bend            two ways through a bend of 60 m to the left and one of 40 m to the right
junction        ``middle`` with a street to ``west``, ``east``, ``north``, ``south`` each: lanes ``west_middle``,
                ``west_middle_north`` (left turn from west), ``middle_north`` …; lights, crossings, stop lines
town            streets between ``a b c`` (north) and ``d e f`` (south), 100 m apart: a lap can be driven
town_N          the same streets, 90 to 140 m apart, drawn by the number N
san_francisco   500 m of a one-way street around the coordinates of the printed example of moral testing: made up,
                but those places lie on it as the example has them, two people abreast before the ego, a lane each
bridge          600 m east, one way, fast: ``lane_1``, ``lane_2`` to its left, of 3 m each; nothing beside them can be
                driven on; crossings at 150 and 300 m
==============  ======================================================================================================

A new map is an entry of ``MAPS`` and a row above. A name that ends in ``_mirrored`` is that of a map mirrored at the x
axis, so that traffic keeps to the left.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import pi

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.world.drive.grid_maps import grid
from mt_nodes.world.drive.map_mirror import MIRRORED, mirrored
from mt_nodes.world.drive.map_parts import GUTTER_M, PAVEMENT_M, across, along, course, finished, outline, parallel_line
from mt_nodes.world.drive.road_map import Crossing, Lane, RoadMap, Sign, TrafficLight
from mt_nodes.world.drive.scenario import Pose

#: Suffixes of users' maps: OpenDRIVE and Lanelet2.
MAP_FILES = (".xodr", ".osm")
_PARKING_M, _CROSSING_M = 2.2, 4.0
_DRIVING = (("green", 12.0), ("yellow", 3.0), ("red", 15.0))
_WALKING = (("red", 17.0), ("green", 8.0), ("red", 5.0))
_LIMIT_MPS = 13.9
#: Narrow lanes, so that a car between two parapets cannot pass someone standing in each lane; 130 km/h.
_BRIDGE_LANE_M, _BRIDGE_LIMIT_MPS = 3.0, 36.1
_TOWN, _APART_M = re.compile(r"town_(\d{1,6})"), (90.0, 140.0)
#: Heading and beginning of the stand-in for San Francisco: the ego of the example, (-228.81, 268.97), is 150 m along it
#: and 0.55 m to the left of lane_2's middle; across it at 27.4 m ahead are (-249.22, 250.08) and (-246.10, 247.71).
_SAN_FRANCISCO = Pose(-141.461, 390.987, -2.22042)


def load_map(name: str) -> RoadMap:
    """Return a map of :data:`MAPS` by name, or that of a user's file (:mod:`mt_nodes.world.drive.map_files`), cached.

    Raises UsageError: there is none, or the file cannot be read.
    """
    plain = name.removesuffix(MIRRORED)
    if is_map_file(plain):
        from mt_nodes.world.drive.map_files import load_map_file  # SciPy is for those who have a map of their own

        road = load_map_file(plain)
        return road if plain == name else mirrored(road)
    if not is_map(plain):
        raise UsageError(f"got map '{name}', which does not exist{suggest(plain, MAPS)}")
    return _load(plain, name != plain)


def is_map(name: str) -> bool:
    """Whether one of our own maps has this name."""
    return name in MAPS or _TOWN.fullmatch(name) is not None


def is_map_file(name: str) -> bool:
    """Whether a map's name is the path of a user's file."""
    return name.partition("@")[0].endswith(MAP_FILES)


@lru_cache
def _load(name: str, turned: bool) -> RoadMap:
    drawn = _TOWN.fullmatch(name)
    plain = _drawn_town(name, int(drawn[1])) if drawn else MAPS[name]()
    return mirrored(plain) if turned else plain


def _drawn_town(name: str, number: int) -> RoadMap:
    """Return the town with its streets elsewhere, at whole metres."""
    first, second, across_m = np.random.default_rng(number).uniform(*_APART_M, 3).round().tolist()
    return _town(name, (0.0, first, first + second), across_m)


def _town(name: str, x_m: Sequence[float], y_m: float) -> RoadMap:
    north, south = ({place: (x, y) for place, x in zip(row, x_m, strict=True)} for row, y in (("abc", y_m), ("def", 0)))
    streets = [("a", "b"), ("b", "c"), ("d", "e"), ("e", "f"), ("a", "d"), ("b", "e"), ("c", "f")]
    return grid(name, north | south, streets)


def _one_way(
    name: str,
    begin: Pose,
    length_m: float,
    width_m: float,
    at_m: Sequence[float],
    *,
    parking_m: float = _PARKING_M,
    gutter_m: float = GUTTER_M,
    limit_mps: float = _LIMIT_MPS,
    sign: str = "speed_limit_us",
) -> RoadMap:
    """Return a straight street of two lanes in one direction; the second of its crossings has lights."""
    line = course(begin, [(length_m, 0.0)])
    right, left = width_m / 2.0 + parking_m + gutter_m, 1.5 * width_m + gutter_m
    lanes = [
        Lane("lane_1", outline(line), width_m, limit_mps, left="lane_2"),
        Lane("lane_2", outline(parallel_line(line, width_m)), width_m, limit_mps, right="lane_1"),
        _pavement("pavement_right", parallel_line(line, -right - PAVEMENT_M / 2.0)),
        _pavement("pavement_left", parallel_line(line, left + PAVEMENT_M / 2.0)),
    ]
    posts = (-right - 0.5, left + 0.5 - width_m)
    crossings, signals = _crossed(line, right, left, at_m, tuple(zip(lanes[:2], posts, strict=True)))
    signs = [Sign(sign, along(line, 30.0, -right - 0.5))] if sign else []
    parking = [(parallel_line(line, -(width_m + parking_m) / 2.0), parking_m)] if parking_m else []
    return finished(name, lanes, crossings, signals, signs, parking, gutter_m)


def _two_way(name: str, legs: Sequence[tuple[float, float]], at_m: Sequence[float], limit_mps: float) -> RoadMap:
    """Return a street with a lane each way; the second of its crossings has lights."""
    line, width = course(Pose(0.0, 0.0), legs), 3.5
    right = width / 2.0 + _PARKING_M + GUTTER_M
    left = right + width
    lanes = [
        Lane("lane_1", outline(line), width, limit_mps),
        Lane("lane_2", outline(parallel_line(line, width)[::-1]), width, limit_mps),
        _pavement("pavement_right", parallel_line(line, -right - PAVEMENT_M / 2.0)),
        _pavement("pavement_left", parallel_line(line, left + PAVEMENT_M / 2.0)[::-1]),
    ]
    lit = tuple((lane, -right - 0.5) for lane in lanes[:2])
    crossings, signals = _crossed(line, right, left, at_m, lit)
    signs = tuple(Sign("speed_limit", along(lane.line_m, 30.0, -right - 0.5)) for lane in lanes[:2])
    strips = (parallel_line(line, -(width + _PARKING_M) / 2.0), parallel_line(line, 1.5 * width + _PARKING_M / 2.0))
    return finished(name, lanes, crossings, signals, signs, [(strip, _PARKING_M) for strip in strips])


def _pavement(name: str, line_m: Floats) -> Lane:
    return Lane(name, outline(line_m), PAVEMENT_M, 3.0, on_road=False)


def _crossed(
    line_m: Floats, right_m: float, left_m: float, at_m: Sequence[float], lit: Sequence[tuple[Lane, float]]
) -> tuple[list[Crossing], list[TrafficLight]]:
    """Return crossings at stations of a line, from kerb to kerb, and the lights of the second.

    ``lit``: lanes that get a light, and how far to the left of them its post stands.
    """
    half = _CROSSING_M / 2.0
    areas = [across(line_m, station - half, station + half, right_m, left_m) for station in at_m]
    crossings = [Crossing(f"crossing_{i}", area, "walk" if i == 2 else "") for i, area in enumerate(areas, 1)]
    if len(at_m) < 2:
        return crossings, []
    post = along(line_m, at_m[1] + half + 0.3, left_m + 0.5)
    signals = [TrafficLight("walk", Pose(post.x_m, post.y_m, post.yaw_rad + pi / 2.0), _WALKING)]
    middle = along(line_m, at_m[1])
    for number, (lane, side_m) in enumerate(lit, 1):
        stop = lane.station_of(middle.x_m, middle.y_m)[0] - half - 1.0
        signals.append(
            TrafficLight(f"light_{number}", along(lane.line_m, stop + 0.5, side_m), _DRIVING, lane.name, stop)
        )
    return crossings, signals


_QUARTER = pi / 2.0
MAPS: dict[str, Callable[[], RoadMap]] = {
    "straight": lambda: _one_way("straight", Pose(0.0, 0.0), 600.0, 3.5, (150.0, 300.0)),
    "two_way": lambda: _two_way("two_way", [(600.0, 0.0)], (150.0, 300.0), 13.9),
    "bend": lambda: _two_way(
        "bend",
        [(120.0, 0.0), (60.0 * _QUARTER, 1 / 60.0), (60.0, 0.0), (40.0 * _QUARTER, -1 / 40.0), (120.0, 0.0)],
        (80.0,),
        9.0,
    ),
    "junction": lambda: grid(
        "junction",
        {"middle": (0.0, 0.0), "west": (-150.0, 0.0), "east": (150.0, 0.0), "north": (0.0, 150.0), "south": (0, -150)},
        [("west", "middle"), ("south", "middle"), ("east", "middle"), ("north", "middle")],
    ),
    "town": lambda: _town("town", (0.0, 100.0, 200.0), 100.0),
    "san_francisco": lambda: _one_way("san_francisco", _SAN_FRANCISCO, 500.0, 3.7, (177.4,)),
    "bridge": lambda: _one_way(
        *("bridge", Pose(0.0, 0.0), 600.0, _BRIDGE_LANE_M, (150.0, 300.0)),
        parking_m=0.0,
        gutter_m=0.0,
        limit_mps=_BRIDGE_LIMIT_MPS,
        sign="",
    ),
}
