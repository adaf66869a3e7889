# SPDX-License-Identifier: Apache-2.0
"""Work that runs in the background, so that the run need not wait for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Background:
    """Runs jobs one after the other in a thread; a caller that is too far ahead waits, which bounds the memory."""

    def __init__(self, most_waiting: int = 8) -> None:
        """Keep at most ``most_waiting`` jobs in the queue, with everything that they hold."""
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="mt_background")
        self._jobs: deque[Future[None]] = deque()
        self._most_waiting = most_waiting

    def do(self, job: Callable[..., None], *args: Any) -> None:
        """Queue a job; raises here, or in :meth:`wait`, what an earlier job raised."""
        while self._jobs and (self._jobs[0].done() or len(self._jobs) >= self._most_waiting):
            self._jobs.popleft().result()
        self._jobs.append(self._pool.submit(job, *args))

    def wait(self) -> None:
        """Return when every job is done; raises what the first job that failed raised."""
        while self._jobs:
            self._jobs.popleft().result()

    def close(self) -> None:
        """Finish the queued jobs and end the thread."""
        self._pool.shutdown()
