# SPDX-License-Identifier: Apache-2.0
"""What goes out of a follow-up, in which order and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mt_nodes.data.messages import Bundle
from mt_nodes.engine.arm import Arm, UnansweredInput
from mt_nodes.relations.mutations.base import Followup

NOT_SENT = "not sent: an earlier input of this bundle was not answered and its answer may still come"


@dataclass(frozen=True, eq=False)
class Part:
    """One bundle of a follow-up, ``delay_ns`` after its source's instant; topics in ``changed`` are encoded anew.

    ``late`` are further pieces of the same input: sensors that the bundle lacks, and come later.
    """

    bundle: Bundle
    changed: frozenset[str]
    source_ns: int
    delay_ns: int
    late: tuple[Part, ...] = ()

    def send(self, arm: Arm) -> Any:
        """Give it to an arm, and at once all that is late; return the ticket."""
        ticket = self.begin(arm)
        if not isinstance(ticket, UnansweredInput):
            for piece in self.late:
                piece.publish_only(arm)
        return ticket

    def begin(self, arm: Arm) -> Any:
        """Give it to an arm without what is late; return the ticket."""
        known = {"late": tuple(piece.bundle for piece in self.late)} if self.late else {}
        return arm.send(self.bundle, self.changed, self.source_ns, self.delay_ns, **known)

    def publish_only(self, arm: Arm) -> None:
        """Give it to an arm as a late piece of an input that was sent."""
        arm.publish_only(self.bundle, self.changed, self.source_ns, self.delay_ns)


def split_followup(followup: Followup, source: Bundle) -> tuple[Bundle | None, tuple[Part, ...]]:
    """Return what of the source passes by itself, if anything does, and the parts of the follow-up.

    A follow-up that is one bundle in the source's place goes out whole, in the order of the bag. Otherwise sensor
    messages alone are dropped, delayed or repeated: all else, such as /tf, passes once and at its own time. A bundle
    that has none of the topics of the one before it, but its stamp, is a late piece of that.
    """
    plain = len(followup.bundles) == 1 and followup.bundles[0][0] == 0 and _same_wires(followup.first, source)
    parts = tuple(
        Part(bundle if plain else _sensors(bundle), bundle.changed_topics(source), source.stamp_ns, delay_ns)
        for delay_ns, bundle in followup.bundles
    )
    return None if plain else source.without_messages(), _whole(parts)


def _same_wires(bundle: Bundle, source: Bundle) -> bool:
    """Return whether a bundle has the source's wires, but for those whose bytes a mutation replaced."""
    if bundle.wires is source.wires or len(bundle.wires) != len(source.wires):
        return bundle.wires is source.wires
    return all(a is b or (a.changed and a.topic == b.topic) for a, b in zip(bundle.wires, source.wires, strict=True))


def _whole(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Put the pieces of one input together."""
    whole: list[Part] = []
    for part in parts:
        last = whole[-1] if whole else None
        if last is not None and last.bundle.stamp_ns == part.bundle.stamp_ns and not _topics(last) & _topics(part):
            whole[-1] = replace(last, late=(*last.late, part))
        else:
            whole.append(part)
    return tuple(whole)


def _topics(part: Part) -> set[str]:
    return {message.topic for piece in (part, *part.late) for message in piece.bundle.messages}


def _sensors(bundle: Bundle) -> Bundle:
    topics = {message.topic for message in bundle.messages}
    return replace(bundle, wires=tuple(wire for wire in bundle.wires if wire.topic in topics))
