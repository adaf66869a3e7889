# SPDX-License-Identifier: Apache-2.0
"""Monotonic time without the time in which this process did not run: stopped (SIGSTOP), frozen or starved.

Messages may get lost meanwhile: Fast DDS drops a silent participant, and its shared memory uses the wall clock. Steps
of the wall clock are therefore counted, too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

CHECK_EVERY_S = 0.1
#: A check this late was held up by more than a busy machine's scheduling.
STALL_S = 0.5
#: More than clock slewing changes between two checks.
WALL_STEP_S = 1.0


class ProcessClock:
    """A clock that stands still while this process does; it must be read often, see :meth:`start_watching`."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic, wall_s: Callable[[], float] = time.time) -> None:
        self._now_s, self._wall_s = now_s, wall_s
        self._lock = threading.Lock()
        self._watched = False
        self._read_s, self._lost_s = now_s(), 0.0
        self._ahead_s = wall_s() - self._read_s
        #: How often this process stood still, or the wall clock was set.
        self.disturbed = 0

    def __call__(self) -> float:
        """Return this process's own time in s: ``time.monotonic()`` less the time in which the process stood still."""
        with self._lock:
            now_s = self._now_s()
            since_s = now_s - self._read_s
            if since_s > STALL_S and self._watched:
                self._lost_s += since_s
                self.disturbed += 1
            ahead_s = self._wall_s() - now_s
            self.disturbed += abs(ahead_s - self._ahead_s) > WALL_STEP_S
            self._read_s, self._ahead_s = now_s, ahead_s
            return now_s - self._lost_s

    def start_watching(self) -> None:
        """Read the clock from a thread from now on; earlier standstills go unnoticed."""
        with self._lock:
            begun, self._watched, self._read_s = self._watched, True, self._now_s()
        if not begun:
            threading.Thread(target=self._watch, name="own-time", daemon=True).start()

    def _watch(self) -> None:
        while True:
            time.sleep(CHECK_EVERY_S)
            self()


#: Clock of all deadlines.
process_time_s = ProcessClock()
