# SPDX-License-Identifier: Apache-2.0
"""Workers on this machine: processes that do one item after another and end with the one that started them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

from mt_nodes import plugins
from mt_nodes.campaign.item import Item, ItemResult
from mt_nodes.campaign.performing import perform, worker_name
from mt_nodes.campaign.pool import Lost
from mt_nodes.environment import free_domains
from mt_nodes.errors import ExitCode
from mt_nodes.processes import die_with_parent, how_it_ended, uninterrupted

#: What ending may take before it is enforced: stacks end first, and a summary is written.
END_S = 120.0
#: Says in a worker's environment that its ROS domain is leased for it.
_OWN = "MT_CAMPAIGN_DOMAIN"


@dataclass(eq=False)
class _Worker:
    """A process, our end of its pipe, and the key of what it is at, empty when it is idle."""

    process: SpawnProcess
    pipe: Connection
    key: str = ""


class LocalPool:
    """So many workers; one that dies is replaced."""

    def __init__(self, count: int, scratch: Path) -> None:
        """Start the workers.

        Args:
            count: how many. scratch: see :func:`mt_nodes.campaign.performing.perform`.
        """
        self._scratch = scratch
        self._workers = [self._started() for _ in range(count)]

    def submit(self, item: Item) -> None:
        """Have an idle worker do an item.

        Raises:
            RuntimeError: none is idle.
        """
        worker = next((w for w in self._workers if not w.key), None)
        if worker is None:
            raise RuntimeError("every worker is at an item; submit no more than are free")
        worker.key = item.key
        with contextlib.suppress(OSError):  # it died: the end of its pipe tells
            worker.pipe.send(item)

    def finished(self, timeout_s: float) -> Iterator[ItemResult | Lost]:
        """Yield what ended; waits so long for the first at most."""
        by_pipe = {worker.pipe: worker for worker in self._workers}
        for ready in connection.wait(list(by_pipe), timeout_s):
            worker = by_pipe[ready]  # type: ignore[index]
            key = worker.key
            try:
                answer = worker.pipe.recv()
            except (EOFError, OSError):
                why = self._replace(worker)
                if key:
                    yield Lost(key, why)
            else:
                worker.key = ""
                yield answer

    @property
    def free(self) -> int:
        """How many workers are idle."""
        return sum(not worker.key for worker in self._workers)

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the workers."""
        return tuple(pid for worker in self._workers if (pid := worker.process.pid) is not None)

    def close(self) -> None:
        """End the workers, idle ones at once; what others are at can be gone on with."""
        for worker in self._workers:
            worker.pipe.close()
            if worker.key:
                worker.process.terminate()
        for worker in self._workers:
            worker.process.join(END_S)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        self._workers = []

    def _started(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        arguments = (theirs, self._scratch, plugins.directories(), os.getpid())
        process = context.Process(target=_serve, args=arguments, name="campaign-worker")
        with uninterrupted():
            process.start()
        theirs.close()
        return _Worker(process, ours)

    def _replace(self, worker: _Worker) -> str:
        """Put another in the place of a worker that died; return how it ended."""
        worker.pipe.close()
        worker.process.join(END_S)
        if worker.process.is_alive():  # it closed its pipe and lives: nobody can tell it anything
            worker.process.kill()
            worker.process.join()
        self._workers[self._workers.index(worker)] = self._started()
        return f"its worker {how_it_ended(worker.process.exitcode or 0)}"


def _serve(pipe: Connection, scratch: Path, directories: Sequence[Path], leader: int) -> None:
    """Do what is asked until nobody asks any more."""
    os.setsid()  # an interruption at the terminal is the leader's: it ends us
    die_with_parent()
    if os.getppid() != leader:  # it ended before we asked to be told
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for directory in directories:
        plugins.add_directory(directory)
    with contextlib.ExitStack() as ending:
        while True:
            try:
                item = pipe.recv()
            except (EOFError, OSError):
                return
            try:
                answer = _answer(item, scratch, ending)
            except KeyboardInterrupt:
                return
            try:
                pipe.send(answer)
            except OSError:  # nobody listens any more
                return


def _answer(item: Item, scratch: Path, ending: contextlib.ExitStack) -> ItemResult:
    try:
        if item.request.transport == "ros" and _OWN not in os.environ:
            # What its suites say of themselves goes to a domain that no other worker's suites speak in.
            domain = ending.enter_context(free_domains(1)).domains[0]
            os.environ |= {"ROS_DOMAIN_ID": str(domain), _OWN: str(domain)}
        return perform(item, scratch)
    except Exception:  # noqa: BLE001 - told to the leader, which tries again elsewhere
        why = f"a worker failed: {traceback.format_exc(limit=-3)}"
        return ItemResult(item.key, int(ExitCode.INFRASTRUCTURE), (), "", 0.0, worker_name(), why)
