# SPDX-License-Identifier: Apache-2.0
"""Runs one command and ends everything that came of it: ``python keeper.py PARENT_PID PROGRAM ARGUMENT…``.

Stands between the suite and a stack. Whatever the stack starts, in whichever session, stays this process's
descendant, because orphans come to the nearest subreaper; when the stack ends, or the parent is gone, however it
went, all of them are ended. Exits as the command did. Imports nothing but the standard library and starts without
``site``: it is there before the stack is, and costs a few milliseconds.
"""

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36
#: What is left of a stack may end by itself, once told; then it is killed.
GRACE_S = 2.0
CANNOT_START = 127


def children_of(pid: int) -> list[int]:
    """Return the direct children of a process, dead ones that nobody has waited for left out."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
        except (OSError, ValueError):  # it has just ended
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(entry.name))
    return found


def descendants_of(pid: int, spare: frozenset[int] = frozenset()) -> list[int]:
    """Return the children of a process but those to be spared, theirs, and so on."""
    found = [child for child in children_of(pid) if child not in spare]
    for child in found:
        found += children_of(child)
    return found


def signal_all(pids: list[int], number: int) -> None:
    """Send a signal to processes, gone ones left out."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def end_descendants(grace_s: float = GRACE_S, spare: frozenset[int] = frozenset()) -> None:
    """End every descendant of this process: SIGTERM, after a while SIGKILL, again until none is left.

    Spared are the children named and theirs. A stopped process is woken: it would not hear SIGTERM.
    """
    for number in (signal.SIGTERM, signal.SIGCONT):
        signal_all(descendants_of(os.getpid(), spare), number)
    until = time.monotonic() + grace_s
    while left := descendants_of(os.getpid(), spare):
        over_s = until - time.monotonic()
        if over_s <= 0:
            signal_all(left, signal.SIGKILL)
        # A process that ends announces itself; an orphan of one may take a moment to come here.
        signal.sigtimedwait({signal.SIGCHLD}, min(0.05, max(over_s, 0.005)))


def reap() -> dict[int, int]:
    """Take in every child that has ended: status by process id."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if not pid:
            return ended
        ended[pid] = status


def _start(argv: list[str]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        os.execvp(argv[0], argv)
    except OSError as error:
        print(f"cannot start {argv[0]!r}: {error.strerror}", file=sys.stderr, flush=True)
    os._exit(CANNOT_START)


def _wait(parent: int, child: int) -> int | None:
    """Wait for the end of the child and return its status, None when the parent has gone before."""
    while os.getppid() == parent:
        # SIGINT and SIGTERM go to the whole group: the child answers them, this process only listens for its parent.
        signal.sigwait({signal.SIGCHLD, signal.SIGTERM, signal.SIGINT})
        ended = reap()
        if child in ended:
            return ended[child]
    return None


def end_by_signal(number: int) -> int:
    """End this process by the signal that ended a child of it, without another core dump.

    Returns:
        The exit code that a shell makes of such an end, where a process cannot be ended so: the first of a container.
    """
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0)
    if number != signal.SIGKILL:  # Python ignores some others, such as SIGPIPE
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    return 128 + number


def _exit_code(status: int | None) -> int:
    if status is None:
        return 1
    return end_by_signal(os.WTERMSIG(status)) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def main(parent: int, argv: list[str]) -> None:
    """Run the command to its end."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT})
    # A shell that runs us in the background has SIGINT ignored, and the command would inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    status = _wait(parent, _start(argv))
    end_descendants()
    sys.exit(_exit_code(status))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
