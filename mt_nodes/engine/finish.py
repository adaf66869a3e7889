# SPDX-License-Identifier: Apache-2.0
"""The end of a run, whatever its kind: sum up its journal, apply its waivers, write what people read; in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.jsonl import read_result, write_result
from mt_nodes.base.record_shapes import NUMBER, TEXT_OR_NULL, Shape, expect_shape
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.score_file import read_scores
from mt_nodes.engine.summary.summary import RelationInfo, summarise
from mt_nodes.engine.waivers import apply_waivers, load_waivers

Summary = dict[str, Any]
Line = Mapping[str, Any]

_NUMBER_OR_NULL = (*NUMBER, type(None))
_ARM: Shape = {
    **dict.fromkeys(("decided", "violated", "frames", "drives", "lost", "gained", "pairs_lost", "pairs_gained"), int),
    **dict.fromkeys(("rate", "p_sign", "p_counts"), _NUMBER_OR_NULL),
    **{"ci95": ([NUMBER, NUMBER], type(None)), "ci95_method": TEXT_OR_NULL, "outcomes": {"*": int}},
    "counts": {"*": dict.fromkeys("<=>", int)},
}
_RELATION: Shape = {
    **{**_ARM, "outcome": str, "why": str, "kind": str, "control": _ARM, "sham": _ARM, "requirement": [str]},
    **{"because": str, "change": str, "test": str, "p": _NUMBER_OR_NULL, "p_adjusted": _NUMBER_OR_NULL},
    "worst?": {"pair": str, "reason": str, "unit?": TEXT_OR_NULL, "lost_of?": {"*": [int, int]}},
}
#: What the summary of judged pairs holds.
SHAPE: Shape = {
    **{"relations": {"*": _RELATION}, "exit_code": int, "exit_why": str, "offered": int, "outcomes": {"*": int}},
    **{"interrupted": bool, **dict.fromkeys(("infrastructure", "isolation", "usage"), TEXT_OR_NULL)},
    **{"latency_ms": {"*": {"p50": NUMBER, "p99": NUMBER, "*": NUMBER}}, "deaths?": [{"reason": str, "pairs": [str]}]},
    **{"work_s?": {"*": NUMBER}, "cpu_s?": {"*": NUMBER}},
    "scores?": {"*": {"warning?": str, "proposal?": {"high": NUMBER, "low": NUMBER}}},
    "topics?": {"*": {"added_ms": {"p50": NUMBER, "p99": NUMBER, "max": NUMBER, "*": NUMBER}}},
}
_ITEM: Shape = {"cell": str, "drive": int}
#: What the summary of a campaign holds.
CAMPAIGN_SHAPE: Shape = {
    **{"cells": {"*": SHAPE}, "items": {"*": int}, "exit_code": int, "exit_why": str, "interrupted": bool},
    "campaign": {
        **{"drives": int, "cells": {"*": {"stack": str, "seed": int, "relations": [str]}}, "notes": [str]},
        **{"left": [str], "failed": [{**_ITEM, "url": str, "trouble": str}]},
        "failed_tries?": [{**_ITEM, "attempts": int, "why": str}],
    },
}


class Tables(Protocol):
    """What is made of the lines of a journal beside its summary."""

    def passing(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield the lines as they are, and take in what they tell."""
        ...

    def write(self, summary: Mapping[str, Any]) -> object:
        """Write it, once every line has passed and the summary is known."""
        ...


def sum_up(
    out: Path,
    relations: Sequence[RelationInfo],
    *,
    waivers: Path | None = None,
    tables: Tables | None = None,
    amend: Callable[[Summary], Summary] = lambda summary: summary,
    **run_notes: Any,
) -> Summary:
    """Return the summary of a results directory, its waivers applied; write nothing.

    Raises UsageError: there is no journal, or the waivers are none. InfrastructureError: a line of the journal is
    damaged.

    Args:
        waivers: file of violations that are accepted.
        tables: takes in the lines of the journal meanwhile.
        amend: changes the summary before waivers are applied.
        run_notes: see :func:`mt_nodes.engine.summary.summary.summarise`.
    """
    violated: list[Line] = []
    lines: Iterable[Line] = read_journal(out / "result.jsonl")
    if waivers is not None:
        lines = _noting_violated(lines, violated)
    if tables is not None:
        lines = tables.passing(lines)
    summary = amend(summarise(chain(lines, read_scores(out)), relations, **run_notes))
    return summary if waivers is None else apply_waivers(summary, violated, load_waivers(waivers))


def finish(out: Path, relations: Sequence[RelationInfo], *, tables: Tables | None = None, **how: Any) -> Summary:
    """Write ``summary.json`` and the tables of a run, if any, and return the summary; see :func:`sum_up`."""
    summary = sum_up(out, relations, tables=tables, **how)
    write_summary(out, summary)
    if tables is not None:
        tables.write(summary)
    return summary


def write_summary(out: Path, summary: Mapping[str, Any]) -> None:
    """Write ``summary.json`` of a results directory."""
    write_result(out / "summary.json", summary)


def read_summary(out: Path) -> Summary:
    """Return the ``summary.json`` of a results directory.

    Raises InfrastructureError: it is missing, damaged or no summary.
    """
    path = out / "summary.json"
    data = read_result(
        path, f"expected a results directory of a run; without that file, `mt report {out}` makes it from the journal"
    )
    if "relations" not in data:
        raise InfrastructureError(f"{path}: is no summary of a run; expected a results directory of a run")
    expect_shape(data, SHAPE, str(path))
    return data


def read_campaign_summary(out: Path) -> Summary:
    """Return the ``summary.json`` of a campaign. Raises InfrastructureError: it is missing, damaged or another."""
    path = out / "summary.json"
    data: Summary = read_result(path, f"`mt campaign --resume {out} --minutes 0` writes one")
    expect_shape(data, CAMPAIGN_SHAPE, str(path))
    return data


def _noting_violated(lines: Iterable[Line], violated: list[Line]) -> Iterator[Line]:
    for line in lines:
        if line.get("outcome") == Outcome.VIOLATED.value:
            violated.append(line)
        yield line
