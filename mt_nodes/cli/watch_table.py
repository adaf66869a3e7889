# SPDX-License-Identifier: Apache-2.0
"""Runs that only watch, on the command line: their progress and the table of their rates."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.options import put_out

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
    put_out(as_json, summary, lambda: print_watched(summary, run.out))
    return int(summary["exit_code"])


def watch_bags(args: argparse.Namespace) -> int:
    """Carry out ``mt replay BAG --watch-only``. Raises UsageError: an option has no meaning for it."""
    from mt_nodes.cli.arguments import role_topics
    from mt_nodes.runs.watch.watch_request import bag_request

    if not args.watch_only:
        raise UsageError("--watch-config goes with --watch-only")
    if not args.bags:
        raise UsageError("got no bag; type `mt replay BAG --watch-only`")
    if given := [
        name for name in ("suite", "cases", "failures", "resume", "waivers", "qos", "plan") if getattr(args, name)
    ]:
        raise UsageError(f"--{given[0]}: a run that only watches has no use for it; leave it out")
    request = bag_request(
        args.watch_config,
        bags=tuple(map(str, args.bags)),
        inprocess=args.transport == "inprocess",
        relations=args.relations,
        stack=args.stack,
        topics=role_topics(args.topics),
        limit=args.limit,
        faults=tuple(args.faults),
        transforms=str(args.transforms or ""),
        plugins=tuple(str(p.resolve()) for p in args.plugins),
    )
    return watch_run(request, args.out, args.json)


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
    answered = summary["frames"] - summary["unanswered"]
    if summary.get("lost_messages"):
        yield f"{summary['lost_messages']} messages were lost here: this machine was too busy to watch them"
    if "cost" not in summary:  # of a run in progress
        return
    busy_ms = 1e3 * summary["cost"]["cpu_s"] / max(summary["cost"]["wall_s"], 1e-9)
    yield f"{summary['frames']} inputs, {answered} answered; {busy_ms:.0f} ms of processor time a second"
    look = summary["cost"]["look_ms"]
    yield f"looking took {look['p50']:.1f} ms an input, {look['p99']:.1f} ms at most in 99 %"


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
