# SPDX-License-Identifier: Apache-2.0
"""The ways of actors: straight from waypoint to waypoint, all actors' in one set of arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.scenario import Actor

Floats = npt.NDArray[np.float64]

STRAIGHT_ON_M = 5000.0
"""How far somebody goes who has no waypoints: farther than any map."""
_LEAST_M = 1e-6


class Paths:
    """Ways of N actors of at most K pieces each; who has fewer has pieces of no length at the end.

    Attributes:
        begin_m: (N, K, 2) where each piece begins. along: (N, K, 2) its direction, of length 1.
        station_m: (N, K) where it begins, along the way. length_m, yaw_rad: (N, K). speed_mps: (N, K) wanted on it.
        end_m: (N,) how long the way is.
    """

    def __init__(self, actors: Sequence[Actor]) -> None:
        ways = [_way(actor) for actor in actors]
        count, most = len(actors), max([1, *(len(speeds) for _, speeds in ways)])
        self.begin_m, self.along = np.zeros((count, most, 2)), np.zeros((count, most, 2))
        self.station_m, self.length_m = np.full((count, most), np.inf), np.zeros((count, most))
        self.speed_mps, self.yaw_rad = np.zeros((count, most)), np.zeros((count, most))
        self.end_m = np.zeros(count)
        for i, (points, speeds) in enumerate(ways):
            pieces, n = np.diff(points, axis=0), len(speeds)
            lengths = np.linalg.norm(pieces, axis=1)
            self.begin_m[i] = points[-1]
            self.begin_m[i, :n] = points[:-1]
            self.along[i, :n] = pieces / lengths[:, None]
            self.station_m[i, :n] = np.concatenate([[0.0], np.cumsum(lengths)[:-1]])
            self.length_m[i, :n], self.speed_mps[i, :n] = lengths, speeds
            self.yaw_rad[i, :n] = np.arctan2(pieces[:, 1], pieces[:, 0])
            self.end_m[i] = lengths.sum() if n else 0.0
        self._rows = np.arange(count)

    def piece_at(self, station_m: Floats) -> npt.NDArray[np.intp]:
        """Return (N,) which piece each actor is on."""
        return np.asarray((station_m[:, None] >= self.station_m[:, 1:]).sum(axis=1))

    def place_at(self, station_m: Floats, piece: npt.NDArray[np.intp]) -> Floats:
        """Return (N, 2) where each actor is."""
        rows = self._rows
        onward = np.where(self.end_m > 0.0, station_m - self.station_m[rows, piece], 0.0)
        return np.asarray(self.begin_m[rows, piece] + onward[:, None] * self.along[rows, piece])

    def before(
        self, who: npt.NDArray[np.intp], station_m: Floats, places_m: Floats
    ) -> tuple[Floats, Floats, npt.NDArray[np.intp]]:
        """Return where on what is left of somebody's way it passes places, how far beside them, and on which piece.

        Args:
            who: (D,) rows of actors. station_m: (D,) how far they have come. places_m: (M, 2).

        Returns:
            (D, M) each: how far from where they are, the distance there, the piece.
        """
        left = np.maximum(station_m[:, None] - self.station_m[who], 0.0)
        here = places_m[None, :, None] - self.begin_m[who][:, None]
        onward = np.einsum("dmki,dki->dmk", here, self.along[who])
        onward = np.clip(onward, left[:, None], np.maximum(left, self.length_m[who])[:, None])
        away = here - onward[..., None] * self.along[who][:, None]
        beside = np.where((left < self.length_m[who])[:, None], np.hypot(away[..., 0], away[..., 1]), np.inf)
        piece = beside.argmin(axis=2)
        rows = np.arange(len(who))[:, None]
        ahead = np.take_along_axis(onward, piece[..., None], 2)[..., 0] + self.station_m[who][rows, piece]
        nearest = np.take_along_axis(beside, piece[..., None], 2)[..., 0]
        return ahead - station_m[:, None], nearest, piece


def _way(actor: Actor) -> tuple[Floats, Floats]:
    """Return (k + 1, 2) the points of a way and (k,) the speed to each but the first; k is 0 for who never moves."""
    start = (actor.start.x_m, actor.start.y_m)
    if actor.waypoints:
        points = np.array([start, *((w.x_m, w.y_m) for w in actor.waypoints)])
        speeds = np.array([w.speed_mps for w in actor.waypoints])
        moves = np.linalg.norm(np.diff(points, axis=0), axis=1) > _LEAST_M
        return points[np.concatenate([[True], moves])], speeds[moves]
    if actor.speed_mps > 0.0:
        ahead = STRAIGHT_ON_M * np.array([np.cos(actor.start.yaw_rad), np.sin(actor.start.yaw_rad)])
        return np.array([start, start + ahead]), np.array([actor.speed_mps])
    return np.array([start]), np.empty(0)


def line_of(actor: Actor) -> shapely.LineString | None:
    """Return an actor's way as a line, None for who never moves."""
    points, speeds = _way(actor)
    return shapely.LineString(points) if len(speeds) else None


def stops_on_foot(actor: Actor, road: RoadMap) -> list[tuple[float, str]]:
    """Return where the way of somebody on foot enters a crossing that has a light, along the way, and which light."""
    line, stops = line_of(actor), []
    for crossing in road.crossings:
        if line is None or not crossing.signal or not line.intersects(shapely.Polygon(crossing.outline_m)):
            continue
        shared = line.intersection(shapely.Polygon(crossing.outline_m))
        for part in shapely.get_parts(shared):
            station = min(line.project(shapely.Point(xy)) for xy in part.coords)
            stops.append((station, crossing.signal))
    return stops


def stops_on_wheels(actor: Actor, road: RoadMap, beside_m: float = 1.5) -> list[tuple[float, str]]:
    """Return where the way of a vehicle passes a stop line in its direction, along the way, and the light there."""
    line, stops = line_of(actor), []
    for signal in road.signals:
        if line is None or not signal.lane:
            continue
        stop = road.lanes[signal.lane].pose_at(signal.stop_m)
        station = line.project(shapely.Point(stop.x_m, stop.y_m))
        near, ahead = line.interpolate(station), line.interpolate(station + 0.5)
        if near.distance(shapely.Point(stop.x_m, stop.y_m)) > beside_m:
            continue
        along = (ahead.x - near.x) * np.cos(stop.yaw_rad) + (ahead.y - near.y) * np.sin(stop.yaw_rad)
        if along > 0.35:
            stops.append((station, signal.name))
    return stops
