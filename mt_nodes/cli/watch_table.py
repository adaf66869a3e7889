# SPDX-License-Identifier: Apache-2.0
"""Runs that only watch, on the command line: their progress and the table of their rates."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mt_nodes.runs.watch.watch_request import WatchRequest

#: Stops within so many seconds of a signal.
_STOP_S = 20.0
COLUMNS = ("relation", "outcome", "violations", "watched", "an hour", "95 % at any time")


def watch_run(request: WatchRequest, out: str | None, as_json: bool) -> int:
    """Carry out a run that only watches, print its table and return its exit code."""
    from mt_nodes.base.suite_client import in_suite
    from mt_nodes.engine.plan import WATCH_SUITE, suite_process
    from mt_nodes.report.watch_page import write_watch_page
    from mt_nodes.runs.watch.watch_run import WatchRun

    run = WatchRun.create(request, out)
    for name, reason in run.left_out.items():
        print(f"not watched: {name}: {reason}", file=sys.stderr)
    print(f"results go to {run.out}; Ctrl-C ends the run and writes them", file=sys.stderr, flush=True)
    suite = suite_process(run.out, os.environ, WATCH_SUITE)
    summary = in_suite(suite, _STOP_S, _Progress().show, f"`mt report {run.out}` sums it up")
    write_watch_page(run.out)
    if as_json:
        print(json.dumps(summary, indent=2))
    else:
        print_watched(summary, run.out)
    return int(summary["exit_code"])


def print_watched(summary: Mapping[str, Any], out: Path) -> None:
    """Print the table of a run that only watched."""
    from mt_nodes.cli.terminal import Rows, console, text

    rows = [_row(name, each) for name, each in summary["watched"].items()]
    console().print(Rows(COLUMNS, rows, right=COLUMNS[2:]))
    for line in _notes(summary):
        text(line)
    text(f"exit code {summary['exit_code']}: {summary['exit_why']}; report: {out / 'report.html'}")


def _row(name: str, each: Mapping[str, Any]) -> Sequence[str]:
    from mt_nodes.engine.summary.watch_words import duration, interval, rate

    return name, each["outcome"], str(each["events"]), duration(each["watched_s"]), rate(each), interval(each)


def _notes(summary: Mapping[str, Any]) -> Iterator[str]:
    for name, each in summary["watched"].items():
        if each["outcome"] != "PASS":
            yield f"{name}: {each['why']}"
        for event in each["first_events"][:3]:
            yield f"  VIOLATED at {event['stamp_ns']} ns: {event['reason']}"
    answered = summary.get("frames", 0) - summary.get("unanswered", 0)
    cost = summary["cost"]
    yield (
        f"{summary.get('frames', 0)} inputs, {answered} answered; "
        f"{1e3 * cost['cpu_s'] / max(cost['wall_s'], 1e-9):.0f} ms of processor time a second, {cost['look_ms']['p50']:.1f} ms an input (p99 {cost['look_ms']['p99']:.1f} ms)"
    )


class _Progress:
    """Prints what is waited for, once, on standard error."""

    def __init__(self) -> None:
        self._waiting = False

    def show(self, event: Mapping[str, Any]) -> None:
        """Take an event of the suite process."""
        waits = event.get("waiting_for", "")
        if bool(waits) != self._waiting:
            print(f"waiting for {waits}" if waits else "it has arrived", file=sys.stderr, flush=True)
        self._waiting = bool(waits)
