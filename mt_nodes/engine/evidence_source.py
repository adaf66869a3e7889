# SPDX-License-Identifier: Apache-2.0
"""The one instant that evidence holds of a pair, in the place of a bag."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mt_nodes.data.bags.reader import BagReader, Topic
from mt_nodes.data.bags.recording import RecordingReader
from mt_nodes.data.messages import Bundle
from mt_nodes.data.stack_topics import LEADING_ROLES
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.evidence import read_source
from mt_nodes.stacks.stack import Stack


class EvidenceSource:
    """The bundle that the source arm was given, with its number in its episode; see
    :class:`mt_nodes.data.bags.bundles.Source`.

    ``path``: evidence of a pair. ``pair``: which one. ``stack``: whose sensors they are. Raises UsageError: there is no
    such file. InfrastructureError: it is damaged, or lacks what instants are told by.
    """

    def __init__(self, path: Path, pair: Pair, stack: Stack) -> None:
        self.reader: RecordingReader = BagReader(path)
        self._bundle = read_source(path, pair, _sensors(stack))
        self.info = {wire.topic: Topic(wire.type, 1, ()) for wire in self._bundle.wires}
        self.roles = {role: tuple(topics) for role, topics in stack.topics.items()}
        self.lead = self._bundle.wires[0].topic

    def __iter__(self) -> Iterator[Bundle]:
        yield self._bundle

    def readings(self) -> Iterator[Bundle]:
        """Yield the one bundle, which was understood when it was read."""
        return iter(self)


def _sensors(stack: Stack) -> list[str]:
    """Return the topics of a stack's sensors, the leading one first."""
    lead = next(role for role in LEADING_ROLES if role in stack.topics)
    return list(dict.fromkeys([*stack.topics[lead], *(t for topics in stack.topics.values() for t in topics)]))
