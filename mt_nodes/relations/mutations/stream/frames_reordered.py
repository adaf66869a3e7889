# SPDX-License-Identifier: Apache-2.0
"""Frames that come after their successor."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Followup
from mt_nodes.relations.mutations.stream.whole_stream import NowAndThen, same


@dataclass(frozen=True)
class FramesReordered(NowAndThen):
    """Holds some frames back, several in a row if wanted, until their successor went out: arrival out of order.

    UDP does not promise the order of datagrams (RFC 768), nor do threads that hand frames on. The pair of a frame that
    is held back is SKIPPED; it goes out behind its successor, whose answer is judged. Frames held back at the end of a
    drive are lost. Guaranteed: the successor first, then those held back, oldest first, all as they are.
    """

    @property
    def length(self) -> int:
        """Those held back, and the one that they come after."""
        return self.burst + 1

    @property
    def looks_back(self) -> int:
        """To all that is held back."""
        return self.burst

    def check(self, bundle: Bundle, nth: int) -> None:
        """Refuse when what was held back is not there."""
        if nth == self.length and len(self._held(bundle)) < self.burst:
            raise NotApplicable(f"bundle {bundle.index} has {len(self._held(bundle))} before it, expected {self.burst}")

    def strike(self, bundle: Bundle, nth: int) -> Followup:
        """Hold it back, or send it and what was held back."""
        return Followup(((0, bundle), *((0, b) for b in self._held(bundle))) if nth == self.length else ())

    def prove_strike(self, source: Bundle, followup: Followup, nth: int) -> str | None:
        """Compare one by one."""
        if nth < self.length:
            return f"{len(followup.bundles)} bundles of a frame that is held back" if followup.bundles else None
        expected = [source, *source.earlier[len(source.earlier) - self.burst :]]
        numbers = [(delay_ns, made.index) for delay_ns, made in followup.bundles]
        if numbers != [(0, b.index) for b in expected]:
            return f"delays and numbers {numbers}, expected {[(0, b.index) for b in expected]}"
        pairs = zip(expected, followup.bundles, strict=True)
        return next((broken for old, (_, new) in pairs if (broken := same(old, new, 0))), None)

    def _held(self, bundle: Bundle) -> tuple[Bundle, ...]:
        return tuple(b for b in bundle.earlier if bundle.index - self.burst <= b.index < bundle.index)
