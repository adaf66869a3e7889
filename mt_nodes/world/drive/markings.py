# SPDX-License-Identifier: Apache-2.0
"""Road markings: lane lines, stop lines, crossings.

As in German towns, lines are 0.12 m wide, dashes 3 m long with gaps of 6 m, and stripes of crossings and the gaps
between them 0.5 m wide ("Fahrbahnmarkierung", wiki of Colliseum, after the RMS). Stop lines of 0.5 m are assumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import shapely
from shapely.ops import substring

from mt_nodes.base.arrays import Floats
from mt_nodes.world.drive.road_map import Crossing, Lane, RoadMap, TrafficLight
from mt_nodes.world.drive.scenario import Pose

_LINE_M, _DASH_M, _GAP_M, _STRIPE_M, _STOP_M = 0.12, 3.0, 6.0, 0.5, 0.5
#: Lanes with edges within the first distance share them; an edge this far within another lane is none.
_NEAR_M = 0.3
#: Shorter pieces of lines are left out.
_LEAST_M = 1.0


def strip(lane: Lane, half_m: float) -> Any:
    """Return the area within a distance of a lane's centre line, a shapely polygon with straight ends."""
    return shapely.LineString(lane.line_m).buffer(half_m, cap_style="flat")


def markings(road: RoadMap) -> Iterator[Floats]:
    """Yield the outlines (K, 2) in ``map`` of all markings."""
    lanes = [lane for lane in road.lanes.values() if lane.on_road]
    for lane in lanes:
        yield from _lines(lane, [other for other in lanes if other is not lane])
    for signal in road.signals:
        if signal.lane:
            yield _stop_line(road.lanes[signal.lane], signal)
    for crossing in road.crossings:
        yield from _stripes(crossing, road)


def _lines(lane: Lane, others: list[Lane]) -> Iterator[Floats]:
    """Yield the lines at a lane's edges: dashed next to another lane, drawn by one of the two only."""
    middle = shapely.LineString(lane.line_m)
    near = [other for other in others if strip(other, other.width_m).distance(middle) < lane.width_m]
    within = shapely.union_all([strip(other, other.width_m / 2.0 - _NEAR_M) for other in near])
    before = [other for other in near if other.name < lane.name]
    shared, drawn = (
        shapely.union_all([strip(other, other.width_m / 2.0 + _NEAR_M) for other in some]) for some in (near, before)
    )
    for left_m in (lane.width_m / 2.0, -lane.width_m / 2.0):
        edge = middle.offset_curve(left_m).difference(within)
        yield from _drawn(edge.difference(shared), dashed=False)
        yield from _drawn(edge.intersection(shared).difference(drawn), dashed=True)


def _drawn(lines: Any, *, dashed: bool) -> Iterator[Floats]:
    whole = shapely.line_merge(lines) if lines.geom_type == "MultiLineString" else lines
    for line in shapely.get_parts(whole):
        if line.geom_type != "LineString" or line.length < _LEAST_M:
            continue
        every_m = _DASH_M + _GAP_M if dashed else line.length
        for begin_m in np.arange(0.0, line.length, every_m):
            part = substring(line, begin_m, begin_m + (_DASH_M if dashed else line.length))
            if part.length > _LINE_M:
                yield _outline(part.buffer(_LINE_M / 2.0, cap_style="flat"))


def _stop_line(lane: Lane, signal: TrafficLight) -> Floats:
    pose = lane.pose_at(signal.stop_m)
    return _outline(_band(pose, -_STOP_M, 0.0, lane.width_m / 2.0 - _LINE_M))


def _stripes(crossing: Crossing, road: RoadMap) -> Iterator[Floats]:
    """Yield the stripes of a crossing, along the road."""
    outline = shapely.Polygon(crossing.outline_m)
    middle = outline.centroid
    yaw = _along(outline, road)
    left = np.array([-np.sin(yaw), np.cos(yaw)])
    across = (np.asarray(crossing.outline_m) - (middle.x, middle.y)) @ left
    reach_m = float(np.abs(outline.bounds).max() + outline.length)
    for low_m in np.arange(across.min() + _STRIPE_M / 2.0, across.max() - _STRIPE_M, 2.0 * _STRIPE_M):
        x, y = np.array([middle.x, middle.y]) + (low_m + _STRIPE_M / 2.0) * left
        stripe = outline.intersection(_band(Pose(float(x), float(y), yaw), -reach_m, reach_m, _STRIPE_M / 2.0))
        if stripe.geom_type == "Polygon" and not stripe.is_empty:
            yield _outline(stripe)


def _along(outline: Any, road: RoadMap) -> float:
    """Return the direction of the side of a crossing that is most parallel to the lanes there, which may turn."""
    x, y = np.diff(shapely.get_coordinates(outline), axis=0).T
    sides = np.arctan2(y, x)
    middle = outline.centroid
    crossing = [o for o in road.lanes.values() if o.on_road and shapely.LineString(o.line_m).intersects(outline)]
    ways = np.array([o.pose_at(o.station_of(middle.x, middle.y)[0]).yaw_rad for o in crossing])
    return float(sides[np.argmax(np.abs(np.cos(sides[:, None] - ways)).sum(axis=1))])


def _band(pose: Pose, begin_m: float, end_m: float, half_m: float) -> Any:
    """Return a rectangle along a pose."""
    c, s = np.cos(pose.yaw_rad), np.sin(pose.yaw_rad)
    ends = [(pose.x_m + c * along, pose.y_m + s * along) for along in (begin_m, end_m)]
    return shapely.LineString(ends).buffer(half_m, cap_style="flat")


def _outline(polygon: Any) -> Floats:
    return np.asarray(polygon.exterior.coords)[:-1]
