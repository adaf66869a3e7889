# SPDX-License-Identifier: Apache-2.0
"""Stamps with jitter, and clocks that are stepped while they run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.errors import NotApplicable, UsageError
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
    """Shifts all stamps by a constant from one frame on, as when the sensors' clock is set but not the stack's.

    t' = t + step_s from ``from_frame`` on. ntpd steps a clock that is off by more than a threshold, by default 128 ms,
    and slews it below that (its manual, option -x). Frames are sent at their recorded times. Guaranteed: only stamps
    change: none before that frame, and all from it on by exactly the step.
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
        """Nothing is random."""
        need_messages(bundle)
        need_room(bundle, self._step_ns)
        return {}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Move the stamps from that frame on."""
        if bundle.index < self.from_frame:
            return Followup(((0, bundle),))
        return Followup(((0, restamped(bundle, self._step_ns)),), Effects(numbers={"offset_s": self.step_s}))

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Subtract the step again and compare."""
        if source.index < self.from_frame:
            return passed(source, followup)
        if [delay_ns for delay_ns, _ in followup.bundles] != [0]:
            return f"{len(followup.bundles)} bundles, expected one at once"
        return same(source, restamped(followup.first, -self._step_ns), 0)


@dataclass(frozen=True)
class StampsJittered(WholeStream):
    """Shifts all stamps of a frame slightly, earlier or later, as a driver that stamps on arrival does.

    t' = t + u, u uniform within ± jitter_s, but never before the latest possible stamp of the previous frame: the order
    stays. Physical argument: if arrival is stamped, variation of delays becomes jitter of stamps; the uniform
    distribution is assumed, because the bound is what matters. Guaranteed: all stamps of a frame move by the same
    amount, within the bound and in order; nothing else changes.
    """

    random = True
    about_stamps = True

    jitter_s: float = param(0.005, low=0.0, high=1.0, unit="s", neutral=0.0, help="farthest that a stamp moves")

    def __post_init__(self) -> None:
        if self._jitter_ns == 0:
            raise UsageError(f"got jitter_s {self.jitter_s:g}, expected a nanosecond at least")

    @property
    def _jitter_ns(self) -> int:
        return round(self.jitter_s * 1e9)

    @property
    def needs_history(self) -> int:
        """To the previous frame, whose stamps come before."""
        return 1

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Draw the shift, in nanoseconds."""
        need_messages(bundle)
        gap_ns = _gap_ns(bundle)
        if gap_ns is not None and gap_ns <= 0:
            raise NotApplicable(f"bundle {bundle.index} is {-gap_ns} ns before the one before it")
        most = self._jitter_ns
        earliest_ns = min(bundle.stamp_ns, *(message.stamp_ns for message in bundle.messages))
        least = max(-most, -earliest_ns, -most if gap_ns is None else most - gap_ns + 1)
        by_ns = int(rng.integers(least, most, endpoint=True))
        need_room(bundle, by_ns)
        return {"by_ns": by_ns}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Move the stamps."""
        return Followup(((0, restamped(bundle, draw["by_ns"])),), Effects(numbers={"offset_s": draw["by_ns"] / 1e9}))

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Compare stamps, bound, order and messages."""
        if [delay_ns for delay_ns, _ in followup.bundles] != [0]:
            return f"{len(followup.bundles)} bundles, expected one at once"
        changed = followup.first
        if abs(changed.stamp_ns - source.stamp_ns) > self.jitter_s * 1e9 + 1:
            return f"the stamp moved by {changed.stamp_ns - source.stamp_ns} ns, more than {self.jitter_s:g} s"
        latest = {m.topic: m.stamp_ns + self._jitter_ns for b in source.earlier for m in b.messages}
        for message in changed.messages:
            if message.stamp_ns <= latest.get(message.topic, -1):
                return f"{message.topic}: {message.stamp_ns} ns may come before the one before it"
        return same(source, changed, changed.stamp_ns - source.stamp_ns)


def _gap_ns(bundle: Bundle) -> int | None:
    """Return the least time since the previous frame, over all topics; None if there is none."""
    before = {message.topic: message.stamp_ns for former in bundle.earlier for message in former.messages}
    gaps = [message.stamp_ns - before[message.topic] for message in bundle.messages if message.topic in before]
    return min(gaps, default=None)
