# SPDX-License-Identifier: Apache-2.0
"""Plays of a pair and of control, and how far the arms are from each other on each topic."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.data.regions import Region
from mt_nodes.data.transforms import TransformTree
from mt_nodes.runs.blame.divergence import (
    BoxesContent,
    Content,
    Divergence,
    FieldsContent,
    PointsContent,
    differing_discs,
    divergence,
)
from mt_nodes.runs.blame.protection import Protection, protection_of
from mt_nodes.runs.blame.stack_graph import StackGraph
from mt_nodes.runs.blame.tape import TopicRecording

Read = Callable[[str, bytes], Content]


@dataclass(frozen=True, eq=False)
class Play:
    """What both arms said in one play. ``violated``: whether the relation was, in its own play."""

    source: TopicRecording
    followup: TopicRecording
    violated: bool = False


@dataclass(frozen=True, eq=False)
class Evidence:
    """All plays of a pair.

    Attributes:
        pair: plays with the follow-up in the second arm. control: as many with the source in both.
        judged: topics of the outputs that the relation judges. declared: topics of all outputs of the stack file.
        region, inset_m: where the relation demands something, see :class:`~mt_nodes.runs.blame.protection.Protection`.
        spared: region that a mutation leaves out, where the check names none.
        last: number of the pair's instant; None for a drive: the first at which what is judged differs.
    """

    graph: StackGraph
    pair: Sequence[Play]
    control: Sequence[Play]
    judged: Collection[str]
    declared: Collection[str]
    transforms: TransformTree
    region: Region | None = None
    inset_m: float = 0.0
    last: int | None = None
    spared: Region | None = None


@dataclass(frozen=True, eq=False)
class TopicMeasure:
    """Divergences (K, W) between the arms on one topic, by play and instant, of pair and control.

    ``protected`` is None where the part that must stay cannot be told apart. ``words``: what differs, by instant.
    """

    pair_whole: Floats
    control_whole: Floats
    pair_protected: Floats | None
    control_protected: Floats | None
    words: Sequence[str]
    pair_doubtful: Floats
    control_doubtful: Floats
    #: Whether the messages are neither points, nor boxes, nor images.
    placeless: bool = False

    def upto(self, end: int) -> TopicMeasure:
        """Return it without the instants from ``end`` on."""
        columns: dict[str, Any] = {
            n: v if v is None else v[:, :end] for n, v in vars(self).items() if n not in ("words", "placeless")
        }
        return replace(self, **columns, words=self.words[:end])

    @property
    def flickers(self) -> bool:
        """Whether anything differs in control."""
        return bool(self.control_whole.any())

    @property
    def onset(self) -> int | None:
        """First instant at which most plays of the pair differ more than any of control."""
        pair, control = (
            (self.pair_whole, self.control_whole)
            if self.pair_protected is None or self.control_protected is None
            else (self.pair_protected, self.control_protected)
        )
        found = np.flatnonzero(np.median(pair, axis=0) > control.max(axis=0, initial=0.0))
        return int(found[0]) if len(found) else None


def measure_topics(evidence: Evidence, instants: Sequence[int], read: Read) -> dict[str, TopicMeasure]:
    """Return the divergences on each topic that anybody says something on; ``read``: see :func:`analysis.analyse`."""
    contents = cache(read)
    protections = [_protection(evidence, number, contents) for number in instants]
    discs = [
        _discs(evidence, number, protection, contents) for number, protection in zip(instants, protections, strict=True)
    ]

    @cache
    def between(topic: str, row: int, one: bytes | None, other: bytes | None) -> Divergence:
        if topic in evidence.graph.given:  # what differs there is the change, and is allowed
            return Divergence(float(one != other), 0.0)
        where = discs[row] if topic in detected else None
        return _between(topic, one, other, protections[row], where, contents)

    detected = _for_detectors(evidence, instants, contents)
    measures = {}
    for topic in evidence.graph.topics:
        if topic not in evidence.graph.types:
            continue
        sides = [_compared(topic, plays, instants, between) for plays in (evidence.pair, evidence.control)]
        if all(row is None for side in sides for play in side for row in play):
            continue  # neither arm ever says anything there
        measure = _measure([[[d or Divergence(0.0, 0.0) for d in play] for play in side] for side in sides])
        measures[topic] = replace(measure, placeless=_holds(FieldsContent, topic, evidence, instants, contents))
    return measures


def _for_detectors(evidence: Evidence, instants: Sequence[int], contents: Read) -> set[str]:
    """Return the topics that go to nodes alone whose every output is boxes: points matter where boxes differ."""
    graph = evidence.graph
    boxes = {t for t in graph.types if _holds(BoxesContent, t, evidence, instants, contents)}
    detectors = {node for node in graph.nodes if graph.publishes.get(node) and boxes.issuperset(graph.publishes[node])}
    hearers = {t: {n for n in graph.nodes if t in graph.subscribes.get(n, ())} for t in graph.types}
    return {topic for topic, nodes in hearers.items() if nodes and nodes <= detectors}


def _discs(evidence: Evidence, number: int, protection: Protection, contents: Read) -> Floats:
    """Return where boxes differ between the arms at an instant, in any play, of control too: none is favoured."""
    rows: dict[tuple[str, bytes, bytes], Floats] = {}
    for play in (*evidence.pair, *evidence.control):
        for topic in evidence.graph.types:
            one, other = (_last(recording, number, topic) for recording in (play.source, play.followup))
            if topic in evidence.graph.given or one is None or other is None or one == other:
                continue
            if (topic, one, other) not in rows:
                rows[topic, one, other] = differing_discs(contents(topic, one), contents(topic, other), protection)
    return np.concatenate([*rows.values(), np.empty((0, 3))])


def _compared(
    topic: str, plays: Sequence[Play], instants: Sequence[int], between: Callable[..., Divergence]
) -> list[list[Divergence | None]]:
    """Return the divergence between the arms by play and instant, None where both are silent."""
    found = []
    for play in plays:
        rows: list[Divergence | None] = []
        for row, number in enumerate(instants):
            one, other = (_last(recording, number, topic) for recording in (play.source, play.followup))
            rows.append(None if one is None and other is None else between(topic, row, one, other))
        found.append(rows)
    return found


def _holds(kind: type[Content], topic: str, evidence: Evidence, instants: Sequence[int], contents: Read) -> bool:
    """Whether any message of a topic has contents of a kind."""
    messages = (_last(play.source, number, topic) for play in evidence.pair for number in instants)
    return any(isinstance(contents(topic, data), kind) for data in messages if data is not None)


def _last(recording: TopicRecording, number: int, topic: str) -> bytes | None:
    """Return the last message of an instant: of what a timer repeats the newest is compared."""
    messages = recording.windows[number].get(topic)
    return messages[-1] if messages else None


def _between(
    topic: str, one: bytes | None, other: bytes | None, protection: Protection, discs: Floats | None, contents: Read
) -> Divergence:
    if one == other:
        return Divergence(0.0, 0.0)
    read = [None if data is None else contents(topic, data) for data in (one, other)]
    return divergence(read[0], read[1], protection, discs)


def _measure(sides: Sequence[Sequence[Sequence[Divergence]]]) -> TopicMeasure:
    pair, _ = sides
    whole = [np.array([[d.whole for d in play] for play in side]) for side in sides]
    told = all(d.protected is not None for side in sides for play in side for d in play)
    protected = [
        np.array([[d.protected for d in play] for play in side], dtype=float) if told else None for side in sides
    ]
    words = [next((play[row].words for play in pair if play[row].words), "") for row in range(len(pair[0]))]
    doubtful = [np.array([[d.doubtful for d in play] for play in side], dtype=float) for side in sides]
    return TopicMeasure(whole[0], whole[1], protected[0], protected[1], words, doubtful[0], doubtful[1])


def _protection(evidence: Evidence, number: int, contents: Read) -> Protection:
    """Return what must stay at an instant, by what both arms were given in the first play of the pair."""
    play, clouds, others = evidence.pair[0], [], False
    for topic in evidence.graph.given:
        one, other = (_last(recording, number, topic) for recording in (play.source, play.followup))
        if one is None and other is None:
            continue
        before, after = (None if data is None else contents(topic, data) for data in (one, other))
        if isinstance(before, PointsContent) and isinstance(after, PointsContent):
            clouds.append((before.frame_id, before.xyz, after.xyz))
        elif one is None or other is None:
            others = True
        else:
            others = others or divergence(before, after, Protection()).whole > 0.0
    return protection_of(clouds, others, evidence.region, evidence.inset_m, evidence.transforms, evidence.spared)
