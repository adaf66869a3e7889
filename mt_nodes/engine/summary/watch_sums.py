# SPDX-License-Identifier: Apache-2.0
"""What the journal of a run that only watches comes to: rates by cell, and an outcome for each relation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mt_nodes.base.errors import ExitCode, InfrastructureError
from mt_nodes.base.record_shapes import NUMBER, Shape
from mt_nodes.base.stats.event_rate import clean_s, event_rate
from mt_nodes.engine.summary.watch_words import amount, duration

#: The journal of such a run, and the types of its lines.
FILE = "watch.jsonl"
CONDITION, TALLY, EVENT, ERROR = "watch", "tally", "event", "error"
AXES = ("weather", "light", "road", "speed", "range")
_CELL_ROW = [(str, int, type(None))]
SHAPES: dict[str, Shape] = {
    CONDITION: {
        "stack": str,
        "min_frames": int,
        "relations": [{"name": str, "because": str, "*": object}],
        "*": object,
    },
    TALLY: {
        **dict.fromkeys(("until_ns", "episode", "frames", "unanswered"), int),
        "relations": {"*": {"cells": [_CELL_ROW], "why": {"*": int}}},
    },
    EVENT: {
        **dict.fromkeys(("relation", "subject", "unit", "reason"), str),
        **dict.fromkeys(("episode", "stamp_ns", "since_ns"), int),
        **{"cell": [str], "range_m": (*NUMBER, type(None)), "measured": NUMBER, "bound": NUMBER},
    },
    ERROR: {"relation": str, "stamp_ns": int, "reason": str},
}
_EVENTS_NAMED = 20
_EVERYWHERE = (None,) * len(AXES)


@dataclass(eq=False)
class _RelationSums:
    """Counts of one relation: cell -> frames, nanoseconds, events, breaches; why there was nothing to watch."""

    about: Mapping[str, Any]
    cells: dict[tuple[str | None, ...], list[int]] = field(default_factory=dict)
    why: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    events: list[Mapping[str, Any]] = field(default_factory=list)
    #: Time watched and events, at the end of each line.
    course: list[tuple[float, int]] = field(default_factory=list)

    def add(self, row: Mapping[str, Any]) -> None:
        for *cell, frames, watched_ns, events, breaches in row["cells"]:
            counts = self.cells.setdefault(tuple(cell), [0, 0, 0, 0])
            for at, value in enumerate((frames, watched_ns, events, breaches)):
                counts[at] += value
        self.why.update(row["why"])
        _, watched_ns, events, _ = self.total
        self.course.append((watched_ns * 1e-9, events))

    @property
    def total(self) -> list[int]:
        return self.cells.get(_EVERYWHERE, [0, 0, 0, 0])


def watch_summary(lines: Iterable[Mapping[str, Any]], **end: Any) -> dict[str, Any]:
    """Return the summary of a journal.

    ``end``: how the run ended: ``interrupted``, ``usage``, ``infrastructure``, and what else is to be kept.
    Raises InfrastructureError: there is no condition.
    """
    sums: dict[str, _RelationSums] = {}
    condition: Mapping[str, Any] | None = None
    counts: Counter[str] = Counter()
    for line in lines:
        if line["type"] == CONDITION:
            condition = line
            sums = {about["name"]: _RelationSums(about) for about in line["relations"]}
        elif line["type"] == TALLY:
            counts.update({"frames": line["frames"], "unanswered": line["unanswered"]})
            for name, row in line["relations"].items():
                sums[name].add(row)
        elif line["type"] == EVENT:
            sums[line["relation"]].events.append(line)
        else:
            sums[line["relation"]].errors.append(line["reason"])
    if condition is None:
        raise InfrastructureError("the journal has no first line; nothing was watched")
    watched = {name: _of_relation(each, condition["min_frames"]) for name, each in sums.items()}
    code, why = _exit(watched, counts["frames"], end)
    return {
        **{"schema": 1, "kind": "watch", "stack": condition["stack"], "watched": watched},
        **{name: counts[name] for name in ("frames", "unanswered")},
        "left_out": condition.get("left_out", {}),
        **{"exit_code": int(code), "exit_why": why, **end},
    }


def _of_relation(sums: _RelationSums, min_frames: int) -> dict[str, Any]:
    frames, watched_ns, events, breaches = sums.total
    outcome, why = _outcome(sums, min_frames)
    return {
        "outcome": outcome,
        "why": why,
        "because": sums.about["because"],
        **{"frames": frames, "events": events, "breached_frames": breaches},
        **_rate(events, watched_ns * 1e-9),
        "tolerated_per_h": sums.about.get("tolerated_per_h"),
        "not_watched": dict(sums.why.most_common()),
        "errors": sums.errors[:_EVENTS_NAMED],
        "cells": [_of_cell(cell, counts) for cell, counts in sorted(sums.cells.items(), key=_order)],
        "first_events": sums.events[:_EVENTS_NAMED],
        "course": _thinned(sums.course),
    }


def _thinned(course: list[tuple[float, int]], most: int = 400) -> list[tuple[float, int]]:
    """Return at most so many of the places of a course, the last one among them."""
    step = -(-len(course) // most) or 1
    return course[::-1][::step][::-1]


def _order(item: tuple[tuple[str | None, ...], Any]) -> tuple[Any, ...]:
    return tuple((value is None, value or "") for value in item[0])


def _of_cell(cell: tuple[str | None, ...], counts: list[int]) -> dict[str, Any]:
    frames, watched_ns, events, _ = counts
    named = {axis: value for axis, value in zip(AXES, cell, strict=True) if value is not None}
    return {"cell": named, "frames": frames, "events": events, **_rate(events, watched_ns * 1e-9)}


def _rate(events: int, watched_s: float) -> dict[str, Any]:
    rate = event_rate(events, watched_s)
    interval = None if rate.low is None else [rate.low, rate.high]
    return {"watched_s": round(watched_s, 3), "per_h": rate.per_h, "cs95_per_h": interval}


def _outcome(sums: _RelationSums, min_frames: int) -> tuple[str, str]:
    """Return the outcome of a relation and why; nothing that was not watched ever passes."""
    frames, watched_ns, events, _ = sums.total
    rate, tolerated = event_rate(events, watched_ns * 1e-9), sums.about.get("tolerated_per_h")
    if sums.errors:
        return "ERROR", sums.errors[0]
    if not frames:
        commonest = sums.why.most_common(1)
        return "INCONCLUSIVE", f"nothing was watched{f': {commonest[0][0]}' if commonest else ''}"
    if tolerated is None and events:
        return "FAIL", f"{events} violation{'s' if events > 1 else ''}, none is tolerated"
    if tolerated is not None and rate.low is not None and rate.low > tolerated:
        return "FAIL", f"at least {amount(rate.low)} violations an hour, {tolerated:g} are tolerated"
    if frames < min_frames:
        return "INCONCLUSIVE", f"{frames} frames with something to watch, {min_frames} are the least"
    if tolerated is not None and (rate.high is None or rate.high > tolerated):
        more_s = max(0.0, clean_s(tolerated, events) - watched_ns * 1e-9)
        return "INCONCLUSIVE", f"{duration(more_s)} more without a violation would show at most {tolerated:g} an hour"
    most = "" if rate.high is None else f"; at most {amount(rate.high)} an hour"
    return "PASS", f"{events or 'no'} violation{'' if events == 1 else 's'} in {frames} frames{most}"


def _exit(watched: Mapping[str, Any], frames: int, end: Mapping[str, Any]) -> tuple[ExitCode, str]:
    """Return the exit code and why: the first that applies, as of every run."""
    by: dict[str, list[str]] = {}
    for name, each in watched.items():
        by.setdefault(each["outcome"], []).append(name)
    if end.get("interrupted"):
        return ExitCode.INTERRUPTED, "interrupted; what was watched until then is judged"
    if end.get("usage"):
        return ExitCode.USAGE, end["usage"]
    if end.get("infrastructure") or "ERROR" in by:
        return ExitCode.INFRASTRUCTURE, end.get("infrastructure") or f"checks failed: {', '.join(by['ERROR'])}"
    if "FAIL" in by:
        return ExitCode.FAIL, f"violated: {', '.join(by['FAIL'])}"
    if not frames:
        return ExitCode.UNDECIDED, "nothing was watched: no input came"
    if "INCONCLUSIVE" in by:
        return ExitCode.UNDECIDED, f"undecided: {', '.join(by['INCONCLUSIVE'])}"
    return ExitCode.PASS, f"all {len(watched)} relations hold in what was watched"
