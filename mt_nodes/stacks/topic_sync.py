# SPDX-License-Identifier: Apache-2.0
"""Joins the messages of several topics that belong to one instant, for callables with several inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from mt_nodes.data.messages import Message
from mt_nodes.stacks.stack import Stack

#: Messages per topic that wait for the others of their instant.
MAX_WAITING = 16


class StampedMessage(Protocol):
    """A message with a stamp."""

    @property
    def stamp_ns(self) -> int:
        """Header stamp in nanoseconds."""


M = TypeVar("M", bound=StampedMessage)


class Joiner(Generic[M]):
    """Yields an instant as soon as every topic has a message near enough to the leading one's.

    The nearest message is used, and each once; older ones are passed over. Of two with one stamp the later one counts.
    If a leading stamp goes back by more than the bound, all waiting messages are dropped: a new episode begins. Two
    messages of one topic must be further apart than twice the bound, else it would be chance which one is used.
    ``topics``: the leading one first. ``within_ns``: largest difference from the leading message's stamp.
    """

    def __init__(self, topics: Sequence[str], within_ns: int) -> None:
        self._lead, self._within_ns = topics[0], within_ns
        self._waiting: dict[str, dict[int, M]] = {topic: {} for topic in topics}
        #: Messages that came before those of the last instant and belong to none, in the order of their stamps.
        self.passed_over: tuple[M, ...] = ()

    def take(self, topic: str, message: M) -> dict[str, M] | None:
        """Take a message; return the instant that it completes, by topic, or None."""
        if topic == self._lead and message.stamp_ns < max(self._waiting[topic], default=0) - self._within_ns:
            for waiting in self._waiting.values():
                waiting.clear()
        waiting = self._waiting[topic]
        waiting[message.stamp_ns] = message
        if len(waiting) > MAX_WAITING:
            del waiting[min(waiting)]
        instants = (self._instant(stamp_ns) for stamp_ns in sorted(self._waiting[self._lead]))
        instant = next((found for found in instants if found is not None), None)
        if instant is not None:
            rows = [(self._waiting[topic], used) for topic, used in instant.items()]
            taken = [(row.pop(s), used) for row, used in rows for s in sorted(row) if s <= used.stamp_ns]
            over = (message for message, used in taken if message is not used)
            self.passed_over = tuple(sorted(over, key=lambda message: message.stamp_ns))
        return instant

    def _instant(self, lead_ns: int) -> dict[str, M] | None:
        instant = {}
        for topic, waiting in self._waiting.items():
            nearest = min(waiting, key=lambda stamp_ns: abs(stamp_ns - lead_ns), default=None)
            if nearest is None or abs(nearest - lead_ns) > self._within_ns:
                return None
            instant[topic] = waiting[nearest]
        return instant


def lacking(stack: Stack, inputs: Mapping[str, str], messages: Iterable[Message]) -> str | None:
    """Return why no answer to an input can be expected; None if one can.

    Every stack needs its leading input, which bundles follow; a callable with several inputs needs all of them, near
    enough to each other.
    ``stack``: the stack under test. ``inputs``: topic of a bag -> topic of the stack. ``messages``: every decoded
    message of the input.
    """
    present = {inputs[message.topic]: message for message in messages if message.topic in inputs}
    lead = stack.leading_topic
    needed = [t for topics in stack.topics.values() for t in topics] if stack.callable and stack.joins else [lead]
    if missing := [topic for topic in (lead, *needed) if topic not in present]:
        return f"no message of {missing[0]} in this input, which stack '{stack.name}' needs for an answer"
    for topic in needed:
        off_s = (present[topic].stamp_ns - present[lead].stamp_ns) / 1e9
        if abs(off_s) > stack.sync_s:
            return (
                f"{present[topic].topic} is {off_s:+.3f} s off {present[lead].topic}, expected within "
                f"{stack.sync_s:g} s (sync_s of stack '{stack.name}')"
            )
    return None
