# SPDX-License-Identifier: Apache-2.0
"""Executes a run from the command line, in this process or in a suite process, and prints its outcome."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from mt_nodes.base.environment import keep_freed_memory
from mt_nodes.base.processes import Process
from mt_nodes.base.suite_client import in_suite
from mt_nodes.cli.outcome import print_summary, warn_of_left_out
from mt_nodes.cli.terminal import progress_bar
from mt_nodes.engine.plan import ReplayRequest, suite_process, suite_stop_s
from mt_nodes.engine.summary.score_range import score_notes
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.stacks.stack import Stack

if TYPE_CHECKING:
    from rich.progress import Progress

Summary = dict[str, Any]


def replay(request: ReplayRequest, out: str | None, *, as_json: bool = False, quiet: bool = False) -> Summary:
    """Execute a replay, print its outcome and return the summary.

    Raises:
        MtError: nothing was run, or the suite process ended without a summary.
    """
    return execute_replay(Run.create(request, out), as_json=as_json, quiet=quiet)


def resume(out: Path, *, as_json: bool = False) -> Summary:
    """Go on with an interrupted replay, print its outcome and return the summary of the whole run.

    Raises:
        MtError: it cannot be resumed.
    """
    return execute_replay(Run.resume(out), as_json=as_json)


def execute_replay(run: Run, *, as_json: bool = False, quiet: bool = False) -> Summary:
    """Execute a replay whose directory exists, print its outcome and return the summary; see :func:`replay`."""

    def here(progress: Callable[[Any], None]) -> Summary:
        from mt_nodes.runs.replay.execute import execute, in_process_arms  # slow to import

        listen = score_notes(lambda line: None, warn)
        return execute(run, lambda ending: in_process_arms(run, ending), listen, progress)

    inprocess = run.request.transport == "inprocess"
    suite = None if inprocess else suite_process(run.out, os.environ)
    return execute_run(run, here, suite, f"`mt replay --resume {run.out}` goes on", as_json=as_json, quiet=quiet)


class ExecutableRun(Protocol):
    """What must be known of a run to execute it and to show its progress."""

    @property
    def out(self) -> Path:
        """Results directory."""

    @property
    def stack(self) -> Stack:
        """Stack under test."""

    @property
    def left_out(self) -> Mapping[str, str]:
        """Relations of patterns and suites that cannot be judged, and why."""

    @property
    def pairs_to_come(self) -> int:
        """Number of verdicts of the whole run."""


def execute_run(
    run: ExecutableRun,
    here: Callable[[Callable[[Any], None]], Summary],
    suite: Process | None,
    afterwards: str,
    *,
    as_json: bool = False,
    quiet: bool = False,
) -> Summary:
    """Execute a run in this process or in a suite process, print its outcome and return the summary.

    Args:
        here: executes the run in this process; called with what takes each group of verdicts.
        suite: process that executes the run; None: this one.
        afterwards: what the user can do if the suite ends early.

    Raises:
        MtError: the run failed, or the suite process ended without a summary.
    """
    with _progress(run) as bar:
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
    """Print a warning."""
    print(f"mt: warning: {warning}", file=sys.stderr)


class _PairBar:
    """Progress bar that counts pairs and violations."""

    def __init__(self, progress: Progress, task: Any) -> None:
        self._progress, self._task = progress, task
        self._done = self._violated = 0

    def verdicts(self, verdicts: Any) -> None:
        self.update(self._done + len(verdicts), self._violated + sum(v.outcome.value == "VIOLATED" for v in verdicts))

    def event(self, event: Mapping[str, Any]) -> None:
        """Take an event of a suite process: its progress, or a warning."""
        if "warning" in event:
            warn(event["warning"])
        else:
            self.update(event["done"], event["violated"])

    def update(self, done: int, violated: int) -> None:
        self._done, self._violated = done, violated
        self._progress.update(self._task, completed=done, violated=violated)


@contextlib.contextmanager
def _progress(run: ExecutableRun) -> Iterator[_PairBar]:
    warn_of_left_out(run.left_out)
    with progress_bar("{task.completed}/{task.total} pairs, {task.fields[violated]} violated") as progress:
        yield _PairBar(progress, progress.add_task(run.stack.name, total=run.pairs_to_come, violated=0))
