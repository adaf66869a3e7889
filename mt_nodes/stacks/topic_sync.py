# SPDX-License-Identifier: Apache-2.0
"""Puts the messages of several topics together that are of one instant: for callables that take more than one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from mt_nodes.data.messages import Message
from mt_nodes.stacks.stack import Stack

#: Stamps a topic that are kept while the others of their instant may still come.
KEPT = 16


class StampedMessage(Protocol):
    """Anything with a stamp."""

    @property
    def stamp_ns(self) -> int:
        """Header stamp in nanoseconds."""


M = TypeVar("M", bound=StampedMessage)


class Joiner(Generic[M]):
    """Gives an instant as soon as every topic has a message near enough to the leading one's.

    Of several the nearest is taken, and each once; what is older is forgotten. Of two with one stamp the later counts.
    A leading stamp that goes back by more than the bound begins anew, as an episode does. Two messages of one topic
    must be further apart than twice the bound, or it would be chance which of them is taken.

    Args:
        topics: the leading one first.
        within_ns: how far from the leading message's stamp the others' may be.
    """

    def __init__(self, topics: Sequence[str], within_ns: int) -> None:
        self._lead, self._within_ns = topics[0], within_ns
        self._kept: dict[str, dict[int, M]] = {topic: {} for topic in topics}

    def take(self, topic: str, message: M) -> dict[str, M] | None:
        """Take a message in; return the instant that it completes, by topic, None when it completes none."""
        if topic == self._lead and message.stamp_ns < max(self._kept[topic], default=0) - self._within_ns:
            for kept in self._kept.values():
                kept.clear()
        kept = self._kept[topic]
        kept[message.stamp_ns] = message
        if len(kept) > KEPT:
            del kept[min(kept)]
        instants = (self._instant(stamp_ns) for stamp_ns in sorted(self._kept[self._lead]))
        instant = next((found for found in instants if found is not None), None)
        if instant is not None:
            for name, used in instant.items():
                for stamp_ns in [s for s in self._kept[name] if s <= used.stamp_ns]:
                    del self._kept[name][stamp_ns]
        return instant

    def _instant(self, lead_ns: int) -> dict[str, M] | None:
        instant = {}
        for topic, kept in self._kept.items():
            nearest = min(kept, key=lambda stamp_ns: abs(stamp_ns - lead_ns), default=None)
            if nearest is None or abs(nearest - lead_ns) > self._within_ns:
                return None
            instant[topic] = kept[nearest]
        return instant


def lacking(stack: Stack, inputs: Mapping[str, str], messages: Iterable[Message]) -> str | None:
    """Say why no answer to an input can be expected, None when one can.

    Every stack needs its leading input, for that is what a bundle follows; a callable of several needs all of them,
    near enough to each other.

    Args:
        stack: what is under test.
        inputs: topic of a bag -> topic of the stack.
        messages: every decoded message of the input.
    """
    there = {inputs[message.topic]: message for message in messages if message.topic in inputs}
    lead = stack.leading_topic
    needed = [t for topics in stack.topics.values() for t in topics] if stack.callable and stack.joins else [lead]
    if missing := [topic for topic in (lead, *needed) if topic not in there]:
        return f"no message of {missing[0]} in this input, which stack '{stack.name}' needs for an answer"
    for topic in needed:
        off_s = (there[topic].stamp_ns - there[lead].stamp_ns) / 1e9
        if abs(off_s) > stack.sync_s:
            return (
                f"{there[topic].topic} is {off_s:+.3f} s off {there[lead].topic}, expected within {stack.sync_s:g} s "
                f"(sync_s of stack '{stack.name}')"
            )
    return None
