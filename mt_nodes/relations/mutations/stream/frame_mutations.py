# SPDX-License-Identifier: Apache-2.0
"""Frames that are lost, late, repeated, out of order or frozen."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.stream.whole_stream import (
    NowAndThen,
    OneKind,
    WholeStream,
    lead_of,
    moved,
    need_messages,
    need_room,
    part_of,
    passed,
    same,
    same_content,
    topics_of,
    with_messages,
)


@dataclass(frozen=True)
class FramesDropped(OneKind):
    """Drops some frames, several in a row if wanted: a lost packet, a full queue, a sensor that pauses.

    Best effort, which ROS 2 offers for sensor data, may lose samples, and a full history drops its oldest (ROS 2
    documentation, quality of service settings). The pair of a dropped frame is SKIPPED: the effect of its absence shows
    in the frames after it. With ``of`` one kind of sensor the other messages of the instant go out, and an answer is
    expected unless the leading sensor is dropped. Guaranteed: nothing of a dropped frame is sent, and every other frame
    is unchanged.
    """

    def strike(self, bundle: Bundle, nth: int) -> Followup:
        """Send the messages that are not dropped, if any."""
        rest = part_of(bundle, frozenset(m.topic for m in bundle.messages) - self.affected_topics(bundle))
        return Followup(((0, rest),) if rest.messages else ())

    def prove_strike(self, source: Bundle, followup: Followup, nth: int) -> str | None:
        """Count the messages."""
        dropped = topics_of(source, self.of)
        expected = {message.topic: message for message in source.messages if message.topic not in dropped}
        got = {message.topic: message for _, sent in followup.bundles for message in sent.messages}
        if got != expected or sum(len(sent.messages) for _, sent in followup.bundles) != len(expected):
            return (
                f"messages of {', '.join(got) or 'none'} of a dropped frame, expected {', '.join(expected) or 'none'}"
            )
        not_dropped = [wire.topic for _, sent in followup.bundles for wire in sent.wires if wire.topic in dropped]
        return f"{not_dropped[0]}: the recorded message is still there" if not_dropped else None


@dataclass(frozen=True)
class RateReduced(WholeStream):
    """Sends one of ``one_of`` frames, evenly spaced: a sensor with a lower rate.

    The frames sent, numbered from 0, are those at multiples of ``one_of``, which need not be an integer: 1.25 turns 10
    Hz into 8 Hz. Each sweep keeps its points and time, so it is assumed that a slower sensor measures what a fast one
    does. Pairs of dropped frames are SKIPPED. Guaranteed: of the first n frames, for every n, n / one_of are sent,
    rounded up.
    """

    one_of: float = param(
        2.0, low=1.001, high=1000.0, unit="frames", neutral=1.001, help="of so many frames one is sent"
    )

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Nothing is random."""
        need_messages(bundle)
        return {}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Send it if the next multiple comes before the next frame."""
        return Followup(((0, bundle),) if -bundle.index % Fraction(self.one_of) < 1 else ())

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Count how many frames are due up to this one, and to the one before."""
        before, upto = (ceil(n / Fraction(self.one_of)) for n in (source.index, source.index + 1))
        if upto > before:
            return passed(source, followup)
        return f"{len(followup.bundles)} bundles of a frame that is left out" if followup.bundles else None


@dataclass(frozen=True)
class FramesRepeated(NowAndThen):
    """Sends some frames, or all (``every: 1``), again: a sender that repeats, or a duplicate relay.

    UDP, which sensors use, may deliver a datagram twice (RFC 768). The answer to the first is judged; the effect of the
    repetition shows in the frames after. Guaranteed: the source itself is sent, with its stamps, as often as promised.
    """

    strikes_all = True

    times: int = param(1, low=1, high=10, neutral=1, help="how often it comes again")
    after_s: float = param(0.0, low=0.0, high=1.0, unit="s", neutral=0.0, help="how long after the one before")

    def strike(self, bundle: Bundle, nth: int) -> Followup:
        """Send it again."""
        return Followup(tuple((round(k * self.after_s * 1e9), bundle) for k in range(self.times + 1)))

    def prove_strike(self, source: Bundle, followup: Followup, nth: int) -> str | None:
        """Count and compare."""
        if len(followup.bundles) != self.times + 1:
            return f"{len(followup.bundles)} bundles, expected {self.times + 1}"
        for k, (delay_ns, sent) in enumerate(followup.bundles):
            if abs(delay_ns / 1e9 - k * self.after_s) > 1e-9:
                return f"bundle {k} comes after {delay_ns / 1e9} s, expected {k * self.after_s:g} s"
            if broken := same(source, sent, 0):
                return broken
        return None


@dataclass(frozen=True)
class FramesReordered(NowAndThen):
    """Holds some frames back, several in a row if wanted, until their successor is sent: they arrive out of order.

    UDP does not guarantee the order of datagrams (RFC 768), nor do threads that pass frames on. The pair of a held-back
    frame is SKIPPED; it goes out after its successor, whose answer is judged. Frames held back at the end of a drive
    are lost. Guaranteed: the successor is sent first, then the frames held back, oldest first; all are unchanged.
    """

    @property
    def length(self) -> int:
        """The held-back frames, and the one that they follow."""
        return self.burst + 1

    @property
    def needs_history(self) -> int:
        """All held-back frames."""
        return self.burst

    def check(self, bundle: Bundle, nth: int) -> None:
        """Refuse if a held-back frame is missing."""
        if nth == self.length and len(self._burst(bundle)) < self.burst:
            raise NotApplicable(
                f"bundle {bundle.index} has {len(self._burst(bundle))} before it, expected {self.burst}"
            )

    def strike(self, bundle: Bundle, nth: int) -> Followup:
        """Hold it back, or send it and the held-back frames."""
        return Followup(((0, bundle), *((0, b) for b in self._burst(bundle))) if nth == self.length else ())

    def prove_strike(self, source: Bundle, followup: Followup, nth: int) -> str | None:
        """Compare one by one."""
        if nth < self.length:
            return f"{len(followup.bundles)} bundles of a frame that is held back" if followup.bundles else None
        expected = [source, *source.earlier[len(source.earlier) - self.burst :]]
        numbers = [(delay_ns, sent.index) for delay_ns, sent in followup.bundles]
        if numbers != [(0, b.index) for b in expected]:
            return f"delays and numbers {numbers}, expected {[(0, b.index) for b in expected]}"
        pairs = zip(expected, followup.bundles, strict=True)
        return next((broken for old, (_, new) in pairs if (broken := same(old, new, 0))), None)

    def _burst(self, bundle: Bundle) -> tuple[Bundle, ...]:
        return tuple(b for b in bundle.earlier if bundle.index - self.burst <= b.index < bundle.index)


@dataclass(frozen=True)
class FramesDelayed(OneKind):
    """Sends some frames, or all (``every: 1``), later: latency of a driver, a network or a busy machine.

    Stamps stay, as from a sensor that stamps its measurements, or are those of sending, as from a driver that stamps on
    arrival. Frames keep their order: those due meanwhile come after, as in any queue; frames_reordered changes the
    order. With ``of`` one kind of sensor the other messages of the instant come in time, and one answer is expected to
    both; a delay of more than a period also delays the others of the next instant. Physical argument: everything
    between sensor and stack takes time. Guaranteed: delayed messages are sent later by the delay, all others on time;
    all equal the source byte for byte except for stamps, which move by 0 or by the delay.
    """

    strikes_all = True

    delay_s: float = param(0.05, low=0.0, high=60.0, unit="s", neutral=0.0, help="how much later")
    stamps: str = param("kept", choices=("kept", "new"), help="time of the measurement, or of sending")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._delay_ns == 0:
            raise UsageError(f"got delay_s {self.delay_s:g}, expected a nanosecond at least")

    @property
    def _delay_ns(self) -> int:
        return round(self.delay_s * 1e9)

    @property
    def _moved_ns(self) -> int:
        return self._delay_ns if self.stamps == "new" else 0

    def check(self, bundle: Bundle, nth: int) -> None:
        """Refuse stamps that cannot be moved."""
        need_room(bundle, self._moved_ns)

    def strike(self, bundle: Bundle, nth: int) -> Followup:
        """Send it later."""
        late = self.affected_topics(bundle)
        new = {m.topic: moved(m, self._moved_ns) for m in bundle.messages if self._moved_ns and m.topic in late}
        delayed = with_messages(bundle, bundle.stamp_ns + (self._moved_ns if self.leads(bundle) else 0), new)
        in_time = frozenset(message.topic for message in bundle.messages) - late
        parts = ((0, part_of(delayed, in_time)), (self._delay_ns, part_of(delayed, late)))
        return Followup(parts if in_time else ((self._delay_ns, delayed),), Effects(numbers={"delay_s": self.delay_s}))

    def prove_strike(self, source: Bundle, followup: Followup, nth: int) -> str | None:
        """Compare instants and messages."""
        late = topics_of(source, self.of)
        due = [(m.topic, delay_ns / 1e9) for delay_ns, sent in followup.bundles for m in sent.messages]
        expected_s = {m.topic: self.delay_s if m.topic in late else 0.0 for m in source.messages}
        if sorted(t for t, _ in due) != sorted(expected_s) or any(
            abs(s - expected_s[topic]) > 1e-9 for topic, s in due
        ):
            return f"delays {due} s, expected {expected_s} s"
        sent = followup.first.joined_with(bundle for _, bundle in followup.bundles[1:])
        back = {m.topic: moved(m, -self._moved_ns) for m in sent.messages if m.topic in late}
        answers_move = self.of in ("all", lead_of(source))
        stamp_ns = sent.stamp_ns - (self._moved_ns if answers_move else 0)
        return same(source, with_messages(sent, stamp_ns, back), 0)


@dataclass(frozen=True)
class FramesFrozen(OneKind):
    """Sends an earlier frame instead of some, several in a row if wanted: a driver that repeats its buffer.

    All frames of a burst show the last one before it; with their own stamps (new stamps on sending), or with its stamp
    (the whole message again). Assumed, because no source was found on how drivers freeze: both are possible for a
    reader of a buffer that is no longer written. With ``of`` one kind of sensor the other messages stay. Guaranteed:
    every message of a frozen frame equals that of the frame before the burst, byte for byte except for the stamp; all
    other frames and messages are unchanged.
    """

    stamps: str = param("new", choices=("new", "old"), help="of what is frozen: its own time, or that of what it shows")

    @property
    def needs_history(self) -> int:
        """To the frame before a burst."""
        return self.burst

    def check(self, bundle: Bundle, nth: int) -> None:
        """Refuse if the frame before the burst cannot replace this one."""
        before = _numbered(bundle, bundle.index - nth)
        if before is None:
            raise NotApplicable(f"bundle {bundle.index - nth}, which bundle {bundle.index} would show, is not there")
        topics = {message.topic for message in before.messages}
        if lacking := sorted(self.affected_topics(bundle) - topics):
            raise NotApplicable(f"bundle {before.index}, which bundle {bundle.index} would show, has no {lacking[0]}")

    def strike(self, bundle: Bundle, nth: int) -> Followup:
        """Send the frame before the burst."""
        before = _numbered(bundle, bundle.index - nth)
        if before is None:
            raise LookupError(f"bundle {bundle.index - nth} is not there")
        new = {message.topic: message.stamp_ns for message in bundle.messages} if self.stamps == "new" else {}
        frozen = [message for message in before.messages if message.topic in self.affected_topics(bundle)]
        frozen_now = {m.topic: moved(m, new.get(m.topic, m.stamp_ns) - m.stamp_ns) for m in frozen}
        changed = with_messages(
            bundle, before.stamp_ns if not new and self.leads(bundle) else bundle.stamp_ns, frozen_now
        )
        return Followup(((0, changed),), Effects(numbers={"frozen_for_frames": nth}))

    def prove_strike(self, source: Bundle, followup: Followup, nth: int) -> str | None:
        """Compare with the earlier bundle and with the current one."""
        if [delay_ns for delay_ns, _ in followup.bundles] != [0]:
            return f"{len(followup.bundles)} bundles, expected one at once"
        sent, former = followup.first, [b for b in source.earlier if b.index == source.index - nth]
        leads = self.of in ("all", lead_of(source))
        stamps = former[0] if self.stamps == "old" and leads else source
        if sent.stamp_ns != stamps.stamp_ns:
            return f"the bundle's stamp is {sent.stamp_ns} ns, expected {stamps.stamp_ns} ns"
        frozen = topics_of(source, self.of)
        for new, old in zip(sent.messages, source.messages, strict=True):
            if old.topic not in frozen:
                if new is not old:
                    return f"{old.topic}: changed, which was not to be frozen"
                continue
            original = next(m for m in former[0].messages if m.topic == old.topic)
            stamp_ns = old.stamp_ns if self.stamps == "new" else original.stamp_ns
            if new.topic != old.topic or new.stamp_ns != stamp_ns:
                return f"{new.topic}: stamp {new.stamp_ns} ns, expected {old.topic} with {stamp_ns} ns"
            if not same_content(original, new):
                return f"{new.topic}: not what bundle {former[0].index} shows"
        return None


def _numbered(bundle: Bundle, index: int) -> Bundle | None:
    return next((b for b in bundle.earlier if b.index == index), None)
