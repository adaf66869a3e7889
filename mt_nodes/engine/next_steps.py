# SPDX-License-Identifier: Apache-2.0
"""What to type after a run: show its worst pair, make it again, reduce it, open it in Foxglove; resume, or search."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base.jsonl import read_result
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.evidence import evidence_name
from mt_nodes.engine.recorded_pair import command
from mt_nodes.engine.run_record import FILE
from mt_nodes.engine.summary.headline import PASS, Headline
from mt_nodes.engine.summary.shrunk_headline import FILE as SHRUNK_FILE


@dataclass(frozen=True)
class NextStep:
    """One thing to do: ``name`` (``show``, ``reproduce`` …), ``what`` it is for, and the ``command`` to type.

    A step that is done by opening a file has its ``file``, relative to the results directory.
    """

    name: str
    what: str
    command: str
    file: str = ""


def next_steps(results_dir: Path, found: Headline) -> list[NextStep]:
    """Return what to do after a run, most useful first; nothing of what the run cannot do is among it.

    ``results_dir``: of a replay, a live run or a closed loop. ``found``: see
    :func:`mt_nodes.engine.summary.headline.headline`.
    """
    request = _request(results_dir)
    if found.verdict == "INTERRUPTED" or (found.verdict == "ERROR" and not found.pair):
        return _resume(results_dir, request)
    if found.pair:
        return pair_steps(results_dir, found.pair, request)
    if found.verdict == PASS and request.get("bags"):
        return [_search(request, found)]
    return []


def pair_steps(results_dir: Path, pair: str, request: Mapping[str, Any] | None = None) -> list[NextStep]:
    """Return what to do with a violated pair; ``request``: that of its run, read where it is None."""
    request = _request(results_dir) if request is None else request
    place, parsed = results_dir.resolve(), Pair.parse(pair)
    steps = [
        NextStep("show", "its verdict in words", _typed("show", place, pair)),
        NextStep("reproduce", "make it again, bit for bit", command(results_dir, parsed)),
    ]
    if ("bags" in request or "scenarios" in request) and not (results_dir / SHRUNK_FILE).is_file():
        steps.append(NextStep("shrink", "the smallest change that still fails", _typed("shrink", place, pair)))
    file = f"evidence/{evidence_name(parsed)}"
    if (results_dir / file).is_file():
        typed = shlex.join(["foxglove-studio", str(place / file)])
        steps.append(NextStep("open", "inputs and outputs in Foxglove", typed, file))
    return steps


def _resume(results_dir: Path, request: Mapping[str, Any]) -> list[NextStep]:
    verbs = {"bags": "replay", "scenarios": "scenario"}
    verb = next((verb for key, verb in verbs.items() if key in request), "")
    if not verb:
        return []
    typed = shlex.join(["mt", verb, "--resume", str(results_dir.resolve())])
    return [NextStep("resume", "go on where the run ended", typed)]


def _search(request: Mapping[str, Any], found: Headline) -> NextStep:
    relations = [name for name in request.get("relations", ()) if name]
    options = ["--relation", relations[-1]] if relations else []
    stack = ["--stack", request["stack"]] if request.get("stack") else []
    faults = [part for fault in request.get("faults", ()) for part in ("--fault", fault)]
    typed = shlex.join(["mt", "search", *request["bags"][:1], *options, "--reach", "range", *stack, *faults])
    return NextStep("search", "look for a stronger change that does violate", typed)


def _request(results_dir: Path) -> Mapping[str, Any]:
    """Return what was asked of a run, nothing where its record is not there or does not say.

    Raises InfrastructureError: the record is damaged.
    """
    path = results_dir / FILE
    if not path.is_file():
        return {}
    request: Mapping[str, Any] = read_result(path).get("request", {})
    return request


def _typed(verb: str, place: Path, pair: str) -> str:
    return shlex.join(["mt", verb, str(place), pair])
