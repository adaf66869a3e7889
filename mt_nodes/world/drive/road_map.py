# SPDX-License-Identifier: Apache-2.0
"""A map: lanes, crossings, kerbs, buildings, lights and signs, in the frame of :mod:`mt_nodes.world.drive.scenario`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import shapely

from mt_nodes.base.arrays import Floats
from mt_nodes.world.drive.scenario import Pose

Outline = tuple[tuple[float, float], ...]
"""Corners of a polygon, or points of a line, counter-clockwise where it is closed."""


@dataclass(frozen=True)
class Lane:
    """A lane, driven in the order of its centre line.

    Attributes:
        middle_m: points of the centre line, at most 2 m apart in bends. left, right: neighbouring lanes in the same
            direction, by name, empty if there is none. next: successor lanes.
        on_road: whether vehicles drive there; otherwise it is for pedestrians.
        reference_m: of OpenDRIVE's lanes, stations of the road's reference line, ascending, and the lane's beside them.
    """

    name: str
    middle_m: Outline
    width_m: float = 3.5
    limit_mps: float = 13.9
    left: str = ""
    right: str = ""
    next: tuple[str, ...] = ()
    on_road: bool = True
    reference_m: tuple[tuple[float, float], ...] = ()

    @cached_property
    def line_m(self) -> Floats:
        """(K, 2) the centre line."""
        return np.asarray(self.middle_m, dtype=np.float64)

    @cached_property
    def stations_m(self) -> Floats:
        """(K,) distance of each point of the centre line from its start, along it."""
        return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(self.line_m, axis=0), axis=1))])

    @property
    def length_m(self) -> float:
        """Length of the centre line."""
        return float(self.stations_m[-1])

    def pose_at(self, station_m: float, left_m: float = 0.0) -> Pose:
        """Return the pose at a station of the lane, ``left_m`` to the left of its centre; limited to its ends."""
        s = float(np.clip(station_m, 0.0, self.length_m))
        k = int(np.clip(np.searchsorted(self.stations_m, s, side="right") - 1, 0, len(self.line_m) - 2))
        along = self.line_m[k + 1] - self.line_m[k]
        yaw = float(np.arctan2(along[1], along[0]))
        x, y = self.line_m[k] + along * (s - self.stations_m[k]) / (self.stations_m[k + 1] - self.stations_m[k])
        return Pose(float(x) - left_m * float(np.sin(yaw)), float(y) + left_m * float(np.cos(yaw)), yaw)

    def station_of(self, x_m: float, y_m: float) -> tuple[float, float]:
        """Return the station of a place on the lane, and its distance to the left of the centre line."""
        place, begin = np.array([x_m, y_m]), self.line_m[:-1]
        along = np.diff(self.line_m, axis=0)
        squared = np.einsum("ij,ij->i", along, along)
        share = np.clip(np.einsum("ij,ij->i", place - begin, along) / squared, 0.0, 1.0)
        away = place - (begin + share[:, None] * along)
        k = int(np.argmin(np.einsum("ij,ij->i", away, away)))
        length = float(np.sqrt(squared[k]))
        left = float(along[k, 0] * away[k, 1] - along[k, 1] * away[k, 0]) / length
        return float(self.stations_m[k] + share[k] * length), left


@dataclass(frozen=True)
class Crossing:
    """A pedestrian crossing: its outline, and its light (empty: none)."""

    name: str
    outline_m: Outline
    signal: str = ""


@dataclass(frozen=True)
class TrafficLight:
    """A traffic light.

    Attributes:
        pose: of its post; visible to those who drive in the direction of its yaw.
        lane: its lane; stop_m: station of the stop line. Empty and 0 for a pedestrian light.
        programme: colours ``red``, ``yellow``, ``green`` and their durations in s, repeated from time 0.
    """

    name: str
    pose: Pose
    programme: tuple[tuple[str, float], ...]
    lane: str = ""
    stop_m: float = 0.0


@dataclass(frozen=True)
class Sign:
    """A sign on a post: a face of :data:`mt_nodes.world.scene.faces.SIGNS`, visible to those who drive as its yaw says.

    ``value`` is its number, if it has one; 0 for the usual one.
    """

    face: str
    pose: Pose
    value: int = 0


@dataclass(frozen=True)
class Limit:
    """A speed limit from a place in the middle of a lane on, for all that follows; it replaces the lanes' own."""

    pose: Pose
    limit_mps: float


@dataclass(frozen=True)
class Building:
    """A house: a convex outline and a height."""

    outline_m: Outline
    height_m: float


@dataclass(frozen=True)
class RoadMap:
    """One map.

    Attributes:
        limits: limits by signs that a lane's own limit does not include.
        kerbs_m: lines along which the pavement begins, to their right.
        ground_m: outline of the map.
        surface_m: the carriageway: polygons, each its outline and then its holes.
    """

    name: str
    lanes: Mapping[str, Lane]
    ground_m: Outline
    crossings: tuple[Crossing, ...] = ()
    signals: tuple[TrafficLight, ...] = ()
    signs: tuple[Sign, ...] = ()
    limits: tuple[Limit, ...] = ()
    buildings: tuple[Building, ...] = ()
    kerbs_m: tuple[Outline, ...] = ()
    surface_m: tuple[tuple[Outline, ...], ...] = ()

    @cached_property
    def carriageway(self) -> shapely.MultiPolygon:
        """:attr:`surface_m` as shapely polygons."""
        return shapely.MultiPolygon([(rings[0], list(rings[1:])) for rings in self.surface_m])

    @cached_property
    def ground(self) -> shapely.Polygon:
        """:attr:`ground_m` as a shapely polygon."""
        return shapely.Polygon(self.ground_m)

    @cached_property
    def built_up(self) -> shapely.Geometry:
        """Area of the buildings."""
        return shapely.union_all([shapely.Polygon(house.outline_m) for house in self.buildings])

    def nearest_lane(self, x_m: float, y_m: float, *, on_road: bool = True) -> Lane:
        """Return the lane whose centre line is nearest to a place. Raises ValueError: the map has none of that kind."""
        lanes = [lane for lane in self.lanes.values() if lane.on_road is on_road]

        def off_m(lane: Lane) -> float:
            pose = lane.pose_at(lane.station_of(x_m, y_m)[0])
            return float(np.hypot(pose.x_m - x_m, pose.y_m - y_m))

        return min(lanes, key=off_m)


@dataclass(frozen=True, eq=False)
class SameMap:
    """A map as a cache key by identity: comparing maps by value takes long."""

    road: RoadMap

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameMap) and other.road is self.road

    def __hash__(self) -> int:
        return id(self.road)
