# SPDX-License-Identifier: Apache-2.0
"""Frames that come more than once."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Followup
from mt_nodes.relations.mutations.stream.whole_stream import NowAndThen, same


@dataclass(frozen=True)
class FramesRepeated(NowAndThen):
    """Sends some frames, or all (``every: 1``), again: a sender that repeats, a relay that is there twice.

    UDP, which sensors send by, does not keep a datagram from arriving twice (RFC 768). The answer to the first is
    judged; what the repeated ones did to a stack shows in the frames after. Guaranteed: the source itself, stamps and
    all, as often as promised.
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
        for k, (delay_ns, made) in enumerate(followup.bundles):
            if abs(delay_ns / 1e9 - k * self.after_s) > 1e-9:
                return f"bundle {k} comes after {delay_ns / 1e9} s, expected {k * self.after_s:g} s"
            if broken := same(source, made, 0):
                return broken
        return None
