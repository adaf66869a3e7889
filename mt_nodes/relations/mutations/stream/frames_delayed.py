# SPDX-License-Identifier: Apache-2.0
"""Frames that come later."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Followup
from mt_nodes.relations.mutations.stream.whole_stream import (
    OneKind,
    moved,
    need_room,
    part_of,
    same,
    topics_of,
    with_messages,
)


@dataclass(frozen=True)
class FramesDelayed(OneKind):
    """Sends some frames, or all (``every: 1``), later: latency of a driver, a network or a busy machine.

    Stamps stay, as of a sensor that knows when it measured, or are those of sending, as of a driver that stamps what
    arrives. Frames keep their order: what is due meanwhile comes behind, as it does in any queue; frames_reordered
    changes the order. ``of`` one kind of sensor the others' messages of the instant come in time, and one answer is
    expected to both; a delay of more than a period holds up the others of the next instant, too. Physical argument:
    whatever stands between sensor and stack takes time. Guaranteed: what is delayed comes later by the delay, all else
    in time, byte for byte the source but for stamps moved by nothing or by the delay.
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
        late = self.struck(bundle)
        new = {m.topic: moved(m, self._moved_ns) for m in bundle.messages if self._moved_ns and m.topic in late}
        made = with_messages(bundle, bundle.stamp_ns + (self._moved_ns if self.leads(bundle) else 0), new)
        in_time = frozenset(message.topic for message in bundle.messages) - late
        parts = ((0, part_of(made, in_time)), (self._delay_ns, part_of(made, late)))
        return Followup(parts if in_time else ((self._delay_ns, made),), Effects(numbers={"delay_s": self.delay_s}))

    def prove_strike(self, source: Bundle, followup: Followup, nth: int) -> str | None:
        """Compare instants and messages."""
        late = topics_of(source, self.of)
        due = [(m.topic, delay_ns / 1e9) for delay_ns, made in followup.bundles for m in made.messages]
        wanted = {m.topic: self.delay_s if m.topic in late else 0.0 for m in source.messages}
        if sorted(t for t, _ in due) != sorted(wanted) or any(abs(s - wanted[topic]) > 1e-9 for topic, s in due):
            return f"delays {due} s, expected {wanted} s"
        made = followup.first.joined_with(bundle for _, bundle in followup.bundles[1:])
        back = {m.topic: moved(m, -self._moved_ns) for m in made.messages if m.topic in late}
        answers_move = self.of == "all" or (self.of == "lidar") == bool(source.clouds)
        stamp_ns = made.stamp_ns - (self._moved_ns if answers_move else 0)
        return same(source, with_messages(made, stamp_ns, back), 0)
