# SPDX-License-Identifier: Apache-2.0
"""The grip of the road, learnt from how much the vehicle decelerates when hard braking is commanded."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

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
