# SPDX-License-Identifier: Apache-2.0
"""The stack stops in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.arm_series import COMMANDED, Flags, Numbers, SeriesWindow
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.command_series import CommandSeriesCheck, comes_within, drive_along, told
from mt_nodes.relations.checks.controls import DRIVES, STANDS_MPS, nothing_to_judge
from mt_nodes.relations.checks.keeps_current_throughout import KeepsCurrentThroughout

_ANY_RAD = 3.2


@dataclass(frozen=True)
class StopsWithin(CommandSeriesCheck):
    """After the change appears it takes at most ``within_s`` until the follow-up stands, or brakes as much as is asked.

    Who commands a speed can lower it no faster than the vehicle brakes, so that the single pairs on the way say little
    (``stops`` judges those); who commands an acceleration or pedals is asked for a deceleration. A source that drives
    slower than ``from_mps`` when the change appears, or brakes so then, leaves nothing to demand, and what is judged
    of it must last that long: at most ``open_loop_s`` of a stack that remembers.

    Of control and sham, which give no reason to stop, it demands that how fast to go stays the source's, to within what
    it asks for.
    """

    reads: ClassVar[tuple[str, ...]] = COMMANDED

    within_s: float = param(1.5, low=0.0, high=60.0, unit="s", help="longest time until it stands, or brakes so")
    at_most_mps: float = param(STANDS_MPS, low=0.0, high=5.0, unit="m/s", help="speed that counts as standing")
    from_mps: float = param(1.0, low=0.0, high=50.0, unit="m/s", help="speed from which stopping is demanded")
    at_least_mps2: float = param(2.0, low=0.01, high=20.0, unit="m/s²", help="deceleration, if that is what is told")
    at_least_pedal: float = param(0.5, low=0.01, high=1.0, help="brake less throttle, if that is what is told")

    def __post_init__(self) -> None:
        if self.from_mps <= self.at_most_mps:
            raise UsageError(f"from_mps {self.from_mps:g} is not above at_most_mps {self.at_most_mps:g}")

    @property
    def background(self) -> Check:
        """What control and sham are judged by."""
        fall = max(self.from_mps - self.at_most_mps, 0.001)
        return KeepsCurrentThroughout(_ANY_RAD, fall, self.at_least_mps2, self.at_least_pedal)

    def judge_series(self, stretch: SeriesWindow) -> Judgement:
        """Look when the follow-up stands."""
        quantity = told(stretch.source)
        before = drive_along(stretch.source, quantity)[int(np.argmax(stretch.changed))]
        if quantity == "speed" and before < self.from_mps:
            return nothing_to_judge(f"drove {before:.2f} m/s, slower than {self.from_mps:g} m/s already", "s")
        if quantity != "speed" and self._enough(quantity, np.array([before]))[0]:
            return nothing_to_judge(f"brakes by {-before:.2f} {DRIVES[quantity]} already", "s")
        does = "stands" if quantity == "speed" else "brakes so"
        return comes_within(
            stretch, self._enough(quantity, drive_along(stretch.followup, quantity)), self.within_s, does
        )

    def _enough(self, quantity: str, values: Numbers) -> Flags:
        """Return (N,) whether what is commanded is stopping."""
        most = {"speed": self.at_most_mps, "acceleration": -self.at_least_mps2, "pedals": -self.at_least_pedal}
        return np.asarray(values <= most[quantity] + 1e-9)
