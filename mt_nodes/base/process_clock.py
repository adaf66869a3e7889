# SPDX-License-Identifier: Apache-2.0
"""Monotonic time less what this process slept through: being stopped (SIGSTOP), frozen or starved is nobody's delay.

What is on its way meanwhile may get lost: to Fast DDS whoever keeps silent for a while is gone, and its shared memory
goes by the wall clock. So steps of that are counted, too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

LOOK_EVERY_S = 0.1
#: A look that comes so late was held up by more than a busy machine's scheduling.
STOOD_STILL_S = 0.5
#: More than any slewing does between two looks.
WALL_STEP_S = 1.0


class OwnTime:
    """A clock that stands still while this process does: it must be looked at often, see :meth:`keep_looking`."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic, wall_s: Callable[[], float] = time.time) -> None:
        self._now_s, self._wall_s = now_s, wall_s
        self._lock = threading.Lock()
        self._looking = False
        self._seen_s, self._lost_s = now_s(), 0.0
        self._ahead_s = wall_s() - self._seen_s
        #: How often this process stood still, or the wall clock was set.
        self.disturbed = 0

    def __call__(self) -> float:
        """Return this process's own time, s: that of ``time.monotonic()`` until the process has once stood still."""
        with self._lock:
            now_s = self._now_s()
            since_s = now_s - self._seen_s
            if since_s > STOOD_STILL_S and self._looking:
                self._lost_s += since_s
                self.disturbed += 1
            ahead_s = self._wall_s() - now_s
            self.disturbed += abs(ahead_s - self._ahead_s) > WALL_STEP_S
            self._seen_s, self._ahead_s = now_s, ahead_s
            return now_s - self._lost_s

    def keep_looking(self) -> None:
        """Look from a thread of its own from now on; before that nothing is known to have stood still."""
        with self._lock:
            begun, self._looking, self._seen_s = self._looking, True, self._now_s()
        if not begun:
            threading.Thread(target=self._look, name="own-time", daemon=True).start()

    def _look(self) -> None:
        while True:
            time.sleep(LOOK_EVERY_S)
            self()


#: What deadlines are measured by.
own_time_s = OwnTime()
