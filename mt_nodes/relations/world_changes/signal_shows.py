# SPDX-License-Identifier: Apache-2.0
"""A traffic light ahead shows another colour."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.relations.world_changes.base import Draw, ScenarioChange, Setting, WorldEffects
from mt_nodes.relations.world_changes.free_places import ANY_ROAD, ROADS, OwnWay
from mt_nodes.world.drive.road_map import RoadMap, TrafficLight
from mt_nodes.world.drive.signals import COLOURS, Programme, colour_at, programmes

#: Stop lines are no farther off the way than that, and belong to a kind of road that is no farther along it.
_OFF_M, _NEAR_M = 1.5, 20.0
#: Longer than any drive.
_ALWAYS_S = 3600.0
#: What yellow lasts as a rule where 50 km/h is allowed, by the German VwV-StVO on section 37, number IX.
_YELLOW_S = 3.0
#: A light turns yellow when an ego that keeps its first speed is so far before the stop line.
_YELLOW_M = (25.0, 60.0)


@dataclass(frozen=True)
class SignalShows(ScenarioChange):
    """The first light on the ego's way, and all that show the same, are red or green all the time, or turn yellow.

    Where it is green the others are red, so that nobody who obeys them is in the way. Yellow is shown for three seconds
    while the ego comes near, in place of a green that the source has then; red follows. It refuses where there is no
    light on the way, or it shows that already all the time.
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
        if time_s <= 0.0 or (shown := colour_at(own, time_s)) != "green":
            when = f"{shown} at {time_s:g} s" if time_s > 0.0 else "too near from the beginning"
            raise NotApplicable(f"{signal.name} is {when}, expected green, which yellow follows")
        return {"from_s": time_s}

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Give the lights other programmes."""
        signal, row, way = self._light(setting)
        own = programmes(setting.road, setting.scenario.signals)
        from_s = float(draw.get("from_s", 0.0))
        same = [name for name, programme in own.items() if programme == own[signal.name]]
        made = dict.fromkeys(same, self._programme(own[signal.name], from_s))
        if self.colour == "green":
            made |= {name: (("red", _ALWAYS_S),) for name in own if name not in same}
        scenario = replace(setting.scenario, signals={**setting.scenario.signals, **made})
        numbers = {"ahead_m": row - way.front_m, **({"from_s": from_s} if from_s else {})}
        effects = WorldEffects(changed=tuple(sorted(made)), at=way.at(row), numbers=numbers)
        return replace(setting, scenario=scenario), effects

    def _programme(self, own: Programme, from_s: float) -> Programme:
        if self.colour != "yellow":
            return ((self.colour, _ALWAYS_S),)
        return (*_until(own, from_s), ("yellow", _YELLOW_S), ("red", _ALWAYS_S))

    def _light(self, setting: Setting) -> tuple[TrafficLight, int, OwnWay]:
        """Return the first light, the row of the way at which one stops for it, and the way.

        Raises:
            NotApplicable: there is none.
        """
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
    """Yield the lights for vehicles whose stop lines the way crosses, and the rows at which it does."""
    for signal in road.signals:
        if signal.lane and signal.lane in way.lanes:
            row, off_m = way.row_of(road.lanes[signal.lane].pose_at(signal.stop_m))
            if off_m <= _OFF_M:
                yield row, signal


def _until(programme: Programme, end_s: float) -> Iterator[tuple[str, float]]:
    """Yield what a programme shows up to a time."""
    time_s = 0.0
    while time_s < end_s:
        for colour, seconds in programme:
            if (lasts := min(seconds, end_s - time_s)) > 0.0:
                yield colour, lasts
            time_s += seconds
