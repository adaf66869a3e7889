# SPDX-License-Identifier: Apache-2.0
"""Workers on this machine: processes that do one item after another and end with the one that started them."""

from __future__ import annotations

import contextlib
import math
import os
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection
from pathlib import Path

from mt_nodes.base.environment import free_domains
from mt_nodes.base.errors import ExitCode
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.base.processes import how_it_ended
from mt_nodes.runs.campaign.item import CampaignItem, ItemResult
from mt_nodes.runs.campaign.item_execution import perform, worker_name
from mt_nodes.runs.campaign.pool import LostItem
from mt_nodes.runs.worker_process import WorkerProcess, answer_questions

#: What ending may take before it is enforced: stacks end first, and a summary is written.
END_S = 120.0
#: Says in a worker's environment that its ROS domain is leased for it.
_OWN = "MT_CAMPAIGN_DOMAIN"


@dataclass(eq=False)
class _Worker:
    """A process and what it is at.

    ``key``: of its item, empty when it is idle. ``size``: bytes of that item's journal when it last grew, or began.
    ``since_s``: when that was, process time.
    """

    ours: WorkerProcess
    key: str = ""
    size: int = 0
    since_s: float = 0.0


class LocalPool:
    """So many workers; one that dies is replaced, and one that gets no further is ended."""

    def __init__(self, count: int, scratch: Path, stall_s: float = math.inf) -> None:
        """Start the workers.

        ``count``: how many. ``scratch``: see :func:`mt_nodes.runs.campaign.item_execution.perform`. ``stall_s``: how
        long the journal of an item may go without a further line, by our process time.
        """
        process_time_s.start_watching()
        self._scratch, self._stall_s = scratch, stall_s
        self._workers = [self._started() for _ in range(count)]

    def submit(self, item: CampaignItem) -> None:
        """Have an idle worker do an item. Raises RuntimeError: none is idle."""
        worker = next((w for w in self._workers if not w.key), None)
        if worker is None:
            raise RuntimeError("every worker is at an item; submit no more than are free")
        worker.key, worker.size, worker.since_s = item.key, self._journalled(item.key), process_time_s()
        with contextlib.suppress(OSError):  # it died: the end of its pipe tells
            worker.ours.pipe.send(item)

    def finished(self, timeout_s: float) -> Iterator[ItemResult | LostItem]:
        """Yield what ended; waits so long for the first at most."""
        by_pipe = {worker.ours.pipe: worker for worker in self._workers}
        for ready in connection.wait(list(by_pipe), timeout_s):
            worker = by_pipe[ready]  # type: ignore[index]
            key = worker.key
            try:
                answer = worker.ours.pipe.recv()
            except (EOFError, OSError):
                why = self._replace(worker)
                if key:
                    yield LostItem(key, why)
            else:
                worker.key = ""
                yield answer
        for worker in [w for w in self._workers if w.key and self._stands_still(w)]:
            worker.ours.process.terminate()
            why = f"got no further for {self._stall_s / 60:g} min (stall_minutes)"
            yield LostItem(worker.key, f"{why}; {self._replace(worker)}")

    @property
    def free(self) -> int:
        """How many workers are idle."""
        return sum(not worker.key for worker in self._workers)

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the workers."""
        return tuple(pid for worker in self._workers if (pid := worker.ours.process.pid) is not None)

    def close(self) -> None:
        """End the workers, idle ones at once; what others are at can be gone on with."""
        for worker in self._workers:
            worker.ours.pipe.close()
            if worker.key:
                worker.ours.process.terminate()
        for worker in self._workers:
            worker.ours.end(END_S)
        self._workers = []

    def _started(self) -> _Worker:
        return _Worker(WorkerProcess(serve, self._scratch, name="campaign-worker"))

    def _stands_still(self, worker: _Worker) -> bool:
        """Whether the journal of what a worker is at has not grown for too long."""
        if (size := self._journalled(worker.key)) != worker.size:
            worker.size, worker.since_s = size, process_time_s()
        return process_time_s() - worker.since_s > self._stall_s

    def _journalled(self, key: str) -> int:
        try:
            return (self._scratch / key / "result.jsonl").stat().st_size
        except FileNotFoundError:
            return 0

    def _replace(self, worker: _Worker) -> str:
        """Put another in the place of a worker that died or is to end; return how it ended."""
        code = worker.ours.end(END_S)
        self._workers[self._workers.index(worker)] = self._started()
        return f"its worker {how_it_ended(code)}"


def serve(pipe: Connection, scratch: Path, directories: Sequence[Path], leader: int) -> None:
    """Do what is asked, in the main thread of a process of its own.

    Args:
        pipe: items come in, what came of each goes out.
        scratch: see :func:`mt_nodes.runs.campaign.item_execution.perform`. directories: of plugins.
        leader: id of the process that asks; when that ends, so does this one.
    """
    with contextlib.ExitStack() as ending:
        answer_questions(pipe, directories, leader, lambda item: _answer(item, scratch, ending))


def _answer(item: CampaignItem, scratch: Path, ending: contextlib.ExitStack) -> ItemResult:
    try:
        if item.request.transport == "ros" and _OWN not in os.environ:
            # What its suites say of themselves goes to a domain that no other worker's suites speak in.
            domain = ending.enter_context(free_domains(1)).domains[0]
            os.environ |= {"ROS_DOMAIN_ID": str(domain), _OWN: str(domain)}
        return perform(item, scratch)
    except Exception:  # noqa: BLE001 - told to the leader, which tries again elsewhere
        why = f"a worker failed: {traceback.format_exc(limit=-3)}"
        return ItemResult(item.key, int(ExitCode.INFRASTRUCTURE), (), "", 0.0, worker_name(), why)
