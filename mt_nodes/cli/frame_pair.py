# SPDX-License-Identifier: Apache-2.0
"""``mt show DIR PAIR`` for a pair of a replay or a live run: what was changed, its outcome, its evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import describe
from mt_nodes.cli.outcome import print_steps
from mt_nodes.cli.terminal import heading, text
from mt_nodes.data.verdict import Outcome, Pair, Verdict
from mt_nodes.engine.evidence import evidence_name
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.ledger import read_ledger
from mt_nodes.engine.next_steps import pair_steps
from mt_nodes.engine.recorded_pair import command
from mt_nodes.engine.run_record import read_record

#: Printed characters of a draw; the ledger has all of it.
_MAX_DRAW = 200


def show_frame_pair(directory: Path, pair: Pair, *, as_json: bool = False) -> None:
    """Print what is known of a pair of a run, and how to reproduce it.

    Raises UsageError: there is no such run or pair. InfrastructureError: the results are damaged.
    """
    record, lines = read_record(directory), list(_verdict_lines(directory, pair))
    own = next((line for line in lines if line["pair"] == str(pair)), None)
    if own is None:
        raise UsageError(f"{directory}: no verdict of pair '{pair}'; pairs.csv lists them")
    relation: dict[str, Any] = next((r for r in record["relations"] if r["id"] == pair.relation), {})
    evidence = directory / "evidence" / evidence_name(pair)
    known = {
        "verdict": own,
        "relation": relation,
        "followup": next((line for line in read_ledger(directory) if line["pair"] == str(pair.followup)), None),
        "beside": {line["pair"]: line["outcome"] for line in lines if line is not own},
        "evidence": str(evidence) if evidence.exists() else None,
        "command": command(directory, pair),
    }
    if as_json:
        print(json.dumps(known, indent=2))
        return
    heading(f"pair {pair}: {own['outcome']}")
    text("\n".join(_words(directory, pair, known, record["request"])))
    if own["outcome"] == Outcome.VIOLATED.value:
        steps = pair_steps(directory, str(pair), record["request"])
        print_steps(directory, [step for step in steps if step.name in ("shrink", "open")])


def _verdict_lines(directory: Path, pair: Pair) -> Iterator[dict[str, Any]]:
    """Yield the verdict lines of a pair, and of control and sham on its bundle by the same check."""
    for line in read_journal(directory / "result.jsonl"):
        if line["type"] != "verdict":
            continue
        other = Pair.parse(line["pair"])
        same_input = (other.episode, other.bundle) == (pair.episode, pair.bundle)
        if line["pair"] == str(pair) or (same_input and "@" in other.draw and other.judged_for == pair.judged_for):
            yield line


def _words(directory: Path, pair: Pair, known: Mapping[str, Any], request: Mapping[str, Any]) -> Iterator[str]:
    judgement = Verdict.from_plain(known["verdict"]).judgement
    if judgement.measured is not None:
        bound = "none" if judgement.bound is None else f"{judgement.bound:g}"
        yield f"measured {judgement.measured:g} {judgement.unit}, bound {bound}"
    if judgement.reason:
        yield judgement.reason
    bags = request.get("bags", ())
    place = pair.episode - request.get("first_episode", 0)
    bag = f" of {bags[place]}" if 0 <= place < len(bags) else ""
    frame = "the whole drive" if pair.bundle is None else f"bundle {pair.bundle}"
    yield f"source: {frame}{bag}, stamp {known['verdict']['stamp_ns'] / 1e9:.3f} s"
    for mutation in known["relation"].get("mutate", ()):
        yield "change: " + "; ".join(f"{name} {_settings(name, params)}".strip() for name, params in mutation.items())
    followup = known["followup"]
    if draw := _draw_text(followup["draw"]) if followup else "":
        yield f"draw: {draw}"
    yield f"follow-up: SHA-256 {followup['sha256']}" if followup else "follow-up: not sent"
    for name, outcome in known["beside"].items():
        yield f"on the same input {name}: {outcome}"
    if known["evidence"]:
        yield f"evidence: {known['evidence']} (a bag, both inputs and outputs); pictures: {directory / 'report.html'}"
    yield known["command"]


def _draw_text(draws: Sequence[Mapping[str, Any]]) -> str:
    """Return the random choices, without arrays, cut to one line."""
    texts = [f"{key} {value}" for draw in draws for key, value in draw.items() if not isinstance(value, dict)]
    line = ", ".join(texts)
    return line if len(line) <= _MAX_DRAW else f"{line[:_MAX_DRAW]}…"


def _settings(name: str, params: Mapping[str, Any]) -> str:
    """Return the parameters of a mutation that set its strength or differ from their defaults."""
    cls = plugins.get("mutations", name)
    known = {row["name"]: row for row in describe(cls)} if cls is not None else {}
    chosen = {
        key: value
        for key, value in params.items()
        if key not in known or known[key]["neutral"] is not None or value != known[key]["default"]
    }
    names = {
        key: value["name"] if isinstance(value, dict) and "name" in value else value for key, value in chosen.items()
    }
    return ", ".join(f"{key} {value}" for key, value in names.items())
