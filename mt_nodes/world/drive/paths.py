# SPDX-License-Identifier: Apache-2.0
"""Ways of actors: polylines of waypoints, all in one set of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.base.arrays import Floats
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.scenario import Actor

STRAIGHT_ON_M = 5000.0
"""How far somebody goes who has no waypoints: farther than any map."""
_LEAST_M = 1e-6
#: How far from a vehicle's way a stop line may be that it stops at.
_REACH_M = 1.5


class Pieces(NamedTuple):
    """A piece of each of N ways; see :class:`Paths`."""

    begin_m: Floats
    along: Floats
    station_m: Floats
    yaw_rad: Floats
    speed_mps: Floats


class Paths:
    """Ways of N actors with at most K pieces each; shorter ones are padded with pieces of length 0.

    Attributes:
        begin_m: (N, K, 2) start of each piece. along: (N, K, 2) its unit direction.
        station_m: (N, K) its start, along the way. length_m, yaw_rad: (N, K). speed_mps: (N, K) desired speed.
        end_m: (N,) length of the way.
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
        self._rows, self._moves = np.arange(count), self.end_m > 0.0
        self._last: tuple[bytes, Pieces] | None = None

    def piece_at(self, station_m: Floats) -> npt.NDArray[np.intp]:
        """Return (N,) the piece that each actor is on."""
        return np.asarray((station_m[:, None] >= self.station_m[:, 1:]).sum(axis=1))

    def pieces(self, piece: npt.NDArray[np.intp]) -> Pieces:
        """Return the pieces (N,) that the actors are on; the last ones are cached: they change seldom."""
        key = piece.tobytes()
        if self._last is None or self._last[0] != key:
            tables = (self.begin_m, self.along, self.station_m, self.yaw_rad, self.speed_mps)
            self._last = key, Pieces(*(table[self._rows, piece] for table in tables))
        return self._last[1]

    def place_at(self, station_m: Floats, piece: npt.NDArray[np.intp]) -> Floats:
        """Return (N, 2) the actors' places."""
        on = self.pieces(piece)
        onward = np.where(self._moves, station_m - on.station_m, 0.0)
        return np.asarray(on.begin_m + onward[:, None] * on.along)

    def before(
        self, actors: npt.NDArray[np.intp], station_m: Floats, places_m: Floats
    ) -> tuple[Floats, Floats, npt.NDArray[np.intp]]:
        """Return where actors' remaining ways pass places, at which distance, and on which piece.

        Args:
            actors: (D,) rows of actors. station_m: (D,) distances covered. places_m: (M, 2).

        Returns:
            (D, M) each: distance ahead, lateral distance there, the piece.
        """
        left = np.maximum(station_m[:, None] - self.station_m[actors], 0.0)
        offset_m = places_m[None, :, None] - self.begin_m[actors][:, None]
        onward = np.einsum("dmki,dki->dmk", offset_m, self.along[actors])
        onward = np.clip(onward, left[:, None], np.maximum(left, self.length_m[actors])[:, None])
        away = offset_m - onward[..., None] * self.along[actors][:, None]
        lateral = np.where((left < self.length_m[actors])[:, None], np.hypot(away[..., 0], away[..., 1]), np.inf)
        piece = lateral.argmin(axis=2)
        rows = np.arange(len(actors))[:, None]
        ahead = np.take_along_axis(onward, piece[..., None], 2)[..., 0] + self.station_m[actors][rows, piece]
        nearest = np.take_along_axis(lateral, piece[..., None], 2)[..., 0]
        return ahead - station_m[:, None], nearest, piece


def _way(actor: Actor) -> tuple[Floats, Floats]:
    """Return (k + 1, 2) the points of a way and (k,) the speed to each but the first; k is 0 without motion."""
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
    """Return an actor's way as a line, None for one that never moves."""
    points, speeds = _way(actor)
    return shapely.LineString(points) if len(speeds) else None


def stops_on_foot(actor: Actor, road: RoadMap) -> list[tuple[float, str]]:
    """Return where a pedestrian's way enters a crossing with a light, along the way, and that light."""
    line, stops = line_of(actor), []
    for crossing in road.crossings:
        if line is None or not crossing.signal or not line.intersects(shapely.Polygon(crossing.outline_m)):
            continue
        shared = line.intersection(shapely.Polygon(crossing.outline_m))
        for part in shapely.get_parts(shared):
            station = min(line.project(shapely.Point(xy)) for xy in part.coords)
            stops.append((station, crossing.signal))
    return stops


def stops_on_wheels(actor: Actor, road: RoadMap) -> list[tuple[float, str]]:
    """Return where a vehicle's way passes a stop line in its direction, along the way, and its light."""
    line, stops = line_of(actor), []
    for signal in road.signals:
        if line is None or not signal.lane:
            continue
        stop = road.lanes[signal.lane].pose_at(signal.stop_m)
        station = line.project(shapely.Point(stop.x_m, stop.y_m))
        near, ahead = line.interpolate(station), line.interpolate(station + 0.5)
        if near.distance(shapely.Point(stop.x_m, stop.y_m)) > _REACH_M:
            continue
        along = (ahead.x - near.x) * np.cos(stop.yaw_rad) + (ahead.y - near.y) * np.sin(stop.yaw_rad)
        if along > 0.35:
            stops.append((station, signal.name))
    return stops
