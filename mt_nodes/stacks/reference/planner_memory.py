# SPDX-License-Identifier: Apache-2.0
"""State of the planner between instants."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from mt_nodes.data.outputs import Output
from mt_nodes.stacks.reference.evasion import Escape
from mt_nodes.stacks.reference.tracker import NOMINAL_PERIOD_S

#: So long after brakes were asked for they do what they can, and more than this is asked of them then.
_BUILT_UP_S, _HARD_MPS2 = 0.3, 6.0
#: Slower than so the vehicle may have come to stand in between.
_LEAST_MPS = 3.0


@dataclass
class Grip:
    """The largest acceleration that the tyres can transmit, infinite until hard braking was tried.

    A vehicle that is asked to slow down by more than the road gives slows down by what that gives: one learns it as
    soon as brakes have built up, and while one steers nothing, since what goes into bends is lacking along the road.
    """

    most_mps2: float = inf
    _speed_mps: float = inf
    _braking_s: float = 0.0

    def update(self, speed_mps: float, command_mps2: float, steers: bool, elapsed_s: float) -> None:
        """Update with the current speed and the commanded acceleration (positive ahead) since the last update."""
        before, self._speed_mps = self._speed_mps, speed_mps
        hard = command_mps2 <= -_HARD_MPS2 and not steers
        self._braking_s = self._braking_s + elapsed_s if hard else 0.0
        if self._braking_s > _BUILT_UP_S and speed_mps > _LEAST_MPS:
            given = (before - speed_mps) / elapsed_s
            self.most_mps2 = given if 0.0 < given < -command_mps2 else inf


#: After a pause that is longer, or a step back in time, the planner takes over anew.
_PAUSE_S = 1.0


@dataclass
class Memory:
    """State of the planner; without an acceleration it takes over just now.

    ``harmful`` is where it cannot but hit somebody, ``stays`` when it has decided to do so in its lane, and ``struck``
    when it has done so: then it stops for good.
    """

    stamp_ns: int | None = None
    acceleration_mps2: float | None = None
    aside_m: float = 0.0
    escape: Escape | None = None
    harmful: bool = False
    stays: bool = False
    struck: bool = False
    grip: Grip = field(default_factory=Grip)
    output: Output = field(default_factory=Output)

    def elapsed_s(self, stamp_ns: int | None) -> float:
        """Return the time since the last instant; after a jump in time everything else is forgotten."""
        unknown = stamp_ns is None or self.stamp_ns is None
        elapsed = NOMINAL_PERIOD_S if unknown else (stamp_ns - self.stamp_ns) * 1e-9  # type: ignore[operator]
        if not 0.0 <= elapsed <= _PAUSE_S:
            self.acceleration_mps2, self.aside_m, self.escape = None, 0.0, None
            self.harmful = self.stays = self.struck = False
            self.grip = Grip()
            elapsed = NOMINAL_PERIOD_S
        self.stamp_ns = stamp_ns
        return elapsed
