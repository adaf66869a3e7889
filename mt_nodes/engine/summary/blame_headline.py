# SPDX-License-Identifier: Apache-2.0
"""What `mt blame` found of a pair, in words, and where it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mt_nodes.base.jsonl import read_result

#: What came of it; in the results directory of the run, ``BLAMED`` has a directory of each pair with this file.
FILE, BLAMED = "blame.json", "blamed"


def headline(result: Mapping[str, Any]) -> str:
    """Return in one sentence which node is to blame, or that none could be named, and why."""
    nodes = ", ".join(result["nodes"])
    if result["located"]:
        word = "nodes" if len(result["nodes"]) > 1 else "node"
        return f"It begins in the {word} {nodes}: {result['why']}."
    if result["nodes"]:
        return f"Not located; it is one of {nodes}: {result['why']}."
    return f"Not located: {result['why']}."


def read_blames(results_dir: Path) -> list[dict[str, Any]]:
    """Return what was found of the pairs of a run, newest last of each pair alone, and with a graph."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(results_dir.glob(f"{BLAMED}/*/{FILE}"), key=lambda path: path.stat().st_mtime):
        result = read_result(path)
        if "graph" in result:
            found[result["pair"]] = result
    return list(found.values())


def in_order(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the topics of a blame, those of the input first, then in the order of the nodes that publish them."""
    depth = {topic: node["depth"] for node in result["graph"]["nodes"] for topic in node["publishes"]}
    return sorted(result["graph"]["topics"], key=lambda row: (not row["given"], depth.get(row["topic"], -1)))


def publishers(result: Mapping[str, Any], topic: str) -> str:
    """Return the nodes that publish a topic; of one of the input that it is that."""
    return ", ".join(n["name"] for n in result["graph"]["nodes"] if topic in n["publishes"]) or "(input)"


def spread(values: list[float]) -> str:
    """Return the least and the largest divergence over repeats."""
    low, high = min(values), max(values)
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
