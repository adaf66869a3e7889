# SPDX-License-Identifier: Apache-2.0
"""Starts a suite process, watches it to its end, and forwards signals to it."""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from io import FileIO
from typing import Any

from mt_nodes.base.errors import ExitCode, InfrastructureError, IsolationError, MtError, UsageError
from mt_nodes.base.jsonl import read_result
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.base.processes import Process, how_it_ended, is_stopped, nobody_left_behind, tail_of

CHECK_EVERY_S = 0.5
PIPE_BYTES = 65536
Summary = dict[str, Any]


def in_suite(
    process: Process, stop_s: float, show: Callable[[Summary], None], afterwards: str, inherited: Sequence[int] = ()
) -> Summary:
    """Start a suite process, wait for its end, and return the summary that it wrote beside its log.

    Raises MtError: its error, or that it ended without a summary. KeyboardInterrupt: it was interrupted before it wrote
    one.

    Args:
        stop_s: how long it may take to end after a signal.
        show: called with each event but the last.
        afterwards: what the user can do with the verdicts so far, if it ends early.
        inherited: descriptors that it inherits: a lock is then held until it ends, even if this process is killed.
    """
    out = process.log.parent
    reading, writing = os.pipe()
    with nobody_left_behind(), _Suite(stop_s) as suite, os.fdopen(reading, "rb", 0) as events:
        suite.start(process, writing, inherited)
        os.close(writing)
        end = _watch(events, suite, show)
        code = suite.wait()
    summary_file = out / "summary.json"
    if end is not None and end["error"] is not None:
        raise _problem(end)
    if end is None or not summary_file.exists():
        so_far = f"What was judged is in {out}: {afterwards}"
        if suite.killed:
            raise KeyboardInterrupt(f"interrupted; the suite process did not end in time and was killed. {so_far}")
        if suite.signals:  # before it knew what to do with a signal
            raise KeyboardInterrupt
        raise InfrastructureError(f"the suite process {how_it_ended(code)}. {so_far}; {tail_of(process.log)}")
    return read_result(summary_file)


def _watch(events: FileIO, suite: _Suite, show: Callable[[Summary], None]) -> dict[str, Any] | None:
    """Show progress until the suite closes its end; return its last event, None if there is none."""
    text, end = b"", None
    while True:
        suite.check()
        if not select.select([events], [], [], CHECK_EVERY_S)[0]:
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
    """The suite process. It receives SIGINT and SIGTERM: it ends its stacks and writes the summary, which we print.

    Created before the process starts, so that no signal is lost in between.
    ``stop_s``: how long it may take to end after a signal; then it is killed.
    """

    def __init__(self, stop_s: float) -> None:
        self.signals: list[int] = []
        self.killed = False
        self._stop_s, self._until_s = stop_s, math.inf
        self._process: subprocess.Popen[bytes] | None = None
        self._reported = False

    def __enter__(self) -> _Suite:
        process_time_s.start_watching()
        self._before = {number: signal.signal(number, self._forward) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def start(self, process: Process, events: int, inherited: Sequence[int] = ()) -> None:
        """Start it; it writes events to one descriptor, and inherits others."""
        with process.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*process.argv, "--events", str(events)],
                env=dict(process.env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(events, *inherited),
                start_new_session=True,
            )
        for number in self.signals[:1]:
            self._send(self._process, number)

    def check(self) -> None:
        """Report once that the process is stopped; kill it if it does not end in time after a signal."""
        assert self._process is not None
        if self.signals:
            self._until_s = min(self._until_s, process_time_s() + self._stop_s)
            # Repeatedly: the first signal may come during its imports, where Python drops the exception.
            self._send(self._process, self.signals[0])
        if process_time_s() > self._until_s:
            self.killed = True
            self._process.kill()
        elif not self._reported and is_stopped(self._process.pid):
            self._reported = True
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
                return self._process.wait(CHECK_EVERY_S)
            self.check()

    def _forward(self, number: int, frame: Any) -> None:
        self.signals.append(number)
        if self._process is not None:
            self._send(self._process, number)

    def _send(self, process: subprocess.Popen[bytes], number: int) -> None:
        for each in (number, signal.SIGCONT):  # who stands still hears nothing
            process.send_signal(each)


def _problem(end: dict[str, Any]) -> BaseException:
    if end["end"] == ExitCode.INTERRUPTED:
        return KeyboardInterrupt()
    kinds: dict[int, type[MtError]] = {ExitCode.USAGE: UsageError, ExitCode.ISOLATION: IsolationError}
    return kinds.get(end["end"], InfrastructureError)(end["error"])
