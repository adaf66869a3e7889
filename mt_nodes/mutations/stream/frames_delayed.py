# SPDX-License-Identifier: Apache-2.0
"""Frames that come later."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.effects import Effects
from mt_nodes.errors import UsageError
from mt_nodes.frames import Bundle
from mt_nodes.mutations.base import Followup
from mt_nodes.mutations.stream.whole_stream import NowAndThen, need_room, restamped, same
from mt_nodes.params import param


@dataclass(frozen=True)
class FramesDelayed(NowAndThen):
    """Sends some frames, or all (``every: 1``), later: latency of a driver, a network or a busy machine.

    Stamps stay, as of a sensor that knows when it measured, or are those of sending, as of a driver that stamps what
    arrives. Frames keep their order: what is due meanwhile comes behind, as it does in any queue; frames_reordered
    changes the order. Physical argument: whatever stands between sensor and stack takes time. Guaranteed: one bundle,
    later by the delay, byte for byte the source but for stamps moved by nothing or by the delay.
    """

    strikes_all = True

    delay_s: float = param(0.05, low=0.0, high=60.0, unit="s", help="how much later")
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
        made = restamped(bundle, self._moved_ns) if self._moved_ns else bundle
        return Followup(((self._delay_ns, made),), Effects(numbers={"delay_s": self.delay_s}))

    def prove_strike(self, source: Bundle, followup: Followup, nth: int) -> str | None:
        """Compare instants and messages."""
        due = [delay_ns / 1e9 for delay_ns, _ in followup.bundles]
        if len(due) != 1 or abs(due[0] - self.delay_s) > 1e-9:
            return f"delays {due} s, expected {self.delay_s:g} s"
        return same(source, followup.first, self._moved_ns)
