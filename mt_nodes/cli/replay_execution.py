# SPDX-License-Identifier: Apache-2.0
"""Runs a replay from the command line: in this process, or in a suite process that is watched from here."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from mt_nodes.base.environment import keep_freed_memory
from mt_nodes.base.processes import Process
from mt_nodes.base.suite_client import in_suite
from mt_nodes.cli.outcome import print_summary
from mt_nodes.engine.plan import ReplayRequest, suite_process, suite_stop_s
from mt_nodes.engine.summary.score_range import score_notes
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.stacks.stack import Stack

Summary = dict[str, Any]


def replay(request: ReplayRequest, out: str | None, *, as_json: bool = False, quiet: bool = False) -> Summary:
    """Carry out a replay and print its outcome; return the summary.

    Raises:
        MtError: nothing was run, or the suite process ended without a summary.
    """
    return replayed(Run.create(request, out), as_json=as_json, quiet=quiet)


def resume(out: Path, *, as_json: bool = False) -> Summary:
    """Go on with a replay that was interrupted, print its outcome and return the summary of all of it.

    Raises:
        MtError: it cannot be gone on with.
    """
    out = out.resolve()
    go_where_it_started(out)
    return replayed(Run.resume(out), as_json=as_json)


def go_where_it_started(out: Path) -> None:
    """What a run was asked for names files from where it was started."""
    with contextlib.suppress(OSError, ValueError, KeyError):  # what is wrong with run.json is told when it is read
        os.chdir(json.loads((out / "run.json").read_text(encoding="utf-8"))["directory"])


def replayed(run: Run, *, as_json: bool = False, quiet: bool = False) -> Summary:
    """Carry out a replay that was made, print its outcome and return the summary; see :func:`replay`."""

    def here(progress: Callable[[Any], None]) -> Summary:
        from mt_nodes.runs.replay.execute import execute, in_process_arms  # slow to import

        listen = score_notes(lambda line: None, warn)
        return execute(run, lambda ending: in_process_arms(run, ending), listen, progress)

    inprocess = run.request.transport == "inprocess"
    suite = None if inprocess else suite_process(run.out, os.environ)
    return carry_out(run, here, suite, f"`mt replay --resume {run.out}` goes on", as_json=as_json, quiet=quiet)


class ShownRun(Protocol):
    """What must be known of a run to show how it goes."""

    @property
    def out(self) -> Path:
        """Results directory."""

    @property
    def stack(self) -> Stack:
        """What is under test."""

    @property
    def pairs_to_come(self) -> int:
        """How many verdicts a whole run owes."""


def carry_out(
    run: ShownRun,
    here: Callable[[Callable[[Any], None]], Summary],
    suite: Process | None,
    afterwards: str,
    *,
    as_json: bool = False,
    quiet: bool = False,
) -> Summary:
    """Carry out a run in this process, or in that of a suite; print its outcome and return the summary.

    Args:
        run: which one.
        here: carries it out in this process; called with what takes each group of verdicts.
        suite: process that carries it out, None: this one.
        afterwards: what to do with what was judged, should the suite end early.

    Raises:
        MtError: what it ended with, or that the suite process ended without a summary.
    """
    with _bar(run) as bar:
        if suite is None:
            (run.out / "console.log").touch()
            keep_freed_memory()
            summary = here(bar.verdicts)
        else:
            stop_s = suite_stop_s(run.stack)
            summary = in_suite(suite, stop_s, bar.event, afterwards)
    if as_json:
        print(json.dumps(summary, indent=2))
    elif not quiet:
        print_summary(summary, run.out)
    return summary


def warn(warning: str) -> None:
    """Print a warning while a run goes on."""
    print(f"mt: warning: {warning}", file=sys.stderr)


class _Bar:
    """A progress bar on a terminal, nothing elsewhere."""

    def __init__(self, progress: Progress, task: Any) -> None:
        self._progress, self._task = progress, task
        self._done = self._violated = 0

    def verdicts(self, verdicts: Any) -> None:
        self.update(self._done + len(verdicts), self._violated + sum(v.outcome.value == "VIOLATED" for v in verdicts))

    def event(self, event: Mapping[str, Any]) -> None:
        """Take what a suite process tells: how far it is, or a warning."""
        if "warning" in event:
            warn(event["warning"])
        else:
            self.update(event["done"], event["violated"])

    def update(self, done: int, violated: int) -> None:
        self._done, self._violated = done, violated
        self._progress.update(self._task, completed=done, violated=violated)


@contextlib.contextmanager
def _bar(run: ShownRun) -> Iterator[_Bar]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} pairs, {task.fields[violated]} violated"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, transient=True, disable=not sys.stdout.isatty()) as progress:
        yield _Bar(progress, progress.add_task(f"{run.stack.name}", total=run.pairs_to_come, violated=0))
