# SPDX-License-Identifier: Apache-2.0
"""Conditions of events at a moment of an episode."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from math import cos, hypot, inf, sin

from mt_nodes.world.drive.scenario import EventCondition, Scenario, StoryEvent

#: Slower than so, one stands.
_STANDS_MPS = 0.01
#: Equal speeds and distances differ by less.
_EQUAL = 0.05
_RULES: dict[str, Callable[[float, float], bool]] = {
    "<": lambda value, bound: value < bound,
    ">": lambda value, bound: value > bound,
    "=": lambda value, bound: abs(value - bound) < _EQUAL,
}


@dataclass(frozen=True)
class StoryBody:
    """The middle, speed in m/s, heading, acceleration and travelled way of the ego or an actor."""

    x_m: float
    y_m: float
    speed_mps: float
    yaw_rad: float
    acceleration_mps2: float = 0.0
    travelled_m: float = 0.0


@dataclass(frozen=True)
class StoryMoment:
    """Everybody at a moment, by name; the ego is ``ego``."""

    time_s: float
    bodies: Mapping[str, StoryBody]

    def speed_of(self, name: str) -> float:
        """Return somebody's speed."""
        return self.bodies[name].speed_mps


class Conditions:
    """The conditions of a scenario's events, with what they were before."""

    def __init__(self, scenario: Scenario) -> None:
        each = [one for event in scenario.events for group in event.when for one in group]
        self._all = dict.fromkeys(each)
        self._before: dict[EventCondition, bool] = {}
        self._seen: dict[EventCondition, deque[tuple[float, bool]]] = {one: deque() for one in self._all}
        self._standing: dict[str, float] = {}
        self._true: set[EventCondition] = set()

    def look(self, moment: StoryMoment, colours: Mapping[str, str], begun: Set[str], ended: Set[str]) -> None:
        """Take in a moment, the colours of lights, and which events have begun and ended."""
        for name, body in moment.bodies.items():
            if body.speed_mps > _STANDS_MPS:
                self._standing.pop(name, None)
            else:
                self._standing.setdefault(name, moment.time_s)
        self._true = {
            one for one in self._all if self._now(one, self._level(one, moment, colours, begun, ended), moment)
        }

    def hold(self, event: StoryEvent) -> bool:
        """Tell whether the conditions of an event hold."""
        return not event.when or any(self._true.issuperset(group) for group in event.when)

    def _now(self, one: EventCondition, level: bool, moment: StoryMoment) -> bool:
        """Return whether a condition counts as true at a moment: by its edge, and its delay ago."""
        before = self._before.get(one)
        self._before[one] = level
        rises, falls = before is False and level, before is True and not level
        edge = {"none": level, "rising": rises, "falling": falls}.get(one.edge, rises or falls)
        seen = self._seen[one]
        seen.append((moment.time_s, edge))
        told = False
        while seen and seen[0][0] <= moment.time_s - one.delay_s + 1e-9:
            told = seen.popleft()[1]
        return told

    def _level(
        self, one: EventCondition, moment: StoryMoment, colours: Mapping[str, str], begun: Set[str], ended: Set[str]
    ) -> bool:
        if one.quantity in ("begun", "ended"):
            return set(one.names) <= (begun if one.quantity == "begun" else ended)
        if one.quantity == "light":
            return colours.get(one.names[0]) == one.colour
        return _RULES[one.rule](self._value(one, moment), one.value)

    def _value(self, one: EventCondition, moment: StoryMoment) -> float:
        if one.quantity == "time_s":
            return moment.time_s + 5e-10
        body = moment.bodies[one.of]
        if one.quantity == "standing_s":
            return moment.time_s - self._standing.get(one.of, inf) if one.of in self._standing else -inf
        if one.quantity in ("speed_mps", "acceleration_mps2", "travelled_m"):
            return float(getattr(body, one.quantity))
        if one.place is not None:
            return hypot(body.x_m - one.place.x_m, body.y_m - one.place.y_m)
        return _between(one, body, moment.bodies[one.to])


def _between(one: EventCondition, body: StoryBody, other: StoryBody) -> float:
    """Return the distance of two, or the time in which the first is there, or both meet."""
    x, y = other.x_m - body.x_m, other.y_m - body.y_m
    middles_m = hypot(x, y)
    distance_m = max(0.0, middles_m - one.less_m)
    if one.quantity == "distance_m":
        return distance_m
    if one.quantity == "headway_s":
        return distance_m / body.speed_mps if body.speed_mps > _STANDS_MPS else inf
    velocity = [(b.speed_mps * cos(b.yaw_rad), b.speed_mps * sin(b.yaw_rad)) for b in (body, other)]
    closing = ((velocity[0][0] - velocity[1][0]) * x + (velocity[0][1] - velocity[1][1]) * y) / max(middles_m, 1e-9)
    return distance_m / closing if closing > _STANDS_MPS else inf
