# SPDX-License-Identifier: Apache-2.0
"""Adds signs, and changes the state of traffic lights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.relations.world_changes.base import Draw, ScenarioChange, Setting, WorldEffects
from mt_nodes.relations.world_changes.free_places import ANY_ROAD, ROADS, OwnWay
from mt_nodes.world.drive.road_map import Limit, RoadMap, Sign, TrafficLight
from mt_nodes.world.drive.signals import COLOURS, Programme, colour_at, programmes
from mt_nodes.world.scene.faces import SIGNS

#: Faces with a speed, and its unit in km/h; those that limit the speed.
SPEEDS_KMH = {"speed_limit": 1.0, "minimum_speed": 1.0, "speed_limit_us": 1.609344}
_CAPS, _ZONE, _ZONE_KMH = ("speed_limit", "speed_limit_us"), "zone_30", 30.0
_KMH_PER_MPS = 3.6
#: Distance of the post from the carriageway; least distance between signs.
_POST_OFFSET_M, _APART_M = 0.5, 3.0


@dataclass(frozen=True)
class SignPutUp(ScenarioChange):
    """Adds a sign beside the carriageway, on the side of traffic, facing drivers on the ego's way.

    A speed limit applies from there on: the route includes it. All other signs are visible to cameras only. Not
    applicable if there is nothing but carriageway beside the way.
    """

    face: str = param("zone_30", choices=tuple(SIGNS), help="what is on it")
    value: int = param(0, low=0, high=150, help="the number on it, if it bears one; 0: the usual one")
    at: str = param(ANY_ROAD, choices=ROADS, help="kind of road that the place is on")
    ahead_m: tuple[float, float] = param((35.0, 90.0), low=5.0, high=500.0, unit="m", help="from the ego's front")

    @property
    def limit_kmh(self) -> float | None:
        """Its speed limit, None if it is none."""
        if self.face == _ZONE:
            return _ZONE_KMH
        return (self.value or SIGNS[self.face].value) * SPEEDS_KMH[self.face] if self.face in _CAPS else None

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Choose a place."""
        way, road = OwnWay.of(setting), setting.road
        rows = way.tried(rng, self.at, self.ahead_m)
        for row in rows:
            if (edge := way.edge_m(row, way.near_side, road.carriageway)) is not None:
                post = way.at(row, way.near_side * (edge + _POST_OFFSET_M))
                posts = [one.pose for one in road.signs] + [one.pose for one in road.signals]
                if min((np.hypot(p.x_m - post.x_m, p.y_m - post.y_m) for p in posts), default=np.inf) >= _APART_M:
                    return {"row": row, "beside_m": edge + _POST_OFFSET_M}
        low, high = self.ahead_m
        raise NotApplicable(
            f"none of {len(rows)} places of the way ({self.at}, {low:g} to {high:g} m ahead) has room for a post"
        )

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Add the sign."""
        way, row, road = OwnWay.of(setting), int(draw["row"]), setting.road
        place, post = way.at(row), way.at(row, way.near_side * float(draw["beside_m"]))
        caps = () if self.limit_kmh is None else (Limit(place, self.limit_kmh / _KMH_PER_MPS),)
        numbers = {"ahead_m": row - way.front_m} | ({"limit_mps": caps[0].limit_mps} if caps else {})
        effects = WorldEffects(at=place, numbers=numbers)
        signs = (*road.signs, Sign(self.face, post, self.value))
        return replace(setting, road=replace(road, signs=signs, limits=(*road.limits, *caps))), effects


#: Largest distance of stop lines from the way, and along it from a kind of road.
_OFF_M, _NEAR_M = 1.5, 20.0
#: Longer than any drive.
_ALWAYS_S = 3600.0
#: Usual duration of yellow at 50 km/h, by the German VwV-StVO on section 37, number IX.
_YELLOW_S = 3.0
#: A light turns yellow when an ego at its initial speed is so far before the stop line.
_YELLOW_M = (25.0, 60.0)


@dataclass(frozen=True)
class SignalShows(ScenarioChange):
    """Turns the first light on the ego's way, and all with the same programme, red, green or yellow.

    With green the other lights are red, so that nobody who obeys them is in the way. Yellow lasts three seconds while
    the ego comes near, replaces a green of the source, and is followed by red. Not applicable if there is no light on
    the way, or it shows that colour all the time already.
    """

    colour: str = param("red", choices=COLOURS, help="what it shows")
    at: str = param(ANY_ROAD, choices=ROADS, help="kind of road that the light is at")
    ahead_m: tuple[float, float] = param((15.0, 500.0), low=1.0, high=2000.0, unit="m", help="from the ego's front")

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Choose when it turns yellow."""
        signal, row, way = self._light(setting)
        own = programmes(setting.road, setting.scenario.signals)[signal.name]
        if self.colour != "yellow":
            if all(colour == self.colour for colour, _ in own):
                raise NotApplicable(f"{signal.name} is {self.colour} all the time already")
            return {}
        before_m = row - way.front_m - float(rng.uniform(*_YELLOW_M))
        speed = max(setting.scenario.ego.speed_mps, 0.1)
        time_s = round(before_m / speed, 1)
        if time_s <= 0.0 or (current := colour_at(own, time_s)) != "green":
            when = f"{current} at {time_s:g} s" if time_s > 0.0 else "too near from the beginning"
            raise NotApplicable(f"{signal.name} is {when}, expected green, which yellow follows")
        return {"from_s": time_s}

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Change the programmes of the lights."""
        signal, row, way = self._light(setting)
        own = programmes(setting.road, setting.scenario.signals)
        from_s = float(draw.get("from_s", 0.0))
        same = [name for name, programme in own.items() if programme == own[signal.name]]
        changed = dict.fromkeys(same, self._programme(own[signal.name], from_s))
        if self.colour == "green":
            changed |= {name: (("red", _ALWAYS_S),) for name in own if name not in same}
        scenario = replace(setting.scenario, signals={**setting.scenario.signals, **changed})
        numbers = {"ahead_m": row - way.front_m, **({"from_s": from_s} if from_s else {})}
        effects = WorldEffects(changed=tuple(sorted(changed)), at=way.at(row), numbers=numbers)
        return replace(setting, scenario=scenario), effects

    def _programme(self, own: Programme, from_s: float) -> Programme:
        if self.colour != "yellow":
            return ((self.colour, _ALWAYS_S),)
        return (*_until(own, from_s), ("yellow", _YELLOW_S), ("red", _ALWAYS_S))

    def _light(self, setting: Setting) -> tuple[TrafficLight, int, OwnWay]:
        """Return the first light, the row of the way at its stop line, and the way."""
        way = OwnWay.of(setting)
        places = way.rows(self.at, (-np.inf, np.inf))
        found = [(row, signal) for row, signal in _lights(setting.road, way) if self._fits(row, places, way)]
        if not found:
            low, high = self.ahead_m
            raise NotApplicable(f"no light on the way ({self.at}, {low:g} to {high:g} m ahead)")
        row, signal = min(found, key=lambda one: one[0])
        return signal, row, way

    def _fits(self, row: int, places: np.ndarray, way: OwnWay) -> bool:
        near = self.at == ANY_ROAD or bool((np.abs(places - row) <= _NEAR_M).any())
        return near and self.ahead_m[0] <= row - way.front_m <= self.ahead_m[1]


def _lights(road: RoadMap, way: OwnWay) -> Iterator[tuple[int, TrafficLight]]:
    """Yield the lights for vehicles whose stop lines the way crosses, and those rows."""
    for signal in road.signals:
        if signal.lane and signal.lane in way.lanes:
            row, off_m = way.row_of(road.lanes[signal.lane].pose_at(signal.stop_m))
            if off_m <= _OFF_M:
                yield row, signal


def _until(programme: Programme, end_s: float) -> Iterator[tuple[str, float]]:
    """Yield the states of a programme up to a time."""
    time_s = 0.0
    while time_s < end_s:
        for colour, seconds in programme:
            if (lasts := min(seconds, end_s - time_s)) > 0.0:
                yield colour, lasts
            time_s += seconds
