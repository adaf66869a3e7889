# SPDX-License-Identifier: Apache-2.0
"""What a limit of address space (``ulimit -v``, ``prlimit --as``) does to a command, seen from its parent.

Python raises MemoryError. Libraries in C do other things: some crash, and OpenBLAS interrupts its process or, when it
gets no buffer, tries again for ever (``blas_memory_alloc``, 32 MiB; while NumPy and SciPy are loaded, too). None of
this is an end with a reason, so the parent of a limited command gives it one: a line and exit code 4.
"""

from __future__ import annotations

import os
import resource
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mt_nodes.base.process_tree import descendants_of

#: How a library that gets no memory ends the process: it uses the null pointer, calls abort(), or, OpenBLAS without
#: memory for a thread, interrupts itself.
_CRASHES = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGINT})
#: Less is left of the limit than two buffers of OpenBLAS.
_NEAR_BYTES = 64 * 2**20
#: So much processor time without a page fault, a wait or more memory, most of it in the kernel, is the same
#: allocation again and again: measured 87 % in the kernel.
_SPIN_S, _KERNEL_SHARE = 2.0, 0.6
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def address_space_limit() -> int | None:
    """Return how many bytes of address space this process may have, None if it may have any number."""
    soft = [resource.getrlimit(number)[0] for number in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return min((limit for limit in soft if limit != resource.RLIM_INFINITY), default=None)


def how_it_ran_short(number: int, limit: int) -> str:
    """Return what to print of a limited process that a signal ended; empty if the signal says something else."""
    return _advice(f"the process was ended by {signal.Signals(number).name}", limit) if number in _CRASHES else ""


def _advice(what: str, limit: int) -> str:
    return (
        f"out of memory: {what}, at a limit of {limit / 1e6:.0f} MB of address space, which is probably too little; "
        "allow more (`ulimit -v`)"
    )


@dataclass(frozen=True)
class _Effort:
    """What stays the same while a process repeats an allocation, and its processor time in ticks."""

    still: tuple[str, ...]
    user: int
    kernel: int


class SpinWatch:
    """Finds a process, the given one or a descendant, that repeats an allocation which the limit refuses."""

    def __init__(self, pid: int, limit: int) -> None:
        self._pid, self._limit = pid, limit
        self._before: dict[int, _Effort] = {}

    def found(self) -> str:
        """Return what to print of such a process; empty if there is none. To be called about once a second."""
        now: dict[int, _Effort] = {}
        for pid in (self._pid, *descendants_of(self._pid)):
            with suppress(OSError, IndexError, ValueError):  # it has just ended
                effort, bytes_left = _effort(pid, self._limit)
                before = self._before.get(pid)
                if bytes_left >= _NEAR_BYTES:
                    continue
                now[pid] = effort if before is None or before.still != effort.still else before
                if _spins(now[pid], effort):
                    return _advice("a library repeats an allocation that is refused", self._limit)
        self._before = now
        return ""


def _spins(since: _Effort, now: _Effort) -> bool:
    user, kernel = now.user - since.user, now.kernel - since.kernel
    return user + kernel >= _SPIN_S * _TICKS_PER_S and kernel >= _KERNEL_SHARE * (user + kernel)


def _effort(pid: int, limit: int) -> tuple[_Effort, int]:
    """Return the effort of a process so far, and how many bytes of address space the limit leaves it."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    waits = next(line for line in status if line.startswith("voluntary_ctxt_switches"))
    minor_faults, size = stat[7], stat[20]
    return _Effort((minor_faults, size, waits), int(stat[11]), int(stat[12])), limit - int(size)
