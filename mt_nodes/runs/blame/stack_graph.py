# SPDX-License-Identifier: Apache-2.0
"""The nodes and topics of a stack, and the walk from what was violated back to where it began."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum


class TopicState(Enum):
    """What a topic says in the follow-up arm beside what it says in the source arm."""

    SAME = "same"
    #: It differs, but not where the change must not reach.
    ELSEWHERE = "elsewhere"
    DIFFERS = "differs"
    #: It differs, and nobody can tell whether it may.
    UNCLEAR = "unclear"
    #: It was not recorded.
    UNTAPPED = "untapped"


#: What an honest node may not have made of honest inputs, or nobody knows.
_UNDUE = (TopicState.DIFFERS, TopicState.UNCLEAR, TopicState.UNTAPPED)


@dataclass(frozen=True)
class StackGraph:
    """Who publishes and who subscribes to what, in the names of the stack.

    Attributes:
        publishes, subscribes: topics by node.
        types: message type by topic.
        given: topics that the stack gets from outside.
    """

    publishes: Mapping[str, tuple[str, ...]]
    subscribes: Mapping[str, tuple[str, ...]]
    types: Mapping[str, str] = field(default_factory=dict)
    given: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes, by name."""
        return tuple(sorted({*self.publishes, *self.subscribes}))

    @property
    def topics(self) -> tuple[str, ...]:
        """All topics that somebody publishes or is given, those of the input first."""
        published = sorted({topic for topics in self.publishes.values() for topic in topics} - set(self.given))
        return (*self.given, *published)

    def publishers(self, topic: str) -> tuple[str, ...]:
        """Return the nodes that publish a topic."""
        return tuple(node for node in self.nodes if topic in self.publishes.get(node, ()))

    def depths(self) -> dict[str, int]:
        """Return how many nodes are before each node, the longest way; what is in a cycle counts once."""
        depth = dict.fromkeys(self.nodes, 0)
        for _ in self.nodes:
            for node in self.nodes:
                before = [
                    depth[other] + 1
                    for topic in self.subscribes.get(node, ())
                    for other in self.publishers(topic)
                    if other != node
                ]
                depth[node] = min(max(before, default=0), len(self.nodes))
        return depth


@dataclass(frozen=True)
class Blame:
    """Where a violation begins.

    Attributes:
        nodes: the first whose outputs differ where their inputs do not; several where they cannot be told apart, or
            where it begins at several places; none where nothing could be told.
        sure: whether each of ``nodes`` is such a node, rather than one of them.
        topics: on the way from the violated outputs back to these nodes.
        why: what is to be said of it.
    """

    nodes: tuple[str, ...] = ()
    sure: bool = False
    topics: tuple[str, ...] = ()
    why: str = ""

    @property
    def located(self) -> bool:
        """Whether there is a node that can be named alone, or several of which each is to blame."""
        return bool(self.nodes) and self.sure


def find_blame(
    graph: StackGraph,
    states: Mapping[str, TopicState],
    violated: Collection[str],
    onsets: Mapping[str, int] | None = None,
) -> Blame:
    """Return the nodes at which what differs begins.

    From the violated outputs it goes back through topics that differ, until a node has none among its inputs: this
    node made a difference of inputs without any. A node whose output differs at an earlier instant than all of its
    inputs is such a node, too: with that, feedback, through the world or through a cycle of topics, comes to an end.

    ``states``: by topic; what is missing was not recorded. ``violated``: topics of the outputs that were judged.
    ``onsets``: number of the first instant at which a topic differs, as far as it is known.
    """
    begin = sorted(topic for topic in violated if states.get(topic) is TopicState.DIFFERS)
    if not begin:
        return Blame(why="what the relation judges differs no more than control does where it must stay")
    walk = _Walk(graph, states, onsets or {})
    for topic in begin:
        walk.back(topic)
    return walk.conclusion(begin)


class _Walk:
    def __init__(self, graph: StackGraph, states: Mapping[str, TopicState], onsets: Mapping[str, int]) -> None:
        self._graph, self._states, self._onsets = graph, states, onsets
        self._seen: dict[str, None] = {}
        self._ends: dict[str, None] = {}
        self._doubtful: dict[str, str] = {}
        self._topics: dict[str, None] = {}
        self._unpublished: list[str] = []

    def back(self, topic: str) -> None:
        """Go back from a topic that differs."""
        waiting = [topic]
        while waiting:
            topic = waiting.pop()
            self._topics[topic] = None
            nodes = self._graph.publishers(topic)
            if not nodes and topic not in self._graph.given:
                self._unpublished.append(topic)
            for node in nodes:
                undue = self._undue(node, topic)
                if node in self._seen:
                    continue
                self._seen[node] = None
                self._note(node, undue)
                waiting.extend(undue)

    def _undue(self, node: str, output: str) -> list[str]:
        """Return the inputs of a node that differ no later than its output."""
        inputs = [t for t in self._graph.subscribes.get(node, ()) if t not in self._graph.given]
        undue = [t for t in inputs if self._state(t) in _UNDUE and t != output]
        onset = self._onsets.get(output)
        return [t for t in undue if onset is None or self._onsets.get(t, -1) <= onset]

    def _note(self, node: str, undue: Sequence[str]) -> None:
        if not undue:
            self._ends[node] = None
        elif not any(self._state(t) is TopicState.DIFFERS for t in undue):
            self._doubtful[node] = undue[0]

    def _state(self, topic: str) -> TopicState:
        return self._states.get(topic, TopicState.UNTAPPED)

    def conclusion(self, begin: Sequence[str]) -> Blame:
        """Return what the walk came to."""
        topics = tuple(self._topics)
        if self._unpublished:
            return Blame((), False, topics, f"no node of the stack publishes {', '.join(self._unpublished)}")
        if not self._ends:
            names = ", ".join(self._seen)
            why = f"the nodes {names} feed each other, and differ from the same instant on"
            return Blame(tuple(self._seen), False, topics, why)
        nodes = tuple(dict.fromkeys((*self._ends, *self._doubtful)))
        if self._doubtful:
            node, topic = next(iter(self._doubtful.items()))
            what = "was not recorded" if self._state(topic) is TopicState.UNTAPPED else "may differ, or may not"
            return Blame(nodes, False, topics, f"{topic}, an input of {node}, {what}: it is one of {', '.join(nodes)}")
        each = " each" if len(nodes) > 1 else ""
        return Blame(
            nodes, True, topics, f"no input of {' and '.join(nodes)}{each} differs, but {_outputs(topics)} does"
        )


def _outputs(topics: Sequence[str]) -> str:
    return topics[-1] if topics else "the output"
