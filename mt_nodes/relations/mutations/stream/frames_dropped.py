# SPDX-License-Identifier: Apache-2.0
"""Frames that never come."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Followup
from mt_nodes.relations.mutations.stream.whole_stream import OneKind, part_of, topics_of


@dataclass(frozen=True)
class FramesDropped(OneKind):
    """Sends nothing of some frames, several in a row if wanted: a lost packet, a full queue, a sensor that pauses.

    Best effort, which ROS 2 offers for sensor data, may lose samples, and a full history drops its oldest (ROS 2
    documentation, quality of service settings). The pair of a frame that is not sent is SKIPPED: what its absence did
    to a stack shows in the frames after it. ``of`` one kind of sensor the others' messages of the instant go out, and
    an answer is expected unless the sensor that leads is dropped. Guaranteed: nothing of a dropped frame goes out,
    every other one as it is.
    """

    def strike(self, bundle: Bundle, nth: int) -> Followup:
        """Send what is not dropped, if anything."""
        rest = part_of(bundle, frozenset(m.topic for m in bundle.messages) - self.struck(bundle))
        return Followup(((0, rest),) if rest.messages else ())

    def prove_strike(self, source: Bundle, followup: Followup, nth: int) -> str | None:
        """Count what goes out."""
        gone = topics_of(source, self.of)
        expected = {message.topic: message for message in source.messages if message.topic not in gone}
        got = {message.topic: message for _, made in followup.bundles for message in made.messages}
        if got != expected or sum(len(made.messages) for _, made in followup.bundles) != len(expected):
            return (
                f"messages of {', '.join(got) or 'none'} of a dropped frame, expected {', '.join(expected) or 'none'}"
            )
        kept = [wire.topic for _, made in followup.bundles for wire in made.wires if wire.topic in gone]
        return f"{kept[0]}: the recorded message is still there" if kept else None
