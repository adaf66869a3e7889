# SPDX-License-Identifier: Apache-2.0
"""Runs a replay from the command line: in this process, or in a suite process that is watched from here."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from mt_nodes.cli.outcome import print_summary
from mt_nodes.environment import keep_freed_memory
from mt_nodes.errors import ExitCode, InfrastructureError, IsolationError, MtError, UsageError
from mt_nodes.plan import ReplayRequest, suite_process
from mt_nodes.processes import Process
from mt_nodes.replay import execute, in_process_arms
from mt_nodes.runs import Run

TAIL_LINES = 15
Summary = dict[str, Any]


def replay(request: ReplayRequest, out: str | None, *, as_json: bool = False, quiet: bool = False) -> Summary:
    """Carry out a replay and print its outcome; return the summary.

    Raises:
        MtError: nothing was run, or the suite process ended without a summary.
    """
    return _carry_out(Run.create(request, out), as_json=as_json, quiet=quiet)


def resume(out: Path, *, as_json: bool = False) -> Summary:
    """Go on with a replay that was interrupted, print its outcome and return the summary of all of it.

    Raises:
        MtError: it cannot be gone on with.
    """
    out = out.resolve()
    _go_where_it_started(out)
    return _carry_out(Run.resume(out), as_json=as_json)


def _go_where_it_started(out: Path) -> None:
    """What a run was asked for names files from where it was started."""
    with contextlib.suppress(OSError, ValueError, KeyError):  # what is wrong with run.json is told when it is read
        os.chdir(json.loads((out / "run.json").read_text(encoding="utf-8"))["directory"])


def _carry_out(run: Run, *, as_json: bool = False, quiet: bool = False) -> Summary:
    with _bar(run) as bar:
        inprocess = run.request.transport == "inprocess"
        summary = _in_process(run, bar) if inprocess else _in_suite(run, bar)
    if as_json:
        print(json.dumps(summary, indent=2))
    elif not quiet:
        print_summary(summary, run.out)
    return summary


class _Bar:
    """A progress bar on a terminal, nothing elsewhere."""

    def __init__(self, progress: Progress, task: Any) -> None:
        self._progress, self._task = progress, task
        self._done = self._violated = 0

    def verdicts(self, verdicts: Any) -> None:
        self.update(self._done + len(verdicts), self._violated + sum(v.outcome.value == "VIOLATED" for v in verdicts))

    def update(self, done: int, violated: int) -> None:
        self._done, self._violated = done, violated
        self._progress.update(self._task, completed=done, violated=violated)


@contextlib.contextmanager
def _bar(run: Run) -> Iterator[_Bar]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} pairs, {task.fields[violated]} violated"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, transient=True, disable=not sys.stdout.isatty()) as progress:
        yield _Bar(progress, progress.add_task(f"{run.stack.name}", total=run.pairs_to_come, violated=0))


def _in_process(run: Run, bar: _Bar) -> Summary:
    (run.out / "console.log").touch()
    keep_freed_memory()
    return execute(run, lambda ending: in_process_arms(run), lambda line: None, bar.verdicts)


def _in_suite(run: Run, bar: _Bar) -> Summary:
    process = suite_process(run.out, os.environ)
    reading, writing = os.pipe()
    with _ForwardedSignals() as signals, os.fdopen(reading) as events:
        suite = _started(process, writing)
        signals.to(suite)
        os.close(writing)
        end = _watch(events, bar)
        suite.wait()
    summary_file = run.out / "summary.json"
    if end is not None and end["error"] is not None:
        raise _problem(end)
    if end is None or not summary_file.exists():
        if signals.seen:  # before the suite knew what to do with one
            raise KeyboardInterrupt
        raise InfrastructureError(f"the suite process ended with {suite.returncode}; {_tail(process.log)}")
    summary: Summary = json.loads(summary_file.read_text())
    return summary


def _started(process: Process, events: int) -> subprocess.Popen[bytes]:
    with process.log.open("ab") as log:
        return subprocess.Popen(
            [*process.argv, "--events", str(events)],
            env=dict(process.env),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=(events,),
            start_new_session=True,
        )


def _watch(events: Any, bar: _Bar) -> dict[str, Any] | None:
    for text in events:
        event = json.loads(text)
        if "end" in event:
            return dict(event)
        bar.update(event["done"], event["violated"])
    return None


class _ForwardedSignals:
    """Hands SIGINT and SIGTERM on: the suite ends its stacks and writes the summary, then we go on to print it.

    Made before the suite is, so that none is lost between the two.
    """

    def __init__(self) -> None:
        self.seen: list[int] = []
        self._suite: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> _ForwardedSignals:
        self._before = {number: signal.signal(number, self._forward) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def to(self, suite: subprocess.Popen[bytes]) -> None:
        """Hand on to this process what came and what comes."""
        self._suite = suite
        for number in self.seen[:1]:
            suite.send_signal(number)

    def _forward(self, number: int, frame: Any) -> None:
        self.seen.append(number)
        if self._suite is not None:
            self._suite.send_signal(number)


def _problem(end: dict[str, Any]) -> BaseException:
    if end["end"] == ExitCode.INTERRUPTED:
        return KeyboardInterrupt()
    kinds: dict[int, type[MtError]] = {ExitCode.USAGE: UsageError, ExitCode.ISOLATION: IsolationError}
    return kinds.get(end["end"], InfrastructureError)(end["error"])


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
    return f"its log {log} ends:\n" + "\n".join(f"    | {line}" for line in lines)
