# SPDX-License-Identifier: Apache-2.0
"""Runs a replay from the command line: in this process, or in a suite process that is watched from here."""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from io import FileIO
from pathlib import Path
from typing import Any, Protocol

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from mt_nodes.cli.outcome import print_summary
from mt_nodes.environment import keep_freed_memory
from mt_nodes.errors import ExitCode, InfrastructureError, IsolationError, MtError, UsageError
from mt_nodes.own_time import own_time_s
from mt_nodes.plan import ReplayRequest, suite_process, suite_stop_s
from mt_nodes.processes import Process, how_it_ended, is_stopped, nobody_left_behind
from mt_nodes.replay import execute, in_process_arms
from mt_nodes.runs import Run
from mt_nodes.stacks import Stack

TAIL_LINES = 15
LOOK_EVERY_S = 0.5
PIPE_BYTES = 65536
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
        return execute(run, lambda ending: in_process_arms(run), lambda line: None, progress)

    inprocess = run.request.transport == "inprocess"
    suite = None if inprocess else suite_process(run.out, os.environ)
    return carry_out(run, here, suite, f"`mt replay --resume {run.out}` goes on", as_json=as_json, quiet=quiet)


class Shown(Protocol):
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
    run: Shown,
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
            summary = in_suite(suite, stop_s, lambda event: bar.update(event["done"], event["violated"]), afterwards)
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
def _bar(run: Shown) -> Iterator[_Bar]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} pairs, {task.fields[violated]} violated"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, transient=True, disable=not sys.stdout.isatty()) as progress:
        yield _Bar(progress, progress.add_task(f"{run.stack.name}", total=run.pairs_to_come, violated=0))


def in_suite(process: Process, stop_s: float, show: Callable[[Summary], None], afterwards: str) -> Summary:
    """Start a suite process, wait for its end, and return the summary that it wrote beside its log.

    Args:
        process: of the suite.
        stop_s: how long it may take to end, once it was asked to.
        show: called with every event of it but the last.
        afterwards: what to do with what was judged, should it end early.

    Raises:
        MtError: what it ended with, or that it ended without a summary.
        KeyboardInterrupt: it was interrupted before it had one.
    """
    out = process.log.parent
    reading, writing = os.pipe()
    with nobody_left_behind(), _Suite(stop_s) as suite, os.fdopen(reading, "rb", 0) as events:
        suite.start(process, writing)
        os.close(writing)
        end = _watch(events, suite, show)
        code = suite.wait()
    summary_file = out / "summary.json"
    if end is not None and end["error"] is not None:
        raise _problem(end)
    if end is None or not summary_file.exists():
        kept = f"What was judged is in {out}: {afterwards}"
        if suite.killed:
            raise KeyboardInterrupt(f"interrupted; the suite process did not end in time and was killed. {kept}")
        if suite.asked:  # before it knew what to do with a signal
            raise KeyboardInterrupt
        raise InfrastructureError(f"the suite process {how_it_ended(code)}. {kept}; {_tail(process.log)}")
    summary: Summary = json.loads(summary_file.read_text())
    return summary


def _watch(events: FileIO, suite: _Suite, show: Callable[[Summary], None]) -> dict[str, Any] | None:
    """Show progress until the suite closes its end; return what it said last, None if it could not."""
    text, end = b"", None
    while True:
        suite.look()
        if not select.select([events], [], [], LOOK_EVERY_S)[0]:
            continue
        data = events.read(PIPE_BYTES)
        if not data:
            return end
        *lines, text = (text + data).split(b"\n")
        for event in map(json.loads, lines):
            if "end" in event:
                end = dict(event)
            else:
                show(event)


class _Suite:
    """The suite process. SIGINT and SIGTERM are handed on: it ends its stacks and writes the summary, then we print it.

    Made before the process is, so that no signal is lost between the two.

    Args:
        stop_s: how long it may take to end, once it was asked to; then it is killed.
    """

    def __init__(self, stop_s: float) -> None:
        self.asked: list[int] = []
        self.killed = False
        self._stop_s, self._until_s = stop_s, math.inf
        self._process: subprocess.Popen[bytes] | None = None
        self._told = False

    def __enter__(self) -> _Suite:
        own_time_s.keep_looking()
        self._before = {number: signal.signal(number, self._forward) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def start(self, process: Process, events: int) -> None:
        """Start it; it writes events to this descriptor."""
        with process.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*process.argv, "--events", str(events)],
                env=dict(process.env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(events,),
                start_new_session=True,
            )
        for number in self.asked[:1]:
            self._ask(self._process, number)

    def look(self) -> None:
        """Say once that it stands still, if so; end it when it was asked to end long enough ago."""
        assert self._process is not None
        if self.asked:
            self._until_s = min(self._until_s, own_time_s() + self._stop_s)
            # Again and again: the first may have come while it was importing, and been dropped by Python.
            self._ask(self._process, self.asked[0])
        if own_time_s() > self._until_s:
            self.killed = True
            self._process.kill()
        elif not self._told and is_stopped(self._process.pid):
            self._told = True
            print(
                f"mt: the suite process {self._process.pid} was stopped (SIGSTOP) and is waited for; "
                f"let it go on (kill -CONT {self._process.pid}), or interrupt this one (Ctrl-C)",
                file=sys.stderr,
                flush=True,
            )

    def wait(self) -> int:
        """Wait for its end and return its exit code (negative: the signal that ended it)."""
        assert self._process is not None
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._process.wait(LOOK_EVERY_S)
            self.look()

    def _forward(self, number: int, frame: Any) -> None:
        self.asked.append(number)
        if self._process is not None:
            self._ask(self._process, number)

    def _ask(self, process: subprocess.Popen[bytes], number: int) -> None:
        for each in (number, signal.SIGCONT):  # who stands still hears nothing
            process.send_signal(each)


def _problem(end: dict[str, Any]) -> BaseException:
    if end["end"] == ExitCode.INTERRUPTED:
        return KeyboardInterrupt()
    kinds: dict[int, type[MtError]] = {ExitCode.USAGE: UsageError, ExitCode.ISOLATION: IsolationError}
    return kinds.get(end["end"], InfrastructureError)(end["error"])


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
    return f"its log {log} ends:\n" + "\n".join(f"    | {line}" for line in lines)
