# SPDX-License-Identifier: Apache-2.0
"""Many copies of the ego at once, each with its own commands: a vectorised :class:`mt_nodes.world.drive.plant.Plant`.

Formulas are those of ``plant.py``; results differ only in the last bits of sine and cosine.
"""

from __future__ import annotations

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.world.drive.scenario import Vehicle
from mt_nodes.world.drive.trace import EGO_COLUMNS, EgoState


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
