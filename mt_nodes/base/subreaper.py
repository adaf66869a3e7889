# SPDX-License-Identifier: Apache-2.0
"""Supervises one command and ends all its descendants: ``python subreaper.py PARENT_PID PROGRAM ARGUMENT…``.

It runs between the suite and a stack. Whatever the stack starts, in any session, stays a descendant of this process,
because orphans are reparented to the nearest subreaper; when the stack ends, or the parent is gone for whatever reason,
all of them are ended. The exit code is that of the command. Imports only the standard library and starts without
``site``, so that it is ready before the stack and costs a few milliseconds.
"""

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36
#: Grace period for the remains of a stack after SIGTERM; then they are killed.
GRACE_S = 2.0
CANNOT_START = 127


def children_of(pid: int) -> list[int]:
    """Return the direct children of a process, without zombies."""
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
    """Return the descendants of a process, except the children in ``spare`` and theirs."""
    found = [child for child in children_of(pid) if child not in spare]
    for child in found:
        found += children_of(child)
    return found


def signal_all(pids: list[int], number: int) -> None:
    """Send a signal to processes; skips those that are gone."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def end_descendants(grace_s: float = GRACE_S, spare: frozenset[int] = frozenset()) -> None:
    """End every descendant of this process: SIGTERM, after the grace period SIGKILL, repeated until none is left.

    The children in ``spare`` and theirs stay. A stopped process is continued: it would not receive SIGTERM.
    """
    for number in (signal.SIGTERM, signal.SIGCONT):
        signal_all(descendants_of(os.getpid(), spare), number)
    until = time.monotonic() + grace_s
    while left := descendants_of(os.getpid(), spare):
        over_s = until - time.monotonic()
        if over_s <= 0:
            signal_all(left, signal.SIGKILL)
        # SIGCHLD announces the end of a child; an orphan of it may take a moment to be reparented.
        signal.sigtimedwait({signal.SIGCHLD}, min(0.05, max(over_s, 0.005)))


def reap() -> dict[int, int]:
    """Reap every child that has ended; return the status by process id."""
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
    """Wait for the end of the child and return its status; None if the parent ends first."""
    while os.getppid() == parent:
        # SIGINT and SIGTERM go to the whole group: the child handles them, this process only watches its parent.
        signal.sigwait({signal.SIGCHLD, signal.SIGTERM, signal.SIGINT})
        ended = reap()
        if child in ended:
            return ended[child]
    return None


def end_by_signal(number: int) -> int:
    """End this process by the signal that ended a child of it, without a second core dump.

    Returns:
        The exit code that a shell gives for such an end, if the process cannot end by that signal (process 1 of a
            container).
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
    # A shell that runs this in the background ignores SIGINT, and the command would inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    status = _wait(parent, _start(argv))
    end_descendants()
    sys.exit(_exit_code(status))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
