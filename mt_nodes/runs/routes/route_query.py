# SPDX-License-Identifier: Apache-2.0
"""A question to a route planner, and its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats

#: A route may begin and end this far from where it should: a planner moves both onto its own lanes.
END_M = 10.0


@dataclass(frozen=True)
class RoutePlace:
    """A pose on the ground, in metres and radians of the map's frame."""

    x_m: float
    y_m: float
    yaw_rad: float = 0.0

    @property
    def xy_m(self) -> tuple[float, float]:
        """Its position."""
        return self.x_m, self.y_m


@dataclass(frozen=True)
class RouteQuery:
    """From where to where, and which places are closed to traffic."""

    start: RoutePlace
    goal: RoutePlace
    closed: tuple[RoutePlace, ...] = ()


@dataclass(frozen=True, eq=False)
class PlannedRoute:
    """The answer of a planner: points (N, 2) along the route in metres; none if it knows no route."""

    points_m: Floats

    @classmethod
    def of(cls, answer: Any) -> PlannedRoute:
        """Read what a planner returned: None, or N points of at least two coordinates.

        Raises ValueError: it is neither, or a coordinate is not finite.
        """
        if answer is None or len(answer) == 0:
            return cls(np.empty((0, 2)))
        points = np.asarray(answer, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] < 2 or not np.isfinite(points[:, :2]).all():
            raise ValueError(f"got an array of shape {points.shape}, expected finite points (N, 2) in metres, or None")
        return cls(points[:, :2])

    @property
    def found(self) -> bool:
        """Whether there is a route."""
        return len(self.points_m) > 0

    @property
    def length_m(self) -> float:
        """Length along the points; infinite without a route."""
        if not self.found:
            return float("inf")
        return float(np.linalg.norm(np.diff(self.points_m, axis=0), axis=1).sum())

    def misses(self, query: RouteQuery) -> str:
        """Return by how much a route does not join what was asked; empty if it does, or if there is none."""
        if not self.found:
            return ""
        for what, place, point in (("begins", query.start, self.points_m[0]), ("ends", query.goal, self.points_m[-1])):
            away_m = float(np.linalg.norm(point - place.xy_m))
            if away_m > END_M:
                return f"the route {what} {away_m:.1f} m away from x {place.x_m:.1f}, y {place.y_m:.1f} m"
        return ""

    def at(self, share: float) -> RoutePlace:
        """Return the place at a share of the length, 0 to 1."""
        steps = np.linalg.norm(np.diff(self.points_m, axis=0), axis=1)
        station = np.concatenate([[0.0], np.cumsum(steps)])
        at = share * station[-1]
        row = int(np.clip(np.searchsorted(station, at, side="right") - 1, 0, len(steps) - 1))
        along = self.points_m[row + 1] - self.points_m[row]
        x, y = self.points_m[row] + along * (at - station[row]) / max(float(steps[row]), 1e-9)
        return RoutePlace(float(x), float(y), float(np.arctan2(along[1], along[0])))

    def nearest_m(self, place: RoutePlace) -> float:
        """Return how near the route comes to a place."""
        from shapely import LineString, Point

        line = LineString(self.points_m) if len(self.points_m) > 1 else Point(self.points_m[0])
        return float(line.distance(Point(place.xy_m)))
