# SPDX-License-Identifier: Apache-2.0
"""The hardest manoeuvres of a car: a set at the limit of its tyres.

Each has up to four phases with an acceleration along and across the road, in terms of the friction circle: full
braking, full steering, both combined at angles, one after the other, and swerves with counter-steering (lane changes).
The lateral acceleration gives the wheels' angle at the present speed: steering = atan(L a / v^2). At the end the car
returns to its initial heading and brakes. Bends are not considered: where the road turns sharply within the stopping
distance, all may leave it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import cos, inf, nan, radians, sin

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.world.drive.scenario import Vehicle

Phase = tuple[float, float, float]
"""How long in seconds, and what is asked along and across, in m/s²; across NaN: straighten."""

_PHASES = 4
_ROLL_S = 4.0
"""Who rolls on brakes after that: it has passed whoever was there, or never will."""
_STRAIGHTEN_S, _LEAST_MPS = 0.3, 1.0
_SIDES = (("left", 1.0), ("right", -1.0))
_TIMES_S = tuple(k / 10.0 for k in range(1, 13))


@dataclass(frozen=True, eq=False)
class Manoeuvres:
    """M manoeuvres, the simplest first.

    ``names``: (M,). ``until_s``: (M, 4) ends of the phases, from the start of the manoeuvre. ``along_mps2``,
    ``across_mps2``: (M, 4) demanded accelerations. ``most_mps2``: limit of the tyres.
    """

    names: tuple[str, ...]
    until_s: Floats
    along_mps2: Floats
    across_mps2: Floats
    most_mps2: float
    vehicle: Vehicle

    def __len__(self) -> int:
        return len(self.names)

    def commands_at(self, time_s: float, speed_mps: Floats, turned_rad: Floats) -> tuple[Floats, Floats]:
        """Return acceleration and steering (M,) demanded by each, within the limits of engine, brakes and wheels.

        Args:
            time_s: from the start of the manoeuvre. speed_mps: (M,). turned_rad: (M,) change of heading since then.
        """
        rows = np.arange(len(self))
        phase = np.minimum((time_s >= self.until_s - 1e-9).sum(axis=1), _PHASES - 1)
        along, across = self.along_mps2[rows, phase], self.across_mps2[rows, phase]
        back = np.clip(-turned_rad * speed_mps / _STRAIGHTEN_S, -self.most_mps2, self.most_mps2)
        across = np.where(np.isnan(across), back, across)
        car, speed = self.vehicle, np.maximum(speed_mps, _LEAST_MPS)
        steering = np.arctan(car.wheelbase_m * across / speed**2)
        return (
            np.clip(along, -car.brake_mps2, car.acceleration_mps2),
            np.clip(steering, -car.steering_rad, car.steering_rad),
        )


def extremes(vehicle: Vehicle, most_mps2: float) -> Manoeuvres:
    """Return the set for a car on tyres with this limit."""
    named = [*_straight(vehicle), *_circle(most_mps2), *_swerves(vehicle, most_mps2)]
    phase_s = np.array([[phases[min(i, len(phases) - 1)] for i in range(_PHASES)] for _, phases in named])
    return Manoeuvres(
        tuple(name for name, _ in named),
        np.cumsum(phase_s[..., 0], axis=1),
        phase_s[..., 1],
        phase_s[..., 2],
        most_mps2,
        vehicle,
    )


def _straight(vehicle: Vehicle) -> Iterator[tuple[str, list[Phase]]]:
    brake = (inf, -vehicle.brake_mps2, 0.0)
    yield "roll on", [(_ROLL_S, 0.0, 0.0), brake]
    yield "brake", [brake]
    yield "speed up", [(_ROLL_S / 2.0, vehicle.acceleration_mps2, 0.0), brake]


def _circle(most: float) -> Iterator[tuple[str, list[Phase]]]:
    """Yield braking and steering combined, at angles of the friction circle, to the end."""
    for side, sign in _SIDES:
        for angle in (15, 30, 45, 60, 75):
            along, across = -most * cos(radians(angle)), sign * most * sin(radians(angle))
            yield f"{side} at {angle} degrees", [(inf, along, across)]
            # The tyres cut demands beyond the circle, but the wheels get there sooner.
            yield f"{side} at {angle} degrees, hastily", [(inf, 1.5 * along, 1.5 * across)]


def _swerves(vehicle: Vehicle, most: float) -> Iterator[tuple[str, list[Phase]]]:
    """Yield steering and then braking; braking and then steering; to one side and back."""
    hard = -vehicle.brake_mps2
    brake, rolling = (inf, hard, nan), [(_ROLL_S, 0.0, nan), (inf, hard, nan)]
    for side, sign in _SIDES:
        for k in _TIMES_S:
            yield f"{side} {k:g} s, brake", [(k, 0.0, sign * most), brake]
            yield f"{side} in haste {k:g} s, brake", [(k, 0.0, 3.0 * sign * most), brake]
            yield f"brake {k:g} s, {side}", [(k, hard, 0.0), (1.0, 0.0, sign * most), brake]
            yield f"roll {k:g} s, {side}", [(k, 0.0, 0.0), (0.5, 0.0, sign * most), *rolling]
            for how, along, across in (("", 0.0, 1.0), (" gently", 0.0, 0.5), (" braking", -0.5, 0.87)):
                out, back = (k, along * most, sign * across * most), (k, along * most, -sign * across * most)
                yield f"{side}{how} {k:g} s and back, brake", [out, back, brake]
                yield f"{side}{how} {k:g} s and back, roll on", [out, back, *rolling]
