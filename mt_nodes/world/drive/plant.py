# SPDX-License-Identifier: Apache-2.0
"""Dynamics of the ego: actuators with delays, tyres with limited grip, a kinematic bicycle.

Kinematic bicycle, reference at the rear axle: x' = v cos(yaw), y' = v sin(yaw), yaw' = v tan(steering) / L (for example
S. LaValle, Planning Algorithms, 2006, section 13.1.2). It is valid well below the tyres' limit; near it a real car
drifts, which this one does not: it only turns less.

Friction circle: the demanded accelerations along (a) and across (v yaw') the road together are at most mu g. If they
exceed it, both are reduced by the same factor, as anti-lock brakes leave some grip for steering. Coasting costs no
speed.

An actuator follows its command after a dead time, with a first-order lag. Wheels turn no faster than the steering
allows; deceleration builds up with at most the brakes' jerk.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import cos, exp, hypot, sin, tan
from typing import Protocol

from mt_nodes.world.drive.scenario import Vehicle
from mt_nodes.world.drive.trace import EgoState


class Car(Protocol):
    """The car of a world: a :class:`Plant`, or another simulator's car."""

    @property
    def state(self) -> EgoState:
        """Its state."""

    def advance(self, acceleration_mps2: float, steering_rad: float) -> None:
        """Advance by one step with these commands to the actuators."""


class Actuator:
    """Dead time and first-order lag. ``dead_s``: rounded to whole steps. ``lag_s``: time constant; 0 for none."""

    def __init__(self, dead_s: float, lag_s: float, step_s: float, value: float) -> None:
        self.value = value
        self._late = deque([value] * round(dead_s / step_s))
        self._share = 1.0 - exp(-step_s / lag_s) if lag_s > 0.0 else 1.0

    def towards(self, demanded: float) -> float:
        """Return the actuator's position after a step, without its own limits."""
        self._late.append(demanded)
        return self.value + self._share * (self._late.popleft() - self.value)


@dataclass(frozen=True)
class Tyres:
    """The friction circle: the limit of all four tyres together."""

    most_mps2: float

    def given(self, along_mps2: float, across_mps2: float) -> tuple[float, float]:
        """Return the part of an acceleration along and across the road that the tyres provide."""
        demanded = hypot(along_mps2, across_mps2)
        if demanded <= self.most_mps2:
            return along_mps2, across_mps2
        share = self.most_mps2 / demanded
        return along_mps2 * share, across_mps2 * share


class Plant:
    """One car on one road. ``state``: its state."""

    def __init__(self, vehicle: Vehicle, start: EgoState, friction_mps2: float, step_s: float) -> None:
        self.state = start
        self._vehicle, self._step_s, self._tyres = vehicle, step_s, Tyres(friction_mps2)
        self._drive = Actuator(vehicle.drive_dead_s, vehicle.drive_lag_s, step_s, 0.0)
        self._wheel = Actuator(vehicle.steering_dead_s, vehicle.steering_lag_s, step_s, start.steering_rad)

    def advance(self, acceleration_mps2: float, steering_rad: float) -> None:
        """Advance by one step with these commands to the actuators."""
        before, step, car = self.state, self._step_s, self._vehicle
        turned = self._wheel.towards(steering_rad) - before.steering_rad
        most = car.steering_rate_radps * step
        steering = self._wheel.value = before.steering_rad + min(max(turned, -most), most)
        pulled = self._drive.towards(acceleration_mps2)
        self._drive.value = max(pulled, self._drive.value - car.brake_jerk_mps3 * step)

        speed = before.speed_mps
        across = speed * speed * tan(steering) / car.wheelbase_m
        along, across = self._tyres.given(self._drive.value, across)
        after, way = _braked(speed, along, step)
        turn = across / speed * (way / speed) if speed > 0.0 else after * tan(steering) / car.wheelbase_m * step / 2.0
        chord = way * _sinc(turn / 2.0)
        heading = before.yaw_rad + turn / 2.0
        self.state = EgoState(
            before.x_m + chord * cos(heading),
            before.y_m + chord * sin(heading),
            before.yaw_rad + turn,
            after,
            (after - speed) / step,
            steering,
        )


def _braked(speed_mps: float, acceleration_mps2: float, step_s: float) -> tuple[float, float]:
    """Return speed and distance after a step of constant acceleration, which never leads to reversing."""
    after = speed_mps + acceleration_mps2 * step_s
    if after >= 0.0:
        return after, (speed_mps + after) / 2.0 * step_s
    return 0.0, speed_mps * speed_mps / (-2.0 * acceleration_mps2)


def _sinc(angle_rad: float) -> float:
    return sin(angle_rad) / angle_rad if abs(angle_rad) > 1e-6 else 1.0
