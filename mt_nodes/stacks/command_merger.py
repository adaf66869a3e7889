# SPDX-License-Identifier: Apache-2.0
"""One command out of those of several topics: what one leaves open another may tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from mt_nodes.data.messages import Wire
from mt_nodes.data.outputs import Control
from mt_nodes.stacks.topic_sync import Joiner


@dataclass(frozen=True, eq=False)
class MergedCommand:
    """A command, and the messages that it was read from, the leading one first."""

    said: Control
    wires: tuple[Wire, ...]


@dataclass(frozen=True, eq=False)
class _Part:
    stamp_ns: int
    command: MergedCommand


class CommandMerger:
    """Gives a command as soon as every topic has told its part of it, near enough to the leading one in time.

    Of several the nearest is taken, and each once; see :class:`~mt_nodes.stacks.topic_sync.Joiner`. Times are the
    messages' stamps or, where one of the types has none, those of their arrival.

    Args:
        topics: the leading one first, whose stamp the command bears.
        within_ns: how far from the leading message the others may be.
        by_arrival: whether time is that of arrival.
    """

    def __init__(self, topics: Sequence[str], within_ns: int, by_arrival: bool) -> None:
        self._topics, self._within_ns, self._by_arrival = tuple(topics), within_ns, by_arrival
        self.forget()

    def take(self, topic: str, said: Control, wire: Wire, arrived_ns: int) -> MergedCommand | None:
        """Take a message in; return the command that it completes, None when it completes none."""
        stamp_ns = arrived_ns if self._by_arrival or said.stamp_ns is None else said.stamp_ns
        instant = self._joiner.take(topic, _Part(stamp_ns, MergedCommand(said, (wire,))))
        if instant is None:
            return None
        parts = [instant[name].command for name in self._topics]
        return MergedCommand(
            merged([part.said for part in parts]), tuple(wire for part in parts for wire in part.wires)
        )

    def forget(self) -> None:
        """Forget what waits for its other parts: the stack was restarted."""
        self._joiner = Joiner[_Part](self._topics, self._within_ns)


def merged(commands: Sequence[Control]) -> Control:
    """Return the first command with what it leaves open filled in by the next that tells it."""
    made = commands[0]
    for other in commands[1:]:
        told = {f.name: getattr(other, f.name) for f in fields(Control) if f.name != "stamp_ns"}
        made = replace(made, **{name: value for name, value in told.items() if math.isnan(getattr(made, name))})
    return made
