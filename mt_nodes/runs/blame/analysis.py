# SPDX-License-Identifier: Apache-2.0
"""From recordings of a pair and of control to the node where the difference begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mt_nodes.base.stats.intervals import holm
from mt_nodes.runs.blame.repeat_test import permutation_p
from mt_nodes.runs.blame.stack_graph import Blame, StackGraph, TopicState, find_blame
from mt_nodes.runs.blame.topic_measures import Evidence, Read, TopicMeasure, measure_topics


@dataclass(frozen=True, eq=False)
class Finding:
    """What a pair was found to be due to; ``p_whole`` and ``p_protected`` are Holm's, by topic."""

    blame: Blame
    states: Mapping[str, TopicState]
    measures: Mapping[str, TopicMeasure]
    onsets: Mapping[str, int]
    p_whole: Mapping[str, float]
    p_protected: Mapping[str, float]
    p_doubtful: Mapping[str, float]
    instants: Sequence[int]


def analyse(evidence: Evidence, read: Read, alpha: float) -> Finding:
    """Measure every topic, and find where the difference begins.

    ``read``: content of a message of a topic. ``alpha``: probability that an honest topic, any of them, is taken to
    differ.
    """
    instants = _instants(evidence)
    if not instants or evidence.last not in (None, instants[-1]):
        return _nothing("not every play has a recording of the instant that was judged")
    measures = measure_topics(evidence, instants, read)
    onsets = {topic: onset for topic, measure in measures.items() if (onset := measure.onset) is not None}
    if evidence.last is None:  # from then on the world answers to other commands
        end = min((onsets[t] for t in evidence.judged if t in onsets), default=len(instants) - 1) + 1
        instants, measures = instants[:end], {topic: measure.upto(end) for topic, measure in measures.items()}
    p_whole = _tested(measures, lambda m: (m.pair_whole, m.control_whole))
    p_protected = _tested(measures, lambda m: (m.pair_protected, m.control_protected))
    p_doubtful = _tested(measures, lambda m: (m.pair_doubtful, m.control_doubtful))
    states = _states(evidence, measures, (p_whole, p_protected, p_doubtful), alpha)
    blame = find_blame(evidence.graph, states, evidence.judged, onsets)
    if not any(play.violated for play in evidence.pair):
        blame = Blame(why=f"not reproduced: the pair held in all {len(evidence.pair)} plays")
    return Finding(blame, states, measures, onsets, p_whole, p_protected, p_doubtful, instants)


def _nothing(why: str) -> Finding:
    return Finding(Blame(why=why), {}, {}, {}, {}, {}, {}, ())


def _instants(evidence: Evidence) -> list[int]:
    """Return the numbers of the instants that all plays have, up to the pair's."""
    recordings = [r for play in (*evidence.pair, *evidence.control) for r in (play.source, play.followup)]
    common = set.intersection(*(set(r.windows) for r in recordings))
    ends = [r.truncated for r in recordings if r.truncated is not None]
    last = min([*ends, *([evidence.last + 1] if evidence.last is not None else [])], default=None)
    return sorted(number for number in common if last is None or number < last)


def _tested(measures: Mapping[str, TopicMeasure], sides: Callable[[TopicMeasure], Any]) -> dict[str, float]:
    """Return the p of each topic that can be tested, adjusted for their number."""
    p = {}
    for topic, measure in measures.items():
        pair, control = sides(measure)
        if pair is not None and control is not None:
            p[topic] = permutation_p(pair.sum(axis=1).tolist(), control.sum(axis=1).tolist())
    return dict(zip(p, holm(list(p.values())), strict=True))


def _states(
    evidence: Evidence,
    measures: Mapping[str, TopicMeasure],
    p: tuple[Mapping[str, float], Mapping[str, float], Mapping[str, float]],
    alpha: float,
) -> dict[str, TopicState]:
    """Return the state of each topic that is recorded, those of the input first; both arms silent are the same."""
    graph = evidence.graph
    states = dict.fromkeys((topic for topic in graph.types if topic not in measures), TopicState.SAME)
    p_whole, p_protected, p_doubtful = p
    depth = graph.depths()
    always = all(play.violated for play in evidence.pair)
    for topic in sorted(measures, key=lambda t: (t not in graph.given, _depth(graph, depth, t), t)):
        if p_whole[topic] > alpha:
            states[topic] = TopicState.SAME
        elif topic in graph.given:
            states[topic] = TopicState.ELSEWHERE  # the change itself
        elif topic in evidence.judged and topic not in p_protected and always and not measures[topic].flickers:
            states[topic] = TopicState.DIFFERS  # the relation says so, and of flicker there is none
        else:
            placeless = measures[topic].placeless and topic not in evidence.declared
            states[topic] = _state(evidence.graph, topic, states, p_protected.get(topic), alpha, placeless)
            if states[topic] is TopicState.ELSEWHERE and p_doubtful[topic] <= alpha:
                states[topic] = TopicState.UNCLEAR
    return states


def _state(
    graph: StackGraph, topic: str, states: Mapping[str, TopicState], p: float | None, alpha: float, placeless: bool
) -> TopicState:
    """Return the state of an output of a node that differs in the whole.

    ``placeless``: it has no places, and is no output of the stack.
    """
    inputs = [states.get(t, TopicState.UNTAPPED) for n in graph.publishers(topic) for t in graph.subscribes.get(n, ())]
    if inputs and all(state is TopicState.SAME for state in inputs):
        return TopicState.DIFFERS
    if p is None:
        return TopicState.UNCLEAR
    if p > alpha:
        return TopicState.ELSEWHERE
    # Of a message without places, such as a count, a part may differ rightly where inputs do.
    return TopicState.UNCLEAR if placeless else TopicState.DIFFERS


def _depth(graph: StackGraph, depth: Mapping[str, int], topic: str) -> int:
    return max((depth[node] for node in graph.publishers(topic)), default=-1)
