# SPDX-License-Identifier: Apache-2.0
"""Motion of actors: along their ways at the given speeds, on rails, with a few rules.

An actor with a trigger stands until it fires. Vehicles speed up and brake gradually, and stop at the last waypoint;
pedestrians reach their speed at once. Actors that obey signals stop where their way enters a crossing or meets a stop
line whose light is not green (vehicles at yellow if they can brake gently, at red if they can brake at all). Such
vehicles also keep their distance to anybody in their way, including the ego; all others follow the scenario regardless,
so that intended events happen. The way ahead is checked ten times per second. Events of the scenario
(:mod:`mt_nodes.world.drive.event_run`) change speeds, and put actors beside their ways.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.world.drive.bodies import facts_of, sizes
from mt_nodes.world.drive.event_conditions import StoryBody, StoryMoment
from mt_nodes.world.drive.event_run import EventRun, turned_rad
from mt_nodes.world.drive.paths import Paths, stops_on_foot, stops_on_wheels
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.scenario import EGO_NAME, Scenario
from mt_nodes.world.drive.trace import EgoState

LOOK_S = 0.1
#: Vehicles: acceleration, gentle and hard braking, turn rate; assumed, usual for unhurried drivers.
_UP_MPS2, _GENTLE_MPS2, _HARD_MPS2, _TURN_RADPS = 2.5, 3.0, 8.0, 1.5
#: Slightly harder than gentle braking: a vehicle that has begun to brake for yellow continues to.
_YELLOW_MPS2 = 1.2 * _GENTLE_MPS2
#: Pedestrians: nearly at once, within a step or two.
_AT_ONCE_MPS2, _ABOUT_RADPS = 100.0, 8.0
#: Distances: behind a standing vehicle, time gap behind a moving one, lateral, look-ahead, before a stop line.
_BEHIND_M, _BEHIND_S, _SIDE_M, _AHEAD_M, _BEFORE_LINE_M = 2.0, 1.0, 0.3, 60.0, 0.3


class Motion:
    """The actors of a scenario in motion.

    ``rows``: (N, 4) columns :data:`mt_nodes.world.drive.trace.ACTOR_COLUMNS`. travelled_m: (N,).
    """

    def __init__(self, scenario: Scenario, road: RoadMap, ego: EgoState, step_s: float) -> None:
        actors, self._vehicle, self._step_s = scenario.actors, scenario.ego.vehicle, step_s
        self._paths, self._length_m = Paths(actors), sizes(actors)[:, 0]
        self._width_m = sizes(actors)[:, 1]
        start = [(a.start.x_m, a.start.y_m, a.start.yaw_rad, 0.0) for a in actors]
        self.rows, self.travelled_m = np.array(start).reshape(-1, 4), np.zeros(len(actors))
        wheels = np.array([facts_of(a.kind).on_wheels for a in actors], dtype=bool)
        obeys = np.array([a.obeys_signals for a in actors], dtype=bool)
        self._drives = np.flatnonzero(wheels & obeys)
        self._up = np.where(wheels, _UP_MPS2, _AT_ONCE_MPS2)
        self._gentle = np.where(wheels, _GENTLE_MPS2, _AT_ONCE_MPS2)
        self._hard = np.where(wheels, _HARD_MPS2, _AT_ONCE_MPS2)
        self._turn = np.where(wheels, _TURN_RADPS, _ABOUT_RADPS) * step_s
        self._triggers = _Triggers(scenario)
        self._lights = _Lights(scenario, road, wheels, self._length_m / 2.0)
        self._standing = _standing(scenario)
        self._stop_m = self._paths.end_m.copy()
        self._going = self._triggers.fired(0.0, ego, self.rows)
        self._still = not self._paths.end_m.any()  # nobody has anywhere to go
        self.events, self._names = EventRun(scenario), [actor.name for actor in actors]
        self._now_s = self._ego_m = 0.0
        # Actors without a trigger are already moving.
        begin = self._paths.pieces(self._paths.piece_at(self.travelled_m))
        self.rows[:, 3] = np.where(self._going, begin.speed_mps, 0.0)

    def look(self, ego: EgoState, colours: Mapping[str, str]) -> None:
        """Check lights and traffic ahead, and store where to stop; call it every :data:`LOOK_S`."""
        if self.events.any:
            self.events.look(self._moment(ego), colours)
        self._stop_m = self._paths.end_m.copy()
        self._lights.stops(self._stop_m, self.travelled_m, self.rows[:, 3], self._hard, colours)
        if len(self._drives):
            self._keep_away(ego)

    def advance(self, time_s: float, ego: EgoState) -> None:
        """Advance by one step from a time."""
        self._now_s = time_s + self._step_s
        self._ego_m += ego.speed_mps * self._step_s
        if self._still:
            return
        if not self._going.all():
            self._going |= self._triggers.fired(time_s, ego, self.rows)
        before, step = self.rows[:, 3], self._step_s
        piece = self._paths.piece_at(self.travelled_m)
        room = np.minimum(self._stop_m, self._paths.end_m) - self.travelled_m
        could = np.sqrt(2.0 * self._gentle * np.maximum(room, 0.0))
        wanted, hard, up = self._asked(self._paths.pieces(piece).speed_mps)
        target = np.where(self._going, np.minimum(wanted, could), 0.0)
        speed = np.minimum(np.maximum(target, before - hard * step), before + up * step)
        onward = np.minimum(self.travelled_m + speed * step, self._paths.end_m)
        speed = np.where(self._paths.end_m - onward < 0.001, 0.0, speed)
        self.travelled_m = onward
        place = self._paths.place_at(onward, piece)
        if not self.events.any:
            self.rows = _rows(place, self._turned(piece, speed), speed)
            return
        aside, across = self.events.aside_m(self._now_s)
        yaw = self._paths.pieces(piece).yaw_rad
        place = place + aside[:, None] * np.column_stack([-np.sin(yaw), np.cos(yaw)])
        self.rows = _rows(place, self._turned(piece, speed, turned_rad(across, speed)), speed)

    def _asked(self, own_mps: Floats) -> tuple[Floats, Floats, Floats]:
        """Return (N,) desired speeds, and how hard actors brake and speed up: their own ones, or those of events."""
        if not self.events.any:
            return own_mps, self._hard, self._up
        told, rate = self.events.target_mps, self.events.rate_mps2
        hard, up = (np.where(np.isnan(rate), own, np.fmax(rate, 0.0)) for own in (self._hard, self._up))
        return np.where(np.isnan(told), own_mps, told), hard, up

    def _moment(self, ego: EgoState) -> StoryMoment:
        """Return everybody now, for conditions of events."""
        car = self._vehicle
        ahead = (car.front_m - car.rear_m) / 2.0
        middle = ego.x_m + ahead * np.cos(ego.yaw_rad), ego.y_m + ahead * np.sin(ego.yaw_rad)
        bodies = {EGO_NAME: StoryBody(*middle, ego.speed_mps, ego.yaw_rad, ego.acceleration_mps2, self._ego_m)}
        for name, (x, y, yaw, speed), way in zip(self._names, self.rows.tolist(), self.travelled_m, strict=True):
            bodies[name] = StoryBody(x, y, speed, yaw, 0.0, float(way))
        return StoryMoment(self._now_s, bodies)

    def _turned(self, piece: npt.NDArray[np.intp], speed: Floats, aside_rad: Floats | float = 0.0) -> Floats:
        """Return (N,) headings after a step: moving actors turn towards their way."""
        yaw = self.rows[:, 2]
        off = self._paths.pieces(piece).yaw_rad + aside_rad - yaw
        off -= 2.0 * np.pi * np.rint(off / (2.0 * np.pi))
        off = np.minimum(np.maximum(off, -self._turn), self._turn)
        return np.asarray(yaw + np.where(speed > 0.0, off, 0.0))

    def _keep_away(self, ego: EgoState) -> None:
        """Move drivers' stopping points back to stop behind traffic ahead, even if that brakes gently at once."""
        own, car = self._drives, self._vehicle
        ahead_m = (car.front_m - car.rear_m) / 2.0
        middle = (ego.x_m + ahead_m * np.cos(ego.yaw_rad), ego.y_m + ahead_m * np.sin(ego.yaw_rad))
        me = np.array([[*middle, ego.yaw_rad, ego.speed_mps, car.front_m + car.rear_m, car.width_m]])
        others = np.concatenate([np.column_stack([self.rows, self._length_m, self._width_m]), me, self._standing])
        ahead, lateral, piece = self._paths.before(own, self.travelled_m[own], others[:, :2])
        turned = others[:, 2] - self._paths.yaw_rad[own[:, None], piece]
        along, across = np.abs(np.cos(turned)), np.abs(np.sin(turned))
        lateral -= (across * others[:, 4] + along * others[:, 5] + self._width_m[own, None]) / 2.0
        gap = ahead - (along * others[:, 4] + across * others[:, 5] + self._length_m[own, None]) / 2.0
        in_way = (ahead > 0.0) & (gap < _AHEAD_M) & (lateral < _SIDE_M)
        in_way[np.arange(len(own)), own] = False
        onward = np.maximum(others[:, 3] * np.cos(turned), 0.0)
        stops_m = gap - _BEHIND_M + onward * (onward / (2.0 * _GENTLE_MPS2) - _BEHIND_S)
        free = np.where(in_way, stops_m, np.inf).min(axis=1)
        self._stop_m[own] = np.minimum(self._stop_m[own], self.travelled_m[own] + free)


def _rows(place: Floats, yaw_rad: Floats, speed_mps: Floats) -> Floats:
    """Return (N, 4) places (N, 2), headings and speeds (N,); a third of the time of ``np.column_stack``."""
    rows = np.empty((len(place), 4))
    rows[:, :2], rows[:, 2], rows[:, 3] = place, yaw_rad, speed_mps
    return rows


def _standing(scenario: Scenario) -> Floats:
    """Return (O, 6) pose, speed, length and width of obstacles."""
    rows = [(o.pose.x_m, o.pose.y_m, o.pose.yaw_rad, 0.0, *o.size_m[:2]) for o in scenario.obstacles]
    return np.array(rows).reshape(-1, 6)


class _Triggers:
    """When actors begin to move; conditions that are not set always hold."""

    def __init__(self, scenario: Scenario) -> None:
        triggers = [actor.trigger for actor in scenario.actors]
        self._after_s = np.array([t.after_s for t in triggers])
        self._within_m = np.array([np.inf if t.ego_within_m is None else t.ego_within_m for t in triggers])
        self._within_s = np.array([np.inf if t.ego_within_s is None else t.ego_within_s for t in triggers])
        self._front_m = scenario.ego.vehicle.front_m

    def fired(self, time_s: float, ego: EgoState, rows: Floats) -> Mask:
        """Return (N,) whose conditions hold at an instant."""
        x = ego.x_m + self._front_m * np.cos(ego.yaw_rad)
        y = ego.y_m + self._front_m * np.sin(ego.yaw_rad)
        away = np.hypot(rows[:, 0] - x, rows[:, 1] - y)
        soon = away <= self._within_s * ego.speed_mps if ego.speed_mps > 0.0 else np.isinf(self._within_s)
        # Half a billionth: sums of steps need not hit a decimal fraction.
        return np.asarray((time_s >= self._after_s - 5e-10) & (away <= self._within_m) & soon)


class _Lights:
    """Stopping points of actors that obey signals, one row each: actor, station, light."""

    def __init__(self, scenario: Scenario, road: RoadMap, wheels: Mask, half_m: Floats) -> None:
        rows: list[tuple[int, float, str]] = []
        for i, actor in enumerate(scenario.actors):
            if actor.obeys_signals:
                found = (stops_on_wheels if wheels[i] else stops_on_foot)(actor, road)
                rows += [(i, station - half_m[i] - _BEFORE_LINE_M, name) for station, name in found]
        self._actor = np.array([row[0] for row in rows], dtype=np.intp)
        self._station_m = np.array([row[1] for row in rows])
        self._names = [row[2] for row in rows]

    def stops(
        self, stop_m: Floats, travelled_m: Floats, speed_mps: Floats, hard_mps2: Floats, colours: Mapping[str, str]
    ) -> None:
        """Move stopping points (N,) back to lights at which actors can and must stop."""
        if not self._names:
            return
        current = np.array([colours[name] for name in self._names])
        room = self._station_m - travelled_m[self._actor]
        most = np.where(current == "yellow", _YELLOW_MPS2, hard_mps2[self._actor])
        needed = speed_mps[self._actor] ** 2 / (2.0 * most)
        # A vehicle that waits at a line may be slightly beyond it.
        stop = (current != "green") & (room > -0.1) & (room >= needed - 0.1)
        np.minimum.at(stop_m, self._actor[stop], self._station_m[stop])
