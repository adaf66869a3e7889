# SPDX-License-Identifier: Apache-2.0
"""Results of many manoeuvres at once: the way of a copy of the ego in each, and the motion of the others.

Instants and physics are those of :class:`mt_nodes.world.drive.world.World`; formulas of the copies are those of
``plant.py``, and their results differ only in the last bits of sine and cosine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.world.drive.bodies import facts_of
from mt_nodes.world.drive.manoeuvres import Manoeuvres
from mt_nodes.world.drive.motion import LOOK_S, Motion
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.scenario import Actor, Scenario, Trigger, Vehicle
from mt_nodes.world.drive.signals import colour_at, programmes
from mt_nodes.world.drive.trace import EGO_COLUMNS, EgoState

STEP_S = 0.01


def start_of(scenario: Scenario) -> EgoState:
    """Return the ego at time 0."""
    start = scenario.ego.start
    return EgoState(start.x_m, start.y_m, start.yaw_rad, scenario.ego.speed_mps)


def driven(scenario: Scenario, moves: Manoeuvres, begins_s: float) -> Floats:
    """Return (T + 1, M, 4) x, y, yaw and speed of the ego, at first and after each step, until all stand.

    ``begins_s``: it rolls straight on until then, as in a world without a command.
    """
    start, begins = start_of(scenario), round(begins_s / STEP_S)
    fleet = Fleet(len(moves), scenario.ego.vehicle, start, moves.most_mps2, STEP_S)
    states = [fleet.states[:, :4]]
    for k in range(round(scenario.duration_s / STEP_S)):
        if k < begins:
            fleet.advance(np.zeros(len(moves)), np.zeros(len(moves)))
        else:
            turned = fleet.states[:, 2] - start.yaw_rad
            fleet.advance(*moves.commands_at((k - begins) * STEP_S, fleet.speed_mps, turned))
        states.append(fleet.states[:, :4])
        if not fleet.speed_mps.any():
            break
    return np.stack(states)


@dataclass(frozen=True, eq=False)
class Others:
    """Motion of each actor during each manoeuvre of the ego.

    Attributes:
        rows: for each actor (T + 1, M, 4), or (T + 1, 1, 4) if it is the same in all; columns
            :data:`mt_nodes.world.drive.trace.ACTOR_COLUMNS`.
        sure: for each actor whether its motion is independent of the ego.
    """

    rows: tuple[Floats, ...]
    sure: tuple[bool, ...]


def others(scenario: Scenario, road: RoadMap, egos: Floats, until: npt.NDArray[np.intp]) -> Others:
    """Return the actors of a scenario.

    ``egos``: (T + 1, M, 4) of :func:`driven`. ``until``: (M,) the last relevant step of each manoeuvre: later ones may
    repeat it, except for the first manoeuvre, which covers all actors independent of the ego.
    """
    waits = _waiting(scenario, road)
    watches = [actor.obeys_signals and facts_of(actor.kind).on_wheels for actor in scenario.actors]
    sure = tuple(not (wait or watch) for wait, watch in zip(waits, watches, strict=True))
    if any(watches) or any(wait and actor.obeys_signals for wait, actor in zip(waits, scenario.actors, strict=True)):
        ends = [len(egos) - 1, *until[1:].tolist()]
        separate = [_played(scenario, road, end + 1, _driver(egos[:, m])) for m, end in enumerate(ends)]
        whole = [np.pad(rows, ((0, len(egos) - len(rows)), (0, 0), (0, 0)), mode="edge") for rows in separate]
        return Others(tuple(np.stack([rows[:, i] for rows in whole], axis=1) for i in range(len(sure))), sure)
    # An actor that waits for the ego alone moves as if triggered at once, only later.
    at_once = [
        replace(actor, trigger=Trigger(after_s=STEP_S)) if wait else actor
        for actor, wait in zip(scenario.actors, waits, strict=True)
    ]
    start = start_of(scenario)
    played = _played(replace(scenario, actors=tuple(at_once)), road, len(egos), lambda k: start)
    rows = [played[:, i, None] for i in range(len(sure))]
    for i, (actor, wait) in enumerate(zip(scenario.actors, waits, strict=True)):
        if wait:
            since = np.arange(len(egos))[:, None] - _triggered(actor, scenario.ego.vehicle.front_m, egos) + 1
            rows[i] = played[np.clip(since, 0, len(egos) - 1), i]
    return Others(tuple(rows), sure)


def _waiting(scenario: Scenario, road: RoadMap) -> list[bool]:
    """Return the actors that the ego may still trigger."""
    speeds = Motion(scenario, road, start_of(scenario), STEP_S).rows[:, 3]
    return [
        (actor.trigger.ego_within_m is not None or actor.trigger.ego_within_s is not None)
        and bool(actor.waypoints or actor.speed_mps > 0.0)
        and speed == 0.0
        for actor, speed in zip(scenario.actors, speeds, strict=True)
    ]


def _triggered(actor: Actor, front_m: float, egos: Floats) -> npt.NDArray[np.intp]:
    """Return (M,) the step at which a standing actor begins to move, or one after the last; as in ``motion.py``."""
    x, y, yaw, speed = np.moveaxis(egos, -1, 0)
    away = np.hypot(actor.start.x_m - x - front_m * np.cos(yaw), actor.start.y_m - y - front_m * np.sin(yaw))
    trigger = actor.trigger
    fulfilled = (np.arange(len(egos)) * STEP_S >= trigger.after_s - 5e-10)[:, None] & np.ones(away.shape, dtype=bool)
    if trigger.ego_within_m is not None:
        fulfilled &= away <= trigger.ego_within_m
    if trigger.ego_within_s is not None:
        fulfilled &= (away <= trigger.ego_within_s * speed) & (speed > 0.0)
    return np.where(fulfilled.any(axis=0), fulfilled.argmax(axis=0), len(egos))


def _driver(states: Floats) -> Callable[[int], EgoState]:
    """Return the ego of one manoeuvre (T + 1, 4) by step."""
    rows: Sequence[list[float]] = states.tolist()
    return lambda k: EgoState(*rows[k])


def _played(scenario: Scenario, road: RoadMap, instants: int, ego_at: Callable[[int], EgoState]) -> Floats:
    """Return (T + 1, N, 4) the actors at each instant, moved as in a world."""
    motion, looks = Motion(scenario, road, ego_at(0), STEP_S), max(1, round(LOOK_S / STEP_S))
    lights = programmes(road, scenario.signals)
    rows = [motion.rows]
    for k in range(instants - 1):
        if k % looks == 0:
            motion.look(ego_at(k), {name: colour_at(lights[name], k * STEP_S) for name in lights})
        motion.advance(k * STEP_S, ego_at(k))
        rows.append(motion.rows)
    return np.stack(rows)


class Fleet:
    """M identical cars on one road.

    ``states``: (M, 6) their states, columns :data:`mt_nodes.world.drive.trace.EGO_COLUMNS`.
    """

    def __init__(self, count: int, vehicle: Vehicle, start: EgoState, friction_mps2: float, step_s: float) -> None:
        self.states = np.tile(np.array(start.row), (count, 1))
        self._vehicle, self._step_s, self._most_mps2 = vehicle, step_s, friction_mps2
        self._pull = np.zeros(count)
        self._pulls = _Late(count, vehicle.drive_dead_s, vehicle.drive_lag_s, step_s, 0.0)
        self._wheels = _Late(count, vehicle.steering_dead_s, vehicle.steering_lag_s, step_s, start.steering_rad)

    @property
    def speed_mps(self) -> Floats:
        """(M,)."""
        return np.asarray(self.states[:, EGO_COLUMNS.index("speed_mps")])

    def advance(self, acceleration_mps2: Floats, steering_rad: Floats) -> None:
        """Advance by one step with these commands to the actuators, (M,) each."""
        x, y, yaw, speed, _, wheel = self.states.T
        step, car = self._step_s, self._vehicle
        most = car.steering_rate_radps * step
        wheel = wheel + np.clip(self._wheels.towards(steering_rad, wheel) - wheel, -most, most)
        pulled = self._pulls.towards(acceleration_mps2, self._pull)
        self._pull = np.maximum(pulled, self._pull - car.brake_jerk_mps3 * step)

        curved = np.tan(wheel) / car.wheelbase_m
        demanded = np.hypot(self._pull, speed * speed * curved)
        share = np.minimum(1.0, self._most_mps2 / np.maximum(demanded, 1e-300))
        after, way = _braked(speed, self._pull * share, step)
        # The tyres limit the curvature; a car that stood before the step follows its wheels.
        turn = np.where(speed > 0.0, curved * share * way, after * curved * step / 2.0)
        chord, heading = way * np.sinc(turn / (2.0 * np.pi)), yaw + turn / 2.0
        self.states = np.column_stack(
            [x + chord * np.cos(heading), y + chord * np.sin(heading), yaw + turn, after, (after - speed) / step, wheel]
        )


class _Late:
    """Dead time and lag of M actuators, as in :class:`mt_nodes.world.drive.plant.Actuator`."""

    def __init__(self, count: int, dead_s: float, lag_s: float, step_s: float, value: float) -> None:
        self._demanded = np.full((round(dead_s / step_s) + 1, count), value)
        self._share = 1.0 - float(np.exp(-step_s / lag_s)) if lag_s > 0.0 else 1.0
        self._now = 0

    def towards(self, demanded: Floats, value: Floats) -> Floats:
        """Return (M,) the actuators' positions after a step, without their own limits."""
        self._demanded[self._now] = demanded
        self._now = (self._now + 1) % len(self._demanded)
        return np.asarray(value + self._share * (self._demanded[self._now] - value))


def _braked(speed_mps: Floats, acceleration_mps2: Floats, step_s: float) -> tuple[Floats, Floats]:
    """Return speed and distance after a step of constant acceleration, which never leads to reversing."""
    after = speed_mps + acceleration_mps2 * step_s
    stops = after < 0.0
    to_rest = speed_mps * speed_mps / np.where(stops, -2.0 * acceleration_mps2, 1.0)
    return np.maximum(after, 0.0), np.where(stops, to_rest, (speed_mps + after) / 2.0 * step_s)
