# SPDX-License-Identifier: Apache-2.0
"""Work that the run need not wait for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Background:
    """Does jobs one after the other in a thread; a caller who is too far ahead waits, so that memory stays bounded."""

    def __init__(self, most_waiting: int = 8) -> None:
        """Keep at most so many jobs waiting, with everything they hold."""
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="mt_background")
        self._jobs: deque[Future[None]] = deque()
        self._most_waiting = most_waiting

    def do(self, job: Callable[..., None], *args: Any) -> None:
        """Have a job done; whatever went wrong in an earlier one is raised here or by :meth:`wait`."""
        while self._jobs and (self._jobs[0].done() or len(self._jobs) >= self._most_waiting):
            self._jobs.popleft().result()
        self._jobs.append(self._pool.submit(job, *args))

    def wait(self) -> None:
        """Return when every job is done; raise what went wrong in the first that failed."""
        while self._jobs:
            self._jobs.popleft().result()

    def close(self) -> None:
        """Finish what was given and end the thread."""
        self._pool.shutdown()
