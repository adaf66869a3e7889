# SPDX-License-Identifier: Apache-2.0
"""Adds actors on the ego's way, beside it, crossing it or oncoming."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import cos, pi, sin
from typing import Any

import numpy as np
import shapely

from mt_nodes.base.errors import NotApplicable, UsageError, suggest
from mt_nodes.base.params import param
from mt_nodes.relations.world_changes.base import Draw, ScenarioChange, Setting, WorldEffects
from mt_nodes.relations.world_changes.free_places import ANY_ROAD, ROADS, OwnWay, lanes_of, outline, taken, unused_names
from mt_nodes.world.drive.bodies import facts_of
from mt_nodes.world.drive.road_map import Lane
from mt_nodes.world.drive.scenario import Actor, Pose, Scenario, Trigger, Waypoint
from mt_nodes.world.drive.scenario_checks import problems
from mt_nodes.world.scene.objects import KINDS

WHERE = ("way", "roadside", "crossing", "oncoming")
#: Places tried, and clearance to everything else.
_TRIED, _CLEAR_M = 40, 0.3
#: A crossing actor starts when the ego is so far away in time; an oncoming one when it is so near.
_STEPS_OUT_S, _SETS_OFF_M = 3.0, 90.0
#: An oncoming actor starts so far beyond the place, on a lane within this lateral distance and this angle to the
#: opposite direction.
_BEYOND_M, _LANE_OFFSET_M, _AGAINST_RAD = 45.0, 6.0, 0.3
#: Distance between the actors of a group; spacing of the checked places of an oncoming one's way, in metres.
_APART_M, _EVERY_M = 0.6, 5


def _kinds(value: Any, where: str) -> tuple[str, ...]:
    kinds = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple) else ()
    if not kinds:
        raise UsageError(f"{where}: got {value!r}, expected a kind or a list of kinds")
    for kind in kinds:
        if kind not in KINDS:
            raise UsageError(f"{where}: got '{kind}', which does not exist{suggest(str(kind), KINDS)}")
    return kinds


@dataclass(frozen=True)
class ActorAdded(ScenarioChange):
    """Adds actors on the ego's upcoming way, clear of everybody else; several stand one behind the other.

    ``way``: in the middle of its lane, driving if there is a speed, else standing; ``roadside``: beside all lanes, on
    the side of traffic; ``crossing``: from there across all lanes, when the ego is near; ``oncoming``: on an adjacent
    lane in the opposite direction. Not applicable if there is no such place.
    """

    kind: tuple[str, ...] = param(("adult",), convert=_kinds, help="kind of object, or a list of them")
    where: str = param("roadside", choices=WHERE, help="in relation to the ego's way")
    at: str = param(ANY_ROAD, choices=ROADS, help="kind of road that the place is on")
    ahead_m: tuple[float, float] = param((35.0, 90.0), low=5.0, high=500.0, unit="m", help="from the ego's front")
    beside_m: float = param(
        0.5, low=0.0, high=10.0, unit="m", help="from the lanes' edge: where it stands or steps out"
    )
    speed_mps: float = param(0.0, low=0.0, high=20.0, unit="m/s", help="of whoever moves")
    turned_rad: float = param(0.0, low=-3.15, high=3.15, unit="rad", help="of whoever stands, from the way's direction")

    def __post_init__(self) -> None:
        if self.where in ("crossing", "oncoming") and self.speed_mps == 0.0:
            raise UsageError(f"got where: {self.where} and no speed_mps, expected how fast it goes")

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Choose a free place."""
        way = OwnWay.of(setting)
        rows = way.tried(rng, self.at, self.ahead_m)
        occupied, lanes = taken(setting), lanes_of(setting.road)
        for row in rows[:_TRIED]:
            added = self._actors(setting, way, row, lanes)
            if added and self._free(setting, added, occupied):
                return {"row": row}
        what, many = " and ".join(self.kind), f"{len(rows)} places"
        raise NotApplicable(
            f"none of {many} of the way ({self.at}, {self.ahead_m[0]:g} to {self.ahead_m[1]:g} m ahead) has room for "
            f"{what} ({self.where})"
        )

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Add the actors."""
        way, row = OwnWay.of(setting), int(draw["row"])
        added = self._actors(setting, way, row, lanes_of(setting.road))
        ahead = row - way.front_m
        moves = self.where == "oncoming" or (self.where == "way" and self.speed_mps > 0.0)
        names = tuple(actor.name for actor in added)
        effects = WorldEffects(added=names, at=None if moves else way.at(row), numbers={"ahead_m": ahead})
        return replace(setting, scenario=_with(setting.scenario, added)), effects

    def _free(self, setting: Setting, added: tuple[Actor, ...], allowed: shapely.Geometry) -> bool:
        """Return whether they are clear of everything else, and where they may stand."""
        places = shapely.union_all([outline(actor) for actor in added])
        if allowed.distance(places) < _CLEAR_M:
            return False
        return not problems(_with(setting.scenario, added), setting.road)

    def _actors(self, setting: Setting, way: OwnWay, row: int, lanes: shapely.Geometry) -> tuple[Actor, ...]:
        """Return the actors to add at a row of the way, none if there is no such place."""
        names, ahead_m = unused_names(setting.scenario, "added", len(self.kind)), 0.0
        added: list[Actor] = []
        for name, kind in zip(names, self.kind, strict=True):
            half = _half_m(kind, self.turned_rad)[0]
            ahead_m += half if added else 0.0
            one = self._actor(name, kind, way, row + round(ahead_m), lanes)
            if one is None or row + round(ahead_m) >= len(way.pose):
                return ()
            added.append(one)
            ahead_m += half + _APART_M + 0.5  # rows are whole metres
        return tuple(added)

    def _actor(self, name: str, kind: str, way: OwnWay, row: int, lanes: shapely.Geometry) -> Actor | None:
        if self.where == "oncoming":
            return self._oncoming(name, kind, way.at(row), way)
        if self.where == "way":
            onward = range(row + _EVERY_M, len(way.pose), _EVERY_M) if self.speed_mps else ()
            points = tuple(Waypoint(p.x_m, p.y_m, self.speed_mps) for p in map(way.at, onward))
            turned = 0.0 if points else self.turned_rad
            return Actor(name, kind, _turned(way.at(row), turned), waypoints=points, obeys_signals=bool(points))
        side = way.near_side
        near, far = (way.edge_m(row, s, lanes) for s in (side, -side))
        if near is None or far is None:
            return None
        if self.where == "roadside":
            lateral_m = near + self.beside_m + _half_m(kind, self.turned_rad)[1]
            return Actor(name, kind, _turned(way.at(row, side * lateral_m), self.turned_rad))
        half = _half_m(kind, pi / 2.0)[1]
        begin, end = way.at(row, side * (near + self.beside_m + half)), way.at(row, -side * (far + half + 1.0))
        trigger = Trigger(ego_within_s=_STEPS_OUT_S)
        walk = (Waypoint(end.x_m, end.y_m, self.speed_mps),)
        return Actor(name, kind, _turned(begin, -side * pi / 2.0), waypoints=walk, trigger=trigger)

    def _oncoming(self, name: str, kind: str, place: Pose, way: OwnWay) -> Actor | None:
        """Return an actor that meets the ego about there, None if no lane leads the other way."""
        for lane, station in _against(way, place):
            begin = station - _BEYOND_M
            if begin >= 0.0:
                places = [lane.pose_at(s) for s in np.arange(begin + _EVERY_M, lane.length_m, _EVERY_M).tolist()]
                points = tuple(Waypoint(p.x_m, p.y_m, self.speed_mps) for p in places)
                trigger = Trigger(ego_within_m=_SETS_OFF_M)
                return Actor(name, kind, lane.pose_at(begin), waypoints=points, trigger=trigger, obeys_signals=True)
        return None


def _against(way: OwnWay, place: Pose) -> Iterator[tuple[Lane, float]]:
    """Yield lanes beside a place in the opposite direction, and the stations there."""
    for lane in way.road.lanes.values():
        station, left = lane.station_of(place.x_m, place.y_m)
        turn = (lane.pose_at(station).yaw_rad - place.yaw_rad + pi) % (2.0 * pi)
        if lane.on_road and abs(left) <= _LANE_OFFSET_M and min(turn, 2.0 * pi - turn) <= _AGAINST_RAD:
            yield lane, station


def _turned(pose: Pose, by_rad: float) -> Pose:
    return replace(pose, yaw_rad=pose.yaw_rad + by_rad)


def _half_m(kind: str, turned_rad: float) -> tuple[float, float]:
    """Return half of the extent of a kind along the way and across it."""
    length, width, _ = facts_of(kind).size_m
    c, s = abs(cos(turned_rad)), abs(sin(turned_rad))
    return (c * length + s * width) / 2.0, (s * length + c * width) / 2.0


def _with(scenario: Scenario, more: tuple[Actor, ...]) -> Scenario:
    return replace(scenario, actors=(*scenario.actors, *more))
