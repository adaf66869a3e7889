# SPDX-License-Identifier: Apache-2.0
"""A first look at a stack on frames of a bag: what it sees, how surely, what it commands, which thresholds fit."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError
from mt_nodes.base.yaml_files import parse, read_mapping
from mt_nodes.data.output_traits import DEFAULT_THRESHOLDS
from mt_nodes.data.outputs import Output
from mt_nodes.data.verdict import Verdict
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.engine.recorder import ExecutedPair
from mt_nodes.engine.summary.deaths import describe_deaths
from mt_nodes.engine.summary.score_range import score_advice
from mt_nodes.relations.relation import shipped_relations
from mt_nodes.runs.doctor import Finding
from mt_nodes.runs.loop.driver_check import command_ranges
from mt_nodes.runs.replay.execute import execute, in_process_arms
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.stacks.stack import Stack, load_stack

FRAMES = 10
#: So many classes are named, the most frequent ones.
_NAMED = 6


def look_at(name: str, bag: Path, frames: int = FRAMES) -> tuple[list[Finding], dict[str, Any]]:
    """Have a callable answer some frames of a bag; return what is found, and the thresholds that are proposed.

    Raises UsageError: the stack is a program, or cannot take the bag. InfrastructureError: the stack failed, with the
    end of its log.
    """
    stack = load_stack(name)
    if not stack.callable:
        raise UsageError(
            f"stack '{stack.name}' is no callable; for one that is a program, `mt replay {bag} --stack {name} "
            f"--limit {frames}` tells the same of its scores"
        )
    summary, outputs = _played(stack, name, bag, frames)
    title = f"stack '{stack.name}' on {bag.name}"
    deaths = summary.get("deaths", ())
    if trouble := summary["infrastructure"] or summary["usage"] or (deaths and describe_deaths(deaths)):
        return [Finding("error", title, trouble)], {}
    scores = summary.get("scores", {})
    latency = summary["latency_ms"].get("stack")
    findings = [] if latency is None else [Finding("info", title, f"it answers in {latency['p50']:.0f} ms (p50)")]
    findings += [*command_ranges(output.control for output in outputs), *_paths(outputs)]
    seeing = [role for role in stack.answers if role in DEFAULT_THRESHOLDS]
    if seeing and not scores:
        nothing = f"it saw nothing in {frames} frames: no {' or '.join(seeing)}"
        return [*findings, Finding("warn", title, nothing, "look at points_frame, inputs and the bag's topics")], {}
    found = [_finding(title, role, row) for role, row in scores.items()]
    return [*findings, *found], {role: row["proposal"] for role, row in scores.items() if "proposal" in row}


def _played(stack: Stack, name: str, bag: Path, frames: int) -> tuple[dict[str, Any], list[Output]]:
    """Offer control, sham and one relation; what they come to does not matter here, but what the stack says does."""
    fits = next((r.id for r in shipped_relations() if r.role == "relation" and incompatibility(r, stack) is None), None)
    if fits is None:
        raise UsageError(f"no relation that ships can judge stack '{stack.name}': see `mt list relations`")
    with tempfile.TemporaryDirectory(prefix="mt_first_look_") as out:
        request = ReplayRequest(
            bags=(str(bag),), relations=(fits,), stack=name, transport="inprocess", limit=frames, report=False
        )
        run = Run.create(request, f"{out}/run")
        outputs: list[Output] = []

        def show(verdicts: Sequence[Verdict], pair: ExecutedPair) -> None:
            outputs.append(pair.source_answer.output)

        arms = partial(in_process_arms, run)
        return execute(run, arms, lambda line: None, lambda verdicts: None, show), outputs


def _paths(outputs: Sequence[Output]) -> Iterator[Finding]:
    """Yield how many poses its paths have, and how far they reach."""
    paths = [output.path for output in outputs if output.path is not None]
    if not paths:
        return
    counts = [len(path.pose) for path in paths]
    ends_m = [float(np.hypot(*path.pose[-1, :2])) for path in paths if len(path.pose)] or [0.0]
    text = f"{min(counts)} to {max(counts)} poses, the last {min(ends_m):.1f} to {max(ends_m):.1f} m from the origin"
    yield Finding("ok" if max(counts) else "warn", "paths", f"{text} of {paths[0].frame_id}")


def _finding(title: str, role: str, row: Mapping[str, Any]) -> Finding:
    kinds = ", ".join(f"{label} {count}" for label, count in list(row["classes"].items())[:_NAMED])
    if "warning" in row:
        return Finding("warn", title, f"{row['warning']} (classes: {kinds})", score_advice(role, row["proposal"]))
    detail = (
        f"{row['count']} {role} in {row['answers']} answers ({kinds}), scores {row['least']:.2f} to {row['most']:.2f}; "
        f"{row['demanded']} are demanded (from {row['high']:g} on), what answers has {row['low']:g} or more"
    )
    return Finding("ok", title, detail)


def write_scores(name: str, proposal: Mapping[str, Mapping[str, float]]) -> Path:
    """Write the thresholds that were proposed at the end of a stack file, and return its path.

    Raises UsageError: the file ships with the package, has ``scores`` already, or is not written a key a line.
    """
    path = resources.find("stacks", name)
    if path.name != Path(name).name:
        raise UsageError(f"--write: stack '{name}' ships with the package; copy {path} and give the copy")
    if "scores" in read_mapping(path):
        raise UsageError(f"--write: {path} has scores already; change them there")
    text = path.read_text(encoding="utf-8")
    scores = {"scores": {role: dict(row) for role, row in proposal.items()}}
    longer = text + ("" if text.endswith("\n") else "\n") + yaml.safe_dump(scores, sort_keys=False)
    if _read(longer).get("scores") != scores["scores"]:  # in braces, as JSON is, nothing can stand behind
        raise UsageError(f"--write: {path} does not end in a key of its own line; write yourself: {json.dumps(scores)}")
    path.write_text(longer, encoding="utf-8")
    return path


def _read(text: str) -> dict[str, Any]:
    try:
        return dict(parse(text, "the stack file"))
    except (UsageError, TypeError, ValueError):
        return {}
