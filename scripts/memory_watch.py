# SPDX-License-Identifier: Apache-2.0
"""Anonymous memory, threads and open files of processes over time, and the straight line through their memory."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

#: Of the samples of a process: the first, in which caches fill.
LEFT_OUT = 0.1
#: A process that lives shorter (a stack that was restarted) has no slope worth reporting.
LEAST_S = 600.0
#: What a process is, by a part of its command line; the first that fits.
ROLES = (
    ("nodes.live_suite", "suite of mt live"),
    ("nodes.suite", "suite"),
    ("multiprocessing.resource_tracker", "resource tracker"),
    ("multiprocessing.spawn", "worker of the campaign"),
    ("cli.main campaign", "leader of the campaign"),
    ("cli.main live", "command line of mt live"),
    ("cli.main", "command line"),
    ("nodes.replayer", "sensor"),
    ("nodes.callable_stack", "stack"),
    ("stack_server", "stack"),
    ("subreaper", "supervisor"),
)


class Sample(NamedTuple):
    """One look at a process: when in s, anonymous memory in MB, threads, open files."""

    at_s: float
    memory_mb: float
    threads: int
    open_files: int


def sample(pid: int) -> Sample | None:
    """Look at a process; None when it is gone."""
    try:
        rows = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except (OSError, ValueError):
        return None
    if "RssAnon" not in rows:  # it has ended and waits for its parent
        return None
    return Sample(time.time(), int(rows["RssAnon"].split()[0]) / 1e3, int(rows["Threads"]), files)


def role(command: str) -> str:
    """Return what a process is, by its command line."""
    return next((name for part, name in ROLES if part in command), command[:40])


class MemoryWatch:
    """Samples of processes, by role and process id."""

    def __init__(self) -> None:
        """Begin with none."""
        self._samples: dict[str, list[Sample]] = defaultdict(list)

    def look(self, processes: Mapping[int, str]) -> None:
        """Sample processes, given as id and command line."""
        for pid, command in processes.items():
            if (found := sample(pid)) is not None:
                self._samples[f"{role(command)} {pid}"].append(found)

    def lines(
        self, ended_s: float = math.inf, least_s: float = LEAST_S, left_out: float = LEFT_OUT
    ) -> dict[str, dict[str, Any]]:
        """Return the line of each process that lived ``least_s``, by samples until ``ended_s`` (since the epoch)."""
        parts = {name: [row for row in rows if row.at_s <= ended_s] for name, rows in self._samples.items()}
        found = {name: line(rows, least_s, left_out) for name, rows in parts.items()}
        return {name: row for name, row in found.items() if row is not None}


def line(rows: Sequence[Sample], least_s: float = LEAST_S, left_out: float = LEFT_OUT) -> dict[str, Any] | None:
    """Return first, last and highest memory, its slope by least squares in MB an hour, and threads and open files."""
    if not rows or rows[-1].at_s - rows[0].at_s < least_s:
        return None
    kept = rows[math.ceil(left_out * len(rows)) :]
    at_h, memory_mb = np.array([r.at_s for r in kept]) / 3600.0, np.array([r.memory_mb for r in kept])
    return {
        "minutes": round((rows[-1].at_s - rows[0].at_s) / 60.0, 1),
        "memory_mb": [round(float(v), 1) for v in (memory_mb[0], memory_mb[-1], memory_mb.max())],
        "slope_mb_per_h": round(float(np.polyfit(at_h - at_h[0], memory_mb, 1)[0]), 2),
        "threads": [kept[0].threads, kept[-1].threads],
        "open_files": [kept[0].open_files, kept[-1].open_files],
    }
