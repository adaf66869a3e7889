# SPDX-License-Identifier: Apache-2.0
"""Building blocks of maps: centre lines of straights and bends, and everything derived from lanes.

Dimensions without a source are assumed: those of a usual urban street.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.base.arrays import Floats
from mt_nodes.world.drive.road_map import Building, Crossing, Lane, Outline, RoadMap, Sign, TrafficLight
from mt_nodes.world.drive.scenario import Pose

GUTTER_M, CORNER_M, MARGIN_M = 0.25, 3.0, 25.0
PAVEMENT_M = 3.0
"""Width of a lane for people on foot."""
_BEND_STEP_M = 1.0
_SETBACK_M, _HOUSE_M, _HOUSE_EVERY_M = 4.5, (16.0, 9.0), 20.0


def course(begin: Pose, legs: Sequence[tuple[float, float]]) -> Floats:
    """Return (K, 2) the points of a line from a pose: both ends of straights, one point per metre of bends.

    ``legs``: length in metres and curvature in 1/m (positive to the left) of each piece in turn.
    """
    points, x, y, yaw = [(begin.x_m, begin.y_m)], begin.x_m, begin.y_m, begin.yaw_rad
    for length, curvature in legs:
        pieces = 1 if curvature == 0.0 else max(2, int(np.ceil(length / _BEND_STEP_M)))
        step, turn = length / pieces, curvature * length / pieces
        chord = step * float(np.sinc(turn / 2.0 / np.pi))
        for _ in range(pieces):
            x += chord * float(np.cos(yaw + turn / 2.0))
            y += chord * float(np.sin(yaw + turn / 2.0))
            yaw += turn
            points.append((x, y))
    return np.array(points)


def parallel_line(line_m: Floats, left_m: float) -> Floats:
    """Return (K, 2) a line parallel to another, at a distance to its left."""
    along = np.diff(line_m, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    before, behind = np.vstack([along[:1], along]), np.vstack([along, along[-1:]])
    middle = before + behind
    # Mitre joint: as long as the offset of both pieces requires.
    scale = 2.0 / np.einsum("ij,ij->i", middle, middle)
    left = np.column_stack([-middle[:, 1], middle[:, 0]])
    return np.asarray(line_m + left_m * scale[:, None] * left)


def outline(points: npt.ArrayLike) -> Outline:
    """Return points (K, 2) as plain data."""
    return tuple((float(x), float(y)) for x, y in np.asarray(points))


def along(line_m: Floats, station_m: float, left_m: float = 0.0) -> Pose:
    """Return the pose at a place of a line; see :meth:`mt_nodes.world.drive.road_map.Lane.pose_at`."""
    return Lane("", outline(line_m)).pose_at(station_m, left_m)


def across(line_m: Floats, begin_m: float, end_m: float, right_m: float, left_m: float) -> Outline:
    """Return the rectangle between two stations of a line and two lateral offsets; counter-clockwise."""
    corners = [(begin_m, -right_m), (end_m, -right_m), (end_m, left_m), (begin_m, left_m)]
    poses = [along(line_m, station, left) for station, left in corners]
    return tuple((pose.x_m, pose.y_m) for pose in poses)


def finished(
    name: str,
    lanes: Iterable[Lane],
    crossings: Sequence[Crossing] = (),
    signals: Sequence[TrafficLight] = (),
    signs: Sequence[Sign] = (),
    parking: Sequence[tuple[Floats, float]] = (),
    gutter_m: float = GUTTER_M,
) -> RoadMap:
    """Return a map of lanes: carriageway, kerbs, ground and houses are derived.

    ``parking``: centre lines and widths of strips of the carriageway beside the lanes. ``gutter_m``: between its edge
    and its lanes.
    """
    named = {lane.name: lane for lane in lanes}
    roads = [lane for lane in named.values() if lane.on_road]
    bands = [(lane.line_m, lane.width_m) for lane in roads] + list(parking)
    paved = shapely.union_all([_band(line, width / 2.0 + gutter_m) for line, width in bands])
    plain = surfaced(name, named.values(), paved)
    houses = _houses([np.asarray(line) for line in plain.kerbs_m], plain.carriageway)
    return replace(plain, crossings=tuple(crossings), signals=tuple(signals), signs=tuple(signs), buildings=houses)


def surfaced(name: str, lanes: Iterable[Lane], paved: shapely.Geometry) -> RoadMap:
    """Return a map of lanes on a paved area: carriageway with rounded corners, kerbs and ground are derived."""
    named = {lane.name: lane for lane in lanes}
    rounded = shapely.union(paved, paved.buffer(CORNER_M).buffer(-CORNER_M)).simplify(0.03)
    surface = shapely.MultiPolygon([part for part in shapely.get_parts(rounded) if part.geom_type == "Polygon"])
    kerbs = _kerbs(surface, [lane for lane in named.values() if lane.on_road])
    ground = paved.convex_hull.buffer(MARGIN_M, join_style="mitre")
    polygons = [shapely.orient_polygons(part) for part in shapely.get_parts(surface)]
    return RoadMap(
        name=name,
        lanes=named,
        ground_m=outline(shapely.orient_polygons(ground).exterior.coords[:-1]),
        kerbs_m=tuple(outline(line) for line in kerbs),
        surface_m=tuple(tuple(outline(ring.coords) for ring in (p.exterior, *p.interiors)) for p in polygons),
    )


def _band(line_m: Floats, half_m: float) -> shapely.Polygon:
    return shapely.LineString(line_m).buffer(half_m, cap_style="flat", join_style="mitre")


def _kerbs(surface: shapely.Geometry, lanes: Sequence[Lane]) -> list[Floats]:
    """Return the edges of the carriageway, with the carriageway to their left, except across the ends of roads."""
    led_to = {name for lane in lanes for name in lane.next}
    begins = [lane.pose_at(0.0) for lane in lanes if lane.name not in led_to]
    ends = [lane.pose_at(lane.length_m) for lane in lanes if not lane.next]
    half = 8.0
    caps = [
        shapely.LineString([(p.x_m - half * s, p.y_m + half * c), (p.x_m + half * s, p.y_m - half * c)]).buffer(0.05)
        for p in (*begins, *ends)
        for s, c in [(np.sin(p.yaw_rad), np.cos(p.yaw_rad))]
    ]
    edges = shapely.orient_polygons(surface).boundary.difference(shapely.union_all(caps))
    lines = shapely.line_merge(edges, directed=True)
    return [np.asarray(line.coords) for line in shapely.get_parts(lines)]


def _houses(kerbs: Sequence[Floats], surface: shapely.Geometry) -> tuple[Building, ...]:
    """Return houses along the kerbs where there is room."""
    length, depth = _HOUSE_M
    free_of, houses = surface.buffer(_SETBACK_M - 0.5), list[shapely.Polygon]()
    for kerb in kerbs:
        stations = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(kerb, axis=0), axis=1))])
        for station in np.arange(_HOUSE_EVERY_M / 2.0, stations[-1], _HOUSE_EVERY_M):
            pose = along(kerb, float(station), -(_SETBACK_M + depth / 2.0))
            house = rectangle(pose, length, depth)
            if not any(house.intersects(other) for other in (free_of, *houses)):
                houses.append(house)
    # Multiples of the golden ratio: heights of neighbours differ.
    heights = [7.0 + 7.0 * ((0.6180339887 * i) % 1.0) for i in range(len(houses))]
    corners = [outline(shapely.orient_polygons(house).exterior.coords[:-1]) for house in houses]
    return tuple(Building(*both) for both in zip(corners, heights, strict=True))


def rectangle(middle: Pose, length_m: float, width_m: float) -> shapely.Polygon:
    """Return a rectangle around a pose."""
    c, s = np.cos(middle.yaw_rad), np.sin(middle.yaw_rad)
    corners = np.array([(1, -1), (1, 1), (-1, 1), (-1, -1)]) * (length_m / 2.0, width_m / 2.0)
    return shapely.Polygon(corners @ np.array([[c, s], [-s, c]]) + (middle.x_m, middle.y_m))
