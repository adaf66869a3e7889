# SPDX-License-Identifier: Apache-2.0
"""What this process and all that came of it take of the computer: time of processors, and memory."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

from mt_nodes.base.process_tree import descendants_of, read_file

_TICKS_HZ = os.sysconf("SC_CLK_TCK")
_MB = 1e6


@dataclass
class ResourceUsage:
    """Counts on from when it was made; to be looked at now and then.

    ``cores``: processors' worth of time since the last look. ``cores_mean``: since the beginning. ``memory_mb``: of all
    processes just now, what they share counted once (PSS). ``memory_mb_max``: of all looks.
    """

    cores: float = 0.0
    cores_mean: float = 0.0
    memory_mb: float = 0.0
    memory_mb_max: float = 0.0

    def __post_init__(self) -> None:
        self._began_s = self._looked_s = time.monotonic()
        #: Seconds of each process so far; what has ended keeps what it took until then.
        self._took_s = _seconds_of_all()
        self._before_s = sum(self._took_s.values())
        self._first_s = self._before_s

    def look(self) -> None:
        """Read ``/proc`` anew."""
        now_s = time.monotonic()
        self._took_s |= _seconds_of_all()
        took_s = sum(self._took_s.values())
        if now_s > self._looked_s:
            self.cores = (took_s - self._before_s) / (now_s - self._looked_s)
            self.cores_mean = (took_s - self._first_s) / (now_s - self._began_s)
        self._looked_s, self._before_s = now_s, took_s
        self.memory_mb = sum(_memory_mb(pid) for pid in {pid for pid, _ in self._took_s})
        self.memory_mb_max = max(self.memory_mb_max, self.memory_mb)

    @property
    def taken_ms(self) -> float:
        """Processor time since it was made (ms) of the processes that the last look found; quick to ask for."""
        found = _seconds_of({pid for pid, _ in self._took_s})
        self._took_s |= {key: seconds for key, seconds in found.items() if key in self._took_s}  # ids are used again
        return 1e3 * (sum(self._took_s.values()) - self._first_s)

    def as_plain(self) -> dict[str, float]:
        """Return it as JSON can hold it."""
        return {name: round(value, 3) for name, value in vars(self).items() if not name.startswith("_")}


def _seconds_of_all() -> dict[tuple[int, str], float]:
    """Return the seconds that each process took, by its id and when it was started: ids are used again."""
    return _seconds_of((os.getpid(), *descendants_of(os.getpid())))


def _seconds_of(pids: Iterable[int]) -> dict[tuple[int, str], float]:
    found = {}
    for pid in pids:
        try:
            fields = read_file(f"/proc/{pid}/stat").rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        found[pid, fields[19]] = (int(fields[11]) + int(fields[12])) / _TICKS_HZ
    return found


def _memory_mb(pid: int) -> float:
    try:
        lines = read_file(f"/proc/{pid}/smaps_rollup").splitlines()
    except OSError:  # it has ended, or belongs to somebody else
        return 0.0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:")) / _MB
