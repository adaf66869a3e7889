# SPDX-License-Identifier: Apache-2.0
"""Stops one thread of another process for a while: that which takes in what a DDS participant discovers."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: <linux/ptrace.h> and <sys/wait.h>.
DETACH, SEIZE, INTERRUPT = 17, 0x4206, 0x4207
WAIT_ALL = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_LIBC.ptrace.restype = ctypes.c_long


def discovering(pid: int, domain: int) -> int:
    """The thread of a process that reads discovery's unicast port: 7400 + 250 domain + 10 + 2 participant.

    Fast DDS names its threads by transport and port, e.g. ``dds.udp.7410``.
    """
    ports = {f"dds.udp.{7410 + 250 * domain + 2 * participant}" for participant in range(100)}
    [thread] = [t for t in Path(f"/proc/{pid}/task").iterdir() if (t / "comm").read_text().strip() in ports]
    return int(thread.name)


@contextmanager
def halted(thread: int, until: Callable[[], object]) -> Iterator[None]:
    """Hold a thread, by its id, until ``until`` returns, which is called in a thread of its own."""
    held: list[int] = []
    begun = threading.Event()

    def hold() -> None:  # whoever seized a thread has to let it go
        held.append(_LIBC.ptrace(SEIZE, thread, None, None) or _LIBC.ptrace(INTERRUPT, thread, None, None))
        if held[0] == 0:
            os.waitpid(thread, WAIT_ALL)
        begun.set()
        if held[0] == 0:
            until()
            _LIBC.ptrace(DETACH, thread, None, None)

    holder = threading.Thread(target=hold)
    holder.start()
    begun.wait()
    if held[0] != 0:
        pytest.skip("this machine lets nobody stop the threads of his own children (ptrace)")
    try:
        yield
    finally:
        holder.join()
