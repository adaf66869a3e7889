# SPDX-License-Identifier: Apache-2.0
"""Merges the commands of several topics into one: each may have a part of it."""

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

    control: Control
    wires: tuple[Wire, ...]


@dataclass(frozen=True, eq=False)
class _Part:
    stamp_ns: int
    command: MergedCommand


class CommandMerger:
    """Yields a command as soon as every topic has its part, near enough in time to the leading one.

    Of several messages the nearest is used, and each once; see :class:`~mt_nodes.stacks.topic_sync.Joiner`. Times are
    the messages' stamps or, where one of the types has none, those of their arrival.
    ``topics``: the leading one first, whose stamp the command has. ``within_ns``: largest time between the leading
    message and another one.
    """

    def __init__(self, topics: Sequence[str], within_ns: int, by_arrival: bool) -> None:
        self._topics, self._within_ns, self._by_arrival = tuple(topics), within_ns, by_arrival
        self.forget()

    def take(self, topic: str, control: Control, wire: Wire, arrived_ns: int) -> MergedCommand | None:
        """Take a message; return the command that it completes, or None."""
        stamp_ns = arrived_ns if self._by_arrival or control.stamp_ns is None else control.stamp_ns
        instant = self._joiner.take(topic, _Part(stamp_ns, MergedCommand(control, (wire,))))
        if instant is None:
            return None
        parts = [instant[name].command for name in self._topics]
        return MergedCommand(
            merged([part.control for part in parts]), tuple(wire for part in parts for wire in part.wires)
        )

    def forget(self) -> None:
        """Forget incomplete commands: the stack was restarted."""
        self._joiner = Joiner[_Part](self._topics, self._within_ns)


def merged(commands: Sequence[Control]) -> Control:
    """Return the first command, its missing values filled in from the next that has them."""
    command = commands[0]
    for other in commands[1:]:
        values = {f.name: getattr(other, f.name) for f in fields(Control) if f.name != "stamp_ns"}
        missing = {name: value for name, value in values.items() if math.isnan(getattr(command, name))}
        command = replace(command, **missing)
    return command
