# SPDX-License-Identifier: Apache-2.0
"""What goes out of a follow-up, in which order and when."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from mt_nodes.arms import Arm
from mt_nodes.frames import Bundle
from mt_nodes.mutations.base import Followup


@dataclass(frozen=True, eq=False)
class Part:
    """One bundle of a follow-up, ``delay_ns`` after its source's instant; topics in ``changed`` are encoded anew."""

    bundle: Bundle
    changed: frozenset[str]
    source_ns: int
    delay_ns: int

    def send(self, arm: Arm) -> Any:
        """Give it to an arm and return the ticket."""
        return arm.send(self.bundle, self.changed, self.source_ns, self.delay_ns)


def parted(followup: Followup, source: Bundle) -> tuple[Bundle | None, tuple[Part, ...]]:
    """Return what of the source passes by itself, if anything does, and the parts of the follow-up.

    A follow-up that is one bundle in the source's place goes out whole, in the order of the bag. Otherwise sensor
    messages alone are dropped, delayed or repeated: all else, such as /tf, passes once and at its own time.
    """
    plain = len(followup.bundles) == 1 and followup.bundles[0][0] == 0 and followup.first.wires is source.wires
    parts = tuple(
        Part(made if plain else _sensors(made), made.changed_topics(source), source.stamp_ns, delay_ns)
        for delay_ns, made in followup.bundles
    )
    return None if plain else _others(source), parts


def _sensors(bundle: Bundle) -> Bundle:
    topics = {message.topic for message in bundle.messages}
    return replace(bundle, wires=tuple(wire for wire in bundle.wires if wire.topic in topics))


def _others(bundle: Bundle) -> Bundle:
    topics = {message.topic for message in bundle.messages}
    wires = tuple(wire for wire in bundle.wires if wire.topic not in topics)
    return replace(bundle, clouds=(), images=(), camera_infos=(), wires=wires)
