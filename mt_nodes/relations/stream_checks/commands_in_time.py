# SPDX-License-Identifier: Apache-2.0
"""Checks of commands and of the ego's own motion: speed against a limit, accelerations against what is possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.outputs import Control
from mt_nodes.relations.stream_checks.base import (
    Breach,
    StreamCheck,
    StreamFinding,
    StreamMemory,
    WatchedInstant,
    nothing_watched,
)

#: A bound that is met exactly is not exceeded: speeds are rounded, and their differences divided by a short time.
_MET_EXACTLY = 1.001
#: Slower than this is standing.
_STANDS_MPS = 0.05


@dataclass(frozen=True)
class SpeedWithinLimit(StreamCheck):
    """The commanded speed, and the ego's own where it is known, is at most ``limit_mps`` and ``over_mps`` more."""

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("control",),)
    because: ClassVar[str] = "No stack may drive faster than the limit of the road."

    limit_mps: float = param(36.1, low=0.1, high=150.0, unit="m/s", help="speed limit; the default is 130 km/h")
    over_mps: float = param(0.5, low=0.0, high=20.0, unit="m/s", help="what a controller may overshoot by")

    def begin(self) -> StreamMemory:
        """Return what compares each instant by itself."""
        return _SpeedLimit(self)


class _SpeedLimit(StreamMemory):
    def __init__(self, check: SpeedWithinLimit) -> None:
        self._check = check

    def look(self, instant: WatchedInstant) -> StreamFinding:
        control, motion = instant.output.control, instant.bundle.motion
        speeds = {
            "commanded speed": None if control is None else control.speed_mps,
            "speed of the ego": None if motion is None else motion.speed_mps,
        }
        known = {name: speed for name, speed in speeds.items() if speed is not None and np.isfinite(speed)}
        if not known:
            return nothing_watched("neither a commanded speed nor the ego's own")
        bound = self._check.limit_mps + self._check.over_mps
        breaches = [
            Breach(
                *(name, None, round(speed, 3), round(bound, 3), "m/s"),
                f"{name} is {speed:.1f} m/s where {self._check.limit_mps:g} m/s are allowed",
                instant.stamp_ns,
            )
            for name, speed in known.items()
            if speed > bound
        ]
        return StreamFinding((None,), tuple(breaches))


@dataclass(frozen=True)
class CommandsPossible(StreamCheck):
    """Commands change as a vehicle can, and as people in it can bear.

    From one command to the next: the acceleration, as commanded or as the commanded speed changes; its change in time
    (jerk); the lateral acceleration, speed times commanded yaw rate. Changes need two commands, at most ``gap_s``
    apart. Brakes may be put on faster than anything else may change, because that can be an emergency; to let go of
    them cannot. Who comes to a stand or leaves it has no jerk: there, the acceleration ends at once in any vehicle.
    A speed that a controller below leads to, and not at once, is a target: say so by ``speeds``, or each step of it is
    taken for an acceleration.

    Bounds are those of what a vehicle can, not of comfort, which an emergency must exceed: ISO 15622:2018 has an ACC
    brake by at most 5 m/s² with 5 m/s³ at walking pace, and by 3.5 m/s² with 2.5 m/s³ from 20 m/s on; ISO 11270:2014
    has lane keeping steer by at most 3 m/s² (as the open driver assistants of commaai/opendbc and sunnypilot apply
    both). Full braking is that of dry asphalt, a friction coefficient of 1.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("control",),)
    because: ClassVar[str] = "A command that no vehicle can follow is a mistake, whatever stands ahead."

    speeds: str = param(
        "profile",
        choices=("profile", "target"),
        help="a commanded speed is that of now, or one that is to be reached: changes of a target say nothing",
    )
    brake_mps2: float = param(
        9.8, low=0.1, high=50.0, unit="m/s²", help="strongest braking; cars must reach 6.4 (UN R13-H)"
    )
    accelerate_mps2: float = param(
        4.0, low=0.1, high=50.0, unit="m/s²", help="strongest acceleration; that of ISO 15622 below 5 m/s"
    )
    lateral_mps2: float = param(
        4.0, low=0.1, high=50.0, unit="m/s²", help="strongest acceleration to the side; ISO 11270 allows 3"
    )
    jerk_mps3: float = param(
        40.0, low=0.1, high=1000.0, unit="m/s³", help="largest change of acceleration; of full braking in 0.25 s"
    )
    brake_jerk_mps3: float = param(
        65.0, low=0.1, high=1000.0, unit="m/s³", help="that of brakes put on; full in 0.15 s, assumed of fast boosters"
    )
    gap_s: float = param(0.5, low=0.01, high=10.0, unit="s", help="commands farther apart are not compared")

    def begin(self) -> StreamMemory:
        """Return a memory without commands."""
        return _CommandMemory(self)


class _CommandMemory(StreamMemory):
    def __init__(self, check: CommandsPossible) -> None:
        self._check = check
        #: Stamp, speed and acceleration of the command before, NaN where unknown.
        self._before: tuple[int, float, float] | None = None

    def look(self, instant: WatchedInstant) -> StreamFinding:
        control = instant.output.control
        if control is None:
            return nothing_watched("no command")
        values = self._values(control, instant.stamp_ns)
        known = [(name, value, bound, unit) for name, value, bound, unit in values if np.isfinite(value)]
        breaches = tuple(
            Breach(
                name, None, round(value, 3), bound, unit, f"{name} of {value:.1f} {unit} is commanded", instant.stamp_ns
            )
            for name, value, bound, unit in known
            if value > bound * _MET_EXACTLY
        )
        return StreamFinding((None,) if known else (), breaches, "" if known else "no command before to compare with")

    def _values(self, control: Control, stamp_ns: int) -> list[tuple[str, float, float, str]]:
        """Return what is bounded: name, value, bound and unit; NaN where it is not known."""
        check, (then_ns, speed, acceleration) = self._check, self._before or (0, np.nan, np.nan)
        seconds = (stamp_ns - then_ns) * 1e-9 if self._before is not None else np.inf
        if not 0.0 < seconds <= check.gap_s:
            seconds, speed, acceleration = np.inf, np.nan, np.nan
        change = (control.speed_mps - speed) / seconds if check.speeds == "profile" else np.nan
        now = control.acceleration_mps2 if np.isfinite(control.acceleration_mps2) else change
        # Of one who stands nothing tells how hard the brakes are on: what comes next is not compared with it.
        stands = abs(control.speed_mps) < _STANDS_MPS
        self._before = stamp_ns, control.speed_mps, np.nan if stands else now
        jerk = np.nan if stands else (now - acceleration) / seconds
        return [
            ("braking", -now, check.brake_mps2, "m/s²"),
            ("acceleration", now, check.accelerate_mps2, "m/s²"),
            ("lateral acceleration", abs(control.speed_mps * control.yaw_rate_radps), check.lateral_mps2, "m/s²"),
            ("jerk of brakes put on", -jerk if now < 0.0 else np.nan, check.brake_jerk_mps3, "m/s³"),
            ("jerk", jerk if now < 0.0 else abs(jerk), check.jerk_mps3, "m/s³"),
        ]
