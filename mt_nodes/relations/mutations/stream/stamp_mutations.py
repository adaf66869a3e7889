# SPDX-License-Identifier: Apache-2.0
"""Stamps with jitter, and clocks that are stepped, or drift, while they run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw, Followup, stamps_apart
from mt_nodes.relations.mutations.stream.whole_stream import (
    SENSORS,
    WholeStream,
    lead_of,
    moved,
    need_messages,
    need_room,
    passed,
    restamped,
    same,
    same_content,
    topics_of,
    with_messages,
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
class ClockDrifted(WholeStream):
    """Lets the clock of all sensors, or of one kind of sensor, run fast or slow, as one that nothing disciplines does.

    t' = t + offset_s + rate (t − t0), t0 the first stamp. A clock of IEEE 802.1AS may be off by 100 parts per million
    when it runs freely (IEEE 802.1AS-2020, B.1.1), which is 0.1 ms/s; cameras and LiDARs without PTP or PPS reach more
    (the default is assumed: after ten seconds sensors are a tenth of a sweep apart). Frames are sent at their recorded
    times. Guaranteed: only the stamps of those messages change, each by what its own stamp makes of the formula.
    """

    about_stamps = True

    rate_ms_per_s: float = param(
        1.0, low=-50.0, high=50.0, unit="ms/s", neutral=0.0, help="how fast the stamps run away; negative: fall behind"
    )
    offset_s: float = param(
        0.001, low=-10.0, high=10.0, unit="s", neutral=0.0, help="difference at the beginning; negative: earlier"
    )
    of: str = param("all", choices=("all", *SENSORS), help="whose clock; camera: with their camera infos")

    def __post_init__(self) -> None:
        if self.rate_ms_per_s == 0.0 and self.offset_s == 0.0:
            raise UsageError("got rate_ms_per_s 0 and offset_s 0, expected one of them not to be")

    @property
    def changes(self) -> tuple[str, ...]:
        """All sensors, or the one kind."""
        return self.sensors if self.of == "all" else (self.of,)

    def contradiction(self, inputs: Collection[str], sync_s: float) -> str:
        """Say that a stack does not join the sensor with others from the first instant on."""
        others = [role for role in SENSORS if role in inputs and role != self.of]
        apart_s, comes_near = abs(self.offset_s), self.offset_s * self.rate_ms_per_s < 0.0
        joined = apart_s < sync_s or (apart_s == sync_s and self.rate_ms_per_s == 0.0) or comes_near
        if self.of not in inputs or not others or joined:
            return ""
        return stamps_apart(self.offset_s, self.of, others, sync_s)

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> int:
        """Note when the drift begins."""
        return bundle.stamp_ns

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Nothing is random: the first stamp, and by how much the bundle's moves."""
        need_messages(bundle)
        topics = topics_of(bundle, self.of)
        if not topics:
            raise NotApplicable(f"bundle {bundle.index} has no message of a {self.of}, whose clock drifts")
        start_ns = bundle.stamp_ns if state is None else int(state)
        shifts = [self._shift_ns(m.stamp_ns, start_ns) for m in bundle.messages if m.topic in topics]
        if not any(shifts):
            raise NotApplicable("the drift begins here: no stamp is off by a nanosecond yet")
        for shift_ns in (min(shifts), max(shifts)):
            need_room(bundle, shift_ns)
        return {"start_ns": start_ns}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Move the stamps of those messages, and the bundle's if its leading sensor is among them."""
        start_ns, topics = draw["start_ns"], topics_of(bundle, self.of)
        changed = {
            m.topic: moved(m, self._shift_ns(m.stamp_ns, start_ns)) for m in bundle.messages if m.topic in topics
        }
        lead_ns = self._shift_ns(bundle.stamp_ns, start_ns) if self._leads(bundle) else 0
        drifted = with_messages(bundle, bundle.stamp_ns + lead_ns, changed)
        return Followup(((0, drifted),), Effects(numbers={"offset_s": lead_ns / 1e9}))

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Invert the formula for each stamp, by whole numbers, and compare the rest."""
        if [delay_ns for delay_ns, _ in followup.bundles] != [0]:
            return f"{len(followup.bundles)} bundles, expected one at once"
        new, topics = followup.first, topics_of(source, self.of)
        for old, now in zip(source.messages, new.messages, strict=True):
            if now is old and old.topic not in topics:
                continue
            if old.topic not in topics or not same_content(old, now):
                return f"{old.topic}: more changed than the stamps of {self.of}"
            if broken := self._wrong_stamp(old.stamp_ns, now.stamp_ns, draw["start_ns"]):
                return f"{old.topic}: {broken}"
        if not self._leads(source):
            return None if new.stamp_ns == source.stamp_ns else "the bundle's stamp moved, of another sensor"
        return self._wrong_stamp(source.stamp_ns, new.stamp_ns, draw["start_ns"])

    def _wrong_stamp(self, old_ns: int, new_ns: int, start_ns: int) -> str | None:
        """Say by how much a stamp is off: t = (t' − offset + rate t0) / (1 + rate), in steps of 1e-12."""
        million = 1_000_000_000_000
        rate = round(self.rate_ms_per_s * 1e9)
        back_ns = (million * (new_ns - round(self.offset_s * 1e9)) + rate * start_ns) // (million + rate)
        off_ns = abs(back_ns - old_ns)
        return f"its stamp is {off_ns} ns off the drift" if off_ns > 2 else None

    def _shift_ns(self, stamp_ns: int, start_ns: int) -> int:
        return round(self.offset_s * 1e9) + round(self.rate_ms_per_s * 1e-3 * (stamp_ns - start_ns))

    def _leads(self, bundle: Bundle) -> bool:
        return self.of == "all" or self.of == lead_of(bundle)


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
