# SPDX-License-Identifier: Apache-2.0
"""A clock that is set while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.stream.whole_stream import (
    WholeStream,
    need_messages,
    need_room,
    passed,
    restamped,
    same,
)


@dataclass(frozen=True)
class ClockStepped(WholeStream):
    """Moves all stamps from one frame of a drive on by a constant: the sensors' clock was set, the stack's was not.

    t' = t + step_s from ``from_frame`` on. ntpd steps a clock that is off by more than a threshold, by default 128 ms,
    and slews it below that (its manual, option -x). Frames are sent when they were recorded. Guaranteed: nothing but
    stamps differs; none before that frame, and all from it on, by the step exactly.
    """

    about_stamps = True

    step_s: float = param(
        0.02, low=-3600.0, high=3600.0, unit="s", neutral=0.0, help="added to the stamps; negative: set back"
    )
    from_frame: int = param(
        5, low=0, high=10_000_000, unit="frames", aspect="place", help="number of the first frame after the step"
    )

    def __post_init__(self) -> None:
        if self._step_ns == 0:
            raise UsageError(f"got step_s {self.step_s:g}, expected a nanosecond at least")

    @property
    def _step_ns(self) -> int:
        return round(self.step_s * 1e9)

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Leave nothing to chance."""
        need_messages(bundle)
        need_room(bundle, self._step_ns)
        return {}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Stamp it anew, unless the step is to come."""
        if bundle.index < self.from_frame:
            return Followup(((0, bundle),))
        return Followup(((0, restamped(bundle, self._step_ns)),), Effects(numbers={"offset_s": self.step_s}))

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Take the step off again and compare."""
        if source.index < self.from_frame:
            return passed(source, followup)
        if [delay_ns for delay_ns, _ in followup.bundles] != [0]:
            return f"{len(followup.bundles)} bundles, expected one at once"
        return same(source, restamped(followup.first, -self._step_ns), 0)
