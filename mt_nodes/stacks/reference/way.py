# SPDX-License-Identifier: Apache-2.0
"""The path ahead as a line: stations and offsets along it, its curvature, and its allowed speed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.data.outputs import Path

#: Bends are measured between the directions so far before and behind a place.
_CHORD_M = 2.0


@dataclass(frozen=True, eq=False)
class LanePath:
    """The middle of a lane, in the frame of the route.

    ``points_m``: (K, 2), no two in a row alike. ``limit_mps``: (K,) speed limits, infinite where none is told.
    """

    points_m: Floats
    limit_mps: Floats

    @classmethod
    def of(cls, route: Path) -> LanePath | None:
        """Return the path of a route, None if it has fewer than two finite places."""
        known = np.isfinite(route.pose[:, :2]).all(axis=1)
        points, limits = route.pose[known, :2], route.speed_mps[known]
        fresh = np.concatenate([[True], np.linalg.norm(np.diff(points, axis=0), axis=1) > 1e-6])[: len(points)]
        if fresh.sum() < 2:
            return None
        return cls(points[fresh], np.where(np.isfinite(limits[fresh]), limits[fresh], np.inf))

    @cached_property
    def _steps(self) -> Floats:
        return np.asarray(np.diff(self.points_m, axis=0))

    @cached_property
    def _lengths(self) -> Floats:
        return np.asarray(np.hypot(self._steps[:, 0], self._steps[:, 1]))

    @cached_property
    def stations_m(self) -> Floats:
        """Distance (K,) of each point from the first, along the path."""
        return np.concatenate([[0.0], np.cumsum(self._lengths)])

    @cached_property
    def _headings(self) -> tuple[Floats, Floats]:
        """Stations of the middles of the segments, and their directions, unwrapped."""
        middles = (self.stations_m[1:] + self.stations_m[:-1]) / 2.0
        return middles, np.unwrap(np.arctan2(self._steps[:, 1], self._steps[:, 0]))

    def heading_at(self, station_m: Floats) -> Floats:
        """Return the direction of the path at stations, in radians, unwrapped."""
        return np.asarray(np.interp(station_m, *self._headings))

    @cached_property
    def curvature_1pm(self) -> Floats:
        """Curvature (K,) at each point, positive to the left."""
        turn = self.heading_at(self.stations_m + _CHORD_M) - self.heading_at(self.stations_m - _CHORD_M)
        return np.asarray(turn / (2.0 * _CHORD_M))

    def place(self, places_m: Floats) -> tuple[Floats, Floats]:
        """Return station and offset to the left of places (N, 2); the path continues straight beyond its ends."""
        (begin_x, begin_y), (ahead_x, ahead_y), squares, low, high = self._pieces
        # Column by column, and without einsum: a path is short, and asked for one place at a time.
        x, y = places_m[:, 0, None] - begin_x, places_m[:, 1, None] - begin_y
        share = np.clip((x * ahead_x + y * ahead_y) / squares, low, high)
        x -= share * ahead_x
        y -= share * ahead_y
        nearest = np.argmin(x * x + y * y, axis=1)
        rows, length = np.arange(len(places_m)), self._lengths[nearest]
        left = (ahead_x[nearest] * y[rows, nearest] - ahead_y[nearest] * x[rows, nearest]) / length
        return self.stations_m[nearest] + share[rows, nearest] * length, left

    @cached_property
    def _pieces(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Begin and step (2, K - 1) of the pieces, their squared lengths, and the shares at which they end."""
        low, high = np.zeros(len(self._steps)), np.ones(len(self._steps))
        low[0], high[-1] = -np.inf, np.inf
        begin, ahead = (np.ascontiguousarray(columns.T) for columns in (self.points_m[:-1], self._steps))
        return begin, ahead, self._lengths**2, low, high

    def at(self, station_m: npt.ArrayLike, left_m: npt.ArrayLike = 0.0) -> Floats:
        """Return places (n, 2) at stations and offsets to the left; the path continues straight beyond its ends."""
        stations = np.atleast_1d(np.asarray(station_m, dtype=np.float64))
        piece = np.clip(np.searchsorted(self.stations_m, stations, side="right") - 1, 0, len(self._steps) - 1)
        share = (stations - self.stations_m[piece]) / self._lengths[piece]
        heading = self.heading_at(stations)
        aside = np.column_stack([-np.sin(heading), np.cos(heading)]) * np.reshape(left_m, (-1, 1))
        return np.asarray(self.points_m[piece] + share[:, None] * self._steps[piece] + aside)

    def allowed_mps(self, station_m: float, across_mps2: float, braking_mps2: float) -> float:
        """Return the speed at a station from which limits, bends and the end of the path can be respected.

        ``across_mps2``: most acceleration across the way, v² κ. ``braking_mps2``: by which one slows down for what
        comes: v² falls by 2 b s over a distance s.
        """
        bend = np.sqrt(across_mps2 / np.maximum(np.abs(self.curvature_1pm), 1e-6))
        speed = np.minimum(bend, self.limit_mps)
        speed[-1] = 0.0
        ahead = self.stations_m - station_m
        relevant = ahead > -1.0
        if not relevant.any():
            return 0.0
        later = speed[relevant] ** 2 + 2.0 * braking_mps2 * np.maximum(ahead[relevant], 0.0)
        return float(np.sqrt(later.min()))
