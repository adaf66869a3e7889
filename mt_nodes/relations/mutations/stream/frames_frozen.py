# SPDX-License-Identifier: Apache-2.0
"""Frames that show what an earlier one showed."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Followup
from mt_nodes.relations.mutations.stream.whole_stream import (
    OneKind,
    moved,
    same_content,
    topics_of,
    with_messages,
)


@dataclass(frozen=True)
class FramesFrozen(OneKind):
    """Sends an earlier frame in place of some, several in a row if wanted: a driver that repeats its buffer.

    All frames of a burst show the last one before it; under their own stamps (what is sent is stamped anew), or under
    its stamp (the whole message is sent again). Assumed, for no source was found that measures how drivers freeze: both
    are what a reader of a buffer that is no longer written can do. ``of`` one kind of sensor the others' messages stay.
    Guaranteed: every message of a frozen frame is that of the frame before the burst, byte for byte but for the stamp;
    every other frame, and message, goes out as it is.
    """

    stamps: str = param("new", choices=("new", "old"), help="of what is frozen: its own time, or that of what it shows")

    @property
    def looks_back(self) -> int:
        """To the frame before a burst."""
        return self.burst

    def check(self, bundle: Bundle, nth: int) -> None:
        """Refuse what the frame before the burst cannot stand for."""
        before = _numbered(bundle, bundle.index - nth)
        if before is None:
            raise NotApplicable(f"bundle {bundle.index - nth}, which bundle {bundle.index} would show, is not there")
        topics = {message.topic for message in before.messages}
        if lacking := sorted(self.struck(bundle) - topics):
            raise NotApplicable(f"bundle {before.index}, which bundle {bundle.index} would show, has no {lacking[0]}")

    def strike(self, bundle: Bundle, nth: int) -> Followup:
        """Send the frame before the burst."""
        before = _numbered(bundle, bundle.index - nth)
        if before is None:
            raise LookupError(f"bundle {bundle.index - nth} is not there")
        new = {message.topic: message.stamp_ns for message in bundle.messages} if self.stamps == "new" else {}
        frozen = [message for message in before.messages if message.topic in self.struck(bundle)]
        shown = {m.topic: moved(m, new.get(m.topic, m.stamp_ns) - m.stamp_ns) for m in frozen}
        made = with_messages(bundle, before.stamp_ns if not new and self.leads(bundle) else bundle.stamp_ns, shown)
        return Followup(((0, made),), Effects(numbers={"frozen_for_frames": nth}))

    def prove_strike(self, source: Bundle, followup: Followup, nth: int) -> str | None:
        """Compare with the former bundle and with the present one."""
        if [delay_ns for delay_ns, _ in followup.bundles] != [0]:
            return f"{len(followup.bundles)} bundles, expected one at once"
        made, former = followup.first, [b for b in source.earlier if b.index == source.index - nth]
        leads = self.of == "all" or (self.of == "lidar") == bool(source.clouds)
        stamps = former[0] if self.stamps == "old" and leads else source
        if made.stamp_ns != stamps.stamp_ns:
            return f"the bundle's stamp is {made.stamp_ns} ns, expected {stamps.stamp_ns} ns"
        frozen = topics_of(source, self.of)
        for new, old in zip(made.messages, source.messages, strict=True):
            if old.topic not in frozen:
                if new is not old:
                    return f"{old.topic}: changed, which was not to be frozen"
                continue
            shown = next(m for m in former[0].messages if m.topic == old.topic)
            stamp_ns = old.stamp_ns if self.stamps == "new" else shown.stamp_ns
            if new.topic != old.topic or new.stamp_ns != stamp_ns:
                return f"{new.topic}: stamp {new.stamp_ns} ns, expected {old.topic} with {stamp_ns} ns"
            if not same_content(shown, new):
                return f"{new.topic}: not what bundle {former[0].index} shows"
        return None


def _numbered(bundle: Bundle, index: int) -> Bundle | None:
    return next((b for b in bundle.earlier if b.index == index), None)
