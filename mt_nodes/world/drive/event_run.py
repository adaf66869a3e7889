# SPDX-License-Identifier: Apache-2.0
"""Events of a scenario while it is played: when they begin, and the speeds, offsets and lights that they ask for.

Conditions are looked at ten times per second, as the way ahead is. Speeds change evenly in the time, on the way or at
the rate that an event says, whatever its shape; offsets go aside as the shape says, with the sinusoidal and the cubic
one of OpenSCENARIO 1.3's ``DynamicsShape``, which begin and end without a lateral speed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.world.drive.event_conditions import Conditions, StoryMoment
from mt_nodes.world.drive.scenario import Scenario, StoryEvent

#: Nobody is slower than so for what takes a way, in m/s.
_LEAST_MPS = 0.1
#: Share of the way aside, by the share of the time.
_SHAPES: dict[str, Callable[[Floats], Floats]] = {
    "linear": lambda share: share,
    "sinusoidal": lambda share: (1.0 - np.cos(np.pi * share)) / 2.0,
    "cubic": lambda share: share * share * (3.0 - 2.0 * share),
    "step": np.ones_like,
}


class EventRun:
    """The events of one episode.

    Attributes:
        target_mps: (N,) speeds asked of the actors, NaN where their ways say. rate_mps2: (N,) change of speed, NaN for
            their own. lights: colours that replace those of programmes, by signal.
    """

    def __init__(self, scenario: Scenario) -> None:
        count = len(scenario.actors)
        self._rows = {actor.name: row for row, actor in enumerate(scenario.actors)}
        self._events, self._conditions = scenario.events, Conditions(scenario)
        self.target_mps, self.rate_mps2 = np.full(count, np.nan), np.full(count, np.nan)
        for name in {event.actor for event in scenario.events if event.actor}:
            self.target_mps[self._rows[name]] = scenario.actor(name).speed_mps
        self._from_m, self._to_m, self._begin_s, self._lasts_s = np.zeros((4, count))
        self._shape = ["linear"] * count
        self.lights: dict[str, str] = {}
        self._followed: dict[int, StoryEvent] = {}
        self._begun: dict[str, float] = {}
        self._lasts: dict[str, float] = {}

    @property
    def any(self) -> bool:
        """Whether the scenario has events."""
        return bool(self._events)

    def look(self, moment: StoryMoment, colours: Mapping[str, str]) -> None:
        """Begin the events whose conditions hold at a moment."""
        now_s = moment.time_s
        for row, event in self._followed.items():
            self.target_mps[row] = max(
                0.0, event.factor * moment.speed_of(event.relative_to) + (event.speed_mps or 0.0)
            )
        ended = {name for name, begun_s in self._begun.items() if now_s >= begun_s + self._lasts[name] - 1e-9}
        self._conditions.look(moment, {**colours, **self.lights}, set(self._begun), ended)
        for event in self._events:
            if event.name not in self._begun and self._conditions.hold(event):
                self._begun[event.name] = now_s
                self._lasts[event.name] = self._begin(event, moment)

    def aside_m(self, time_s: float) -> tuple[Floats, Floats]:
        """Return how far (N,) actors are to the left of their ways at a time, and how fast they go there in m/s."""
        share = (time_s - self._begin_s) / np.maximum(self._lasts_s, 1e-9)
        at, soon = (self._offset(np.clip(s, 0.0, 1.0)) for s in (share, share + 1e-3))
        speed = (soon - at) / (1e-3 * np.maximum(self._lasts_s, 1e-9))
        return at, np.where((share >= 0.0) & (share < 1.0), speed, 0.0)

    def _offset(self, share: Floats) -> Floats:
        moved = np.array([_SHAPES[shape](one) for shape, one in zip(self._shape, share, strict=True)])
        return np.asarray(self._from_m + (self._to_m - self._from_m) * moved)

    def _begin(self, event: StoryEvent, moment: StoryMoment) -> float:
        """Carry out an event; return how long it takes."""
        self.lights |= event.lights
        if not event.actor:
            return 0.0
        row = self._rows[event.actor]
        now_mps = moment.speed_of(event.actor)
        if event.speed_mps is not None:
            other = event.factor * moment.speed_of(event.relative_to) if event.relative_to else 0.0
            target = max(0.0, other + event.speed_mps)
            change = abs(target - now_mps)
            lasts = _seconds(event, change, (now_mps + target) / 2.0)
            self.target_mps[row], self.rate_mps2[row] = target, change / lasts if lasts > 0.0 else np.inf
            self._followed.pop(row, None)
            if event.continuous:
                self._followed[row], self.rate_mps2[row] = event, np.nan
            return lasts
        if event.aside_m is None:
            return 0.0
        here = float(self.aside_m(moment.time_s)[0][row])
        self._from_m[row], self._to_m[row], self._begin_s[row] = here, event.aside_m, moment.time_s
        self._lasts_s[row] = _seconds(event, abs(event.aside_m - here), now_mps)
        self._shape[row] = event.shape
        return float(self._lasts_s[row])


def _seconds(event: StoryEvent, change: float, speed_mps: float) -> float:
    """Return how long an event takes that changes something by so much, at a speed."""
    if event.shape == "step" or event.over <= 0.0 or change == 0.0:
        return 0.0
    if event.over_unit == "rate":
        return change / event.over
    return event.over if event.over_unit == "s" else event.over / max(speed_mps, _LEAST_MPS)


def turned_rad(across_mps: Floats, along_mps: Floats) -> Floats:
    """Return (N,) by how much actors turn off their ways to the left; nobody turns while standing."""
    return np.where(along_mps > _LEAST_MPS, np.arctan2(across_mps, np.maximum(along_mps, _LEAST_MPS)), 0.0)
