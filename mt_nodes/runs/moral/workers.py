# SPDX-License-Identifier: Apache-2.0
"""Drives runs on several cores: processes with a stack of their own each, answers in the order asked."""

from __future__ import annotations

import os
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache, partial
from multiprocessing import connection
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

from mt_nodes.base.errors import InfrastructureError, MtError
from mt_nodes.runs.moral.dilemma import Dilemma
from mt_nodes.runs.moral.dilemma_check import DilemmaCheck, dilemma_check
from mt_nodes.runs.moral.dilemma_driver import DilemmaDriver
from mt_nodes.runs.moral.dilemma_filter import Check
from mt_nodes.runs.moral.observations import Observation, RunSpec
from mt_nodes.runs.moral.trial import Drive
from mt_nodes.runs.worker_process import WorkerProcess, answer_questions
from mt_nodes.stacks.stack import Stack

T = TypeVar("T")
#: What ending by itself may take before it is enforced.
END_S = 3.0


@contextmanager
def drivers(stack: Stack, seed: int, count: int, log: Path = Path(os.devnull)) -> Iterator[tuple[Drive, Check]]:
    """Yield what drives runs and what checks dilemmas: this process, or ``count`` others where that is more than one.

    What is answered depends on what is asked alone, not on how many answer. What the stack prints goes to the log.
    """
    if count == 1:
        yield partial(map, DilemmaDriver(stack, seed, log=log).run), partial(map, dilemma_check)
        return
    with closing(Workers(stack, seed, count, log)) as workers:
        yield workers.runs, workers.checks


class Workers:
    """Processes that drive; started once. They end with this one, however it ends."""

    def __init__(self, stack: Stack, seed: int, count: int, log: Path = Path(os.devnull)) -> None:
        self._processes = [WorkerProcess(_serve, stack, seed, log, name=f"moral-{number}") for number in range(count)]

    def runs(self, specs: Sequence[RunSpec]) -> Iterator[Observation]:
        """Yield what comes of runs, in their order; each is begun by whoever is free.

        Raises MtError: as the stack's run did. InfrastructureError: a process ended.
        """
        return self._answers(specs, Observation)

    def checks(self, dilemmas: Sequence[Dilemma]) -> Iterator[DilemmaCheck]:
        """Yield whether dilemmas are ones, likewise."""
        return self._answers(dilemmas, DilemmaCheck)

    def _answers(self, jobs: Sequence[RunSpec | Dilemma], kind: type[T]) -> Iterator[T]:
        waiting, idle = deque(enumerate(jobs)), [each.pipe for each in self._processes]
        busy: dict[Connection, int] = {}
        done: dict[int, T] = {}
        for number in range(len(jobs)):
            while number not in done:
                while idle and waiting:
                    index, job = waiting.popleft()
                    pipe = idle.pop(0)
                    self._send(pipe, job)
                    busy[pipe] = index
                for ready in connection.wait(list(busy)):
                    assert isinstance(ready, Connection)
                    done[busy.pop(ready)] = self._received(ready, kind)
                    idle.append(ready)
            yield done.pop(number)

    def close(self) -> None:
        """End the processes."""
        for each in self._processes:
            each.pipe.close()
        for each in self._processes:
            each.end(END_S)

    def _send(self, pipe: Connection, job: RunSpec | Dilemma) -> None:
        try:
            pipe.send(job)
        except OSError as error:
            raise self._worker_death() from error

    def _received(self, pipe: Connection, kind: type[T]) -> T:
        try:
            answer = pipe.recv()
        except (EOFError, OSError) as error:
            raise self._worker_death() from error
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, kind)
        return answer

    def _worker_death(self) -> InfrastructureError:
        return InfrastructureError("a process that drove the stack ended; it may have been killed, or out of memory")


def _serve(pipe: Connection, stack: Stack, seed: int, log: Path, directories: Sequence[Path], parent: int) -> None:
    """Do what is asked until nobody asks any more."""
    driver = cache(partial(DilemmaDriver, stack, seed, log=log))

    def answer(job: RunSpec | Dilemma) -> Observation | DilemmaCheck | Exception:
        try:
            return dilemma_check(job) if isinstance(job, Dilemma) else driver().run(job)
        except MtError as error:
            return error
        except Exception:  # noqa: BLE001 - told to whoever asked, with the traceback that pickling would lose
            return RuntimeError(f"a process that drives failed:\n{traceback.format_exc()}")

    answer_questions(pipe, directories, parent, answer)
