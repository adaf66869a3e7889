# SPDX-License-Identifier: Apache-2.0
"""What a busy machine takes: how long processes that could run waited for a processor; next to nothing on a quiet one.

``/proc/PID/task/TID/schedstat`` says so in ns (Linux, ``Documentation/scheduler/sched-stats``).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from mt_nodes.base.process_tree import children_of


class Spent(NamedTuple):
    """Time on a processor, and time that one was waited for."""

    running_s: float
    waiting_s: float


def spent(pid: int = 0) -> Spent:
    """Return what the threads of a process, by default of this one, spent together; 0 where the kernel is silent."""
    running = waiting = 0
    for thread in Path(f"/proc/{pid or os.getpid()}/task").glob("*/schedstat"):
        try:
            ran, waited = map(int, thread.read_text().split()[:2])
        except (OSError, ValueError):  # it has just ended, or this kernel does not tell
            continue
        running, waiting = running + ran, waiting + waited
    return Spent(running / 1e9, waiting / 1e9)


def waited_s(*pids: int) -> float:
    """Return how long the threads of this process and of others have waited for a processor, together."""
    return sum(spent(pid).waiting_s for pid in (0, *pids))


def spent_in_turn(pid: int) -> Spent:
    """Return what a process spent, and of its children the one that spent most, and of its, and so on."""
    own, longest = spent(pid), max((spent_in_turn(child) for child in children_of(pid)), default=Spent(0.0, 0.0))
    return Spent(own.running_s + longest.running_s, own.waiting_s + longest.waiting_s)
