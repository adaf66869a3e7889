# SPDX-License-Identifier: Apache-2.0
"""A blame as plain data: what ``blame.json`` holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mt_nodes.runs.blame.analysis import Finding
from mt_nodes.runs.blame.stack_graph import StackGraph
from mt_nodes.runs.blame.topic_measures import Evidence, TopicMeasure


def as_plain(
    request: Mapping[str, Any], evidence: Evidence | None, finding: Finding | None, trouble: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what came of a blame; without a finding, why there is none."""
    plain: dict[str, Any] = {"schema": 1, "pair": request["pair"], "of": request["directory"], **request}
    if evidence is None or finding is None:
        why = "; ".join(f"{kind}: {text}" for kind, text in trouble.items())
        return {**plain, "located": False, "nodes": [], "sure": False, "why": why, "trouble": dict(trouble)}
    blame, graph = finding.blame, evidence.graph
    return {
        **plain,
        "located": blame.located,
        "nodes": list(blame.nodes),
        "sure": blame.sure,
        "why": blame.why,
        "way": list(blame.topics),
        "violated": sum(play.violated for play in evidence.pair),
        "instants": list(finding.instants),
        "judged": list(evidence.judged),
        "graph": {"nodes": _nodes(graph, blame.nodes), "topics": [_topic(t, graph, finding) for t in graph.topics]},
    }


def _nodes(graph: StackGraph, blamed: tuple[str, ...]) -> list[dict[str, Any]]:
    depths = graph.depths()
    return [
        {
            "name": node,
            "publishes": list(graph.publishes.get(node, ())),
            "subscribes": list(graph.subscribes.get(node, ())),
            "depth": depths[node],
            "blamed": node in blamed,
        }
        for node in graph.nodes
    ]


def _topic(topic: str, graph: StackGraph, finding: Finding) -> dict[str, Any]:
    row: dict[str, Any] = {"topic": topic, "type": graph.types.get(topic, ""), "given": topic in graph.given}
    measure, state = finding.measures.get(topic), finding.states.get(topic)
    if measure is None or state is None:
        return {**row, "state": "untapped" if topic not in graph.types else "silent"}
    onset = finding.onsets.get(topic)
    onset = onset if onset is not None and onset < len(finding.instants) else None
    return {
        **row,
        "state": state.value,
        **_numbers(measure),
        "p": finding.p_protected.get(topic, finding.p_whole[topic]),
        "p_whole": finding.p_whole[topic],
        "onset": None if onset is None else finding.instants[onset],
        "words": measure.words[-1] or next((words for words in reversed(measure.words) if words), ""),
    }


def _numbers(measure: TopicMeasure) -> dict[str, Any]:
    """Return the sums over instants by play: of the part that must stay where it is known, and of the whole."""

    def sums(values: Any) -> list[float] | None:
        return None if values is None else [round(float(v), 6) for v in np.asarray(values).sum(axis=1)]

    return {
        "pair": sums(measure.pair_protected if measure.pair_protected is not None else measure.pair_whole),
        "control": sums(measure.control_protected if measure.control_protected is not None else measure.control_whole),
        "pair_whole": sums(measure.pair_whole),
        "control_whole": sums(measure.control_whole),
    }
