# SPDX-License-Identifier: Apache-2.0
"""Processes that make follow-ups of live input, each of another instant: as many at a time as there are processes."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.base.process_tree import children_of, read_file
from mt_nodes.base.processes import Child, Process, how_it_ended, wait_until
from mt_nodes.data.bundle_transport import result_unpickler, source_pickler, without_decoded
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.followups import FollowupPlan
from mt_nodes.engine.judging import Offer
from mt_nodes.relations.pipeline import Begun
from mt_nodes.relations.relation import Suite
from mt_nodes.runs.live.followup_process import FollowupReply, FollowupRequest, WorkerSetup
from mt_nodes.stacks.shared_channel import SharedChannel, shared_memory

MODULE = "mt_nodes.runs.live.followup_process"
#: A process that takes longer for one follow-up, or to be ready, is ended, unless it waits for a core: on a busy
#: computer one that gives way may wait for long. So much processor time beyond that is too much, too.
HANG_S = 30.0
_LOOK_EVERY_S = 1.0
#: After so many ends of processes without a follow-up between them the run ends.
MOST_ENDS = 5
#: How long it is waited for the exit code of one that closed its connection.
END_S = 2.0
_TICKS_HZ = os.sysconf("SC_CLK_TCK")


@dataclass(eq=False)
class _Worker:
    """A process, what it is at ``since_s``, and which offers it has made follow-ups of.

    It makes one of ``offer`` and ``source`` for a ``ticket``, None: it only warms up or gets ready. ``suspect_s``: what
    processor time it had taken when it became suspicious.
    """

    child: Child
    channel: SharedChannel
    since_s: float
    busy: bool = True
    looked_s: float = 0.0
    suspect_s: float | None = None
    ticket: Any = None
    offer: Offer | None = None
    source: Bundle | None = None
    warm: set[int] = field(default_factory=set)


class FollowupWorkers:
    """So many processes; one that ends or hangs is replaced, and what it was to make is an ERROR.

    They have scheduling policy, niceness, cores and control groups of the thread that opens them, and end with it,
    however it ends; their shared memory has no name, so that nothing of it stays behind.

    ``count``: how many. ``log``: for what they print.
    """

    def __init__(self, suite: Suite, seed: int, offers: Sequence[Offer], count: int, log: Path) -> None:
        self._setup, self._log = WorkerSetup.of(suite, seed, offers), log
        self._number = {(offer.relation.id, offer.draw): number for number, offer in enumerate(offers)}
        self._ends = 0
        #: How many processes ended or hung, and how many there are.
        self.lost, self.count = 0, count
        self._workers: list[_Worker] = []
        self._was_ready = False

    def open(self) -> bool:
        """Start them, the first time; return whether one has been ready since."""
        if not self._workers:
            self._workers = [self._started() for _ in range(self.count)]
        return self._was_ready

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of their supervisors."""
        return tuple(worker.child.pid for worker in self._workers)

    @property
    def free(self) -> bool:
        """Whether one of them is idle."""
        return any(not worker.busy for worker in self._workers)

    def begin(self, ticket: Any, offer: Offer, bundle: Bundle, begun: Begun) -> None:
        """Have an idle one make a follow-up; :meth:`finished` yields the ticket with it. Raises StopIteration."""
        self._ask(next(worker for worker in self._workers if not worker.busy), offer, bundle, begun, ticket)

    def warm_up(self, offer: Offer, bundle: Bundle, begun: Begun) -> None:
        """Have each idle one that has made none of an offer yet make one, which is forgotten."""
        for worker in self._workers:
            if not worker.busy and self._number[offer.relation.id, offer.draw] not in worker.warm:
                self._ask(worker, offer, bundle, begun, None)

    def finished(self) -> Iterator[tuple[Any, FollowupPlan]]:
        """Yield what has been made, or went wrong, by now. Raises InfrastructureError: processes end again and again.

        Of what went wrong the outcome is ERROR.
        """
        looking, by_number = select.poll(), {worker.channel.fileno(): worker for worker in self._workers}
        for number in by_number:
            looking.register(number, select.POLLIN)
        for number, _ in looking.poll(0):
            yield from self._taken(by_number[number])
        for worker in [one for one in self._workers if one.busy and _hangs(one)]:
            yield from self._replaced(worker, f"got no further for {HANG_S:g} s and was ended")

    def close(self) -> None:
        """End all of them."""
        for worker in self._workers:
            worker.channel.close()
            worker.child.stop(0.0)
        self._workers = []

    @property
    def tickets(self) -> list[Any]:
        """Tickets of what is being made."""
        return [worker.ticket for worker in self._workers if worker.ticket is not None]

    def _started(self) -> _Worker:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        to, from_ = shared_memory("to_worker"), shared_memory("from_worker")
        numbers = theirs.fileno(), to, from_
        # Not as a module of its own: classes of what it sends would be those of "__main__".
        argv = (sys.executable, "-c", f"from {MODULE} import main; main{numbers}")
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
        with theirs:
            child = Child(Process("a process that makes follow-ups", argv, env, self._log), numbers)
        channel = SharedChannel(ours, to, from_)
        with contextlib.suppress(OSError):  # its end is told by the channel
            channel.send(self._setup)
        return _Worker(child, channel, process_time_s())

    def _ask(self, worker: _Worker, offer: Offer, bundle: Bundle, begun: Begun, ticket: Any) -> None:
        number = self._number[offer.relation.id, offer.draw]
        worker.warm.add(number)
        worker.busy, worker.since_s, worker.suspect_s = True, process_time_s(), None
        worker.ticket, worker.offer, worker.source = ticket, offer, bundle
        request = FollowupRequest(number, without_decoded(bundle), begun, ticket is not None)
        with contextlib.suppress(OSError):
            worker.channel.send(request, source_pickler)

    def _taken(self, worker: _Worker) -> Iterator[tuple[Any, FollowupPlan]]:
        ticket, offer, source = worker.ticket, worker.offer, worker.source
        try:
            reply: FollowupReply | None = worker.channel.receive(None if source is None else result_unpickler(source))
        except EOFError:
            wait_until(lambda: worker.child.code is not None, END_S)
            code = worker.child.code
            yield from self._replaced(worker, "closed its connection" if code is None else how_it_ended(code))
            return
        worker.busy, worker.ticket, worker.offer, worker.source = False, None, None, None
        self._was_ready = True
        if reply is not None and offer is not None and source is not None:
            self._ends = 0
            yield ticket, reply.plan(offer, source)

    def _replaced(self, worker: _Worker, how: str) -> Iterator[tuple[Any, FollowupPlan]]:
        """Put another in the place of one that ended or hangs, and yield what that means for what it was to make."""
        self.lost, self._ends = self.lost + 1, self._ends + 1
        place = self._workers.index(worker)
        del self._workers[place]
        worker.channel.close()
        worker.child.stop(0.0)
        why = f"the process that makes follow-ups {how}"
        if self._ends >= MOST_ENDS:
            told = f"{why}, the last of {MOST_ENDS} without a follow-up between them; see {self._log}"
            raise InfrastructureError(f"{told}; `workers: 0` makes them in the suite's own process")
        self._workers.insert(place, self._started())
        if worker.ticket is not None and worker.offer is not None:
            yield worker.ticket, FollowupPlan(worker.offer, None, Outcome.ERROR, f"{why}; another was started")


def _hangs(worker: _Worker) -> bool:
    """Tell whether a process gets no further though no core is lacking."""
    if process_time_s() - worker.since_s < HANG_S or process_time_s() - worker.looked_s < min(_LOOK_EVERY_S, HANG_S):
        return False
    worker.looked_s = process_time_s()
    pid = next(iter(children_of(worker.child.pid)), worker.child.pid)
    try:
        tasks = [read_file(str(path)).rpartition(")")[2].split() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:  # it has just ended, which its channel tells
        return False
    took_s = sum(int(fields[11]) + int(fields[12]) for fields in tasks) / _TICKS_HZ
    worker.suspect_s = took_s if worker.suspect_s is None else worker.suspect_s
    waits = any(fields[0] in "RD" for fields in tasks)  # for a core, or the disk
    return bool(tasks) and (not waits or took_s - worker.suspect_s > HANG_S)
