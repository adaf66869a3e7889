# SPDX-License-Identifier: Apache-2.0
"""Executes a run from the command line with a progress bar, and prints its outcome."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mt_nodes.api.replays import carry_out, make_run
from mt_nodes.base.environment import keep_freed_memory, return_freed_memory
from mt_nodes.base.processes import Process
from mt_nodes.cli.outcome import print_summary, warn_of_left_out
from mt_nodes.cli.terminal import progress_bar
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.runs.run_execution import ExecutableRun, PairCounter, Summary, execute_in


def replay(request: ReplayRequest, out: str | None, *, as_json: bool = False, quiet: bool = False) -> Summary:
    """Execute a replay, print its outcome and return the summary.

    Raises MtError: nothing was run, or the suite process ended without a summary.
    """
    return execute_replay(make_run(request, request.stack, out), as_json=as_json, quiet=quiet)


def resume(out: Path, *, as_json: bool = False) -> Summary:
    """Go on with an interrupted replay, print its outcome and return the summary of the whole run.

    Raises MtError: it cannot be resumed.
    """
    return execute_replay(Run.resume(out), as_json=as_json)


def execute_replay(run: Run, *, as_json: bool = False, quiet: bool = False) -> Summary:
    """Execute a replay whose directory exists, print its outcome and return the summary; see :func:`replay`."""
    with _progress(run) as counter:
        keep_freed_memory()
        return_freed_memory()
        summary = dict(carry_out(run, counter).summary)
    _print(summary, run.out, as_json, quiet)
    return summary


def execute_run(
    run: ExecutableRun,
    in_process: Callable[[Callable[[Any], None]], Summary],
    suite: Process | None,
    afterwards: str,
    *,
    as_json: bool = False,
    quiet: bool = False,
) -> Summary:
    """Execute a run of another kind in the same way; arguments as of :func:`~mt_nodes.runs.run_execution.execute_in`.

    Raises MtError: the run failed, or the suite process ended without a summary.
    """
    with _progress(run) as counter:
        keep_freed_memory()
        return_freed_memory()
        summary = execute_in(run, in_process, suite, counter, afterwards)
    _print(summary, run.out, as_json, quiet)
    return summary


def warn(warning: str) -> None:
    """Print a warning."""
    print(f"mt: warning: {warning}", file=sys.stderr)


def _print(summary: Summary, out: Path, as_json: bool, quiet: bool) -> None:
    if as_json:
        print(json.dumps(summary, indent=2))
    elif not quiet:
        print_summary(summary, out)


@contextlib.contextmanager
def _progress(run: ExecutableRun) -> Iterator[PairCounter]:
    warn_of_left_out(run.left_out)
    with progress_bar("{task.completed}/{task.total} pairs, {task.fields[violated]} violated") as progress:
        task = progress.add_task(run.stack.name, total=run.pairs_to_come, violated=0)

        def show(done: int, total: int, violated: int) -> None:
            progress.update(task, completed=done, violated=violated)

        yield PairCounter(run.pairs_to_come, show, warn)
