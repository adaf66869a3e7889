# SPDX-License-Identifier: Apache-2.0
"""Supervises a command and ends all its descendants.

It runs between the suite and a stack. Whatever the stack starts, in any session, stays a descendant of this process,
because orphans are reparented to the nearest subreaper; when the stack ends, or the parent is gone for whatever reason,
all of them are ended. The exit code is that of the command, or ``LIMIT_REACHED``. Imports only the standard library and
starts without ``site``, so that it is ready before the stack and costs some 20 ms.
"""

import ctypes
import os
import signal
import sys
import time

from mt_nodes.base.limit_watch import WATCH_S, LimitWatch
from mt_nodes.base.process_tree import descendants_of, reap, signal_all

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36
#: Grace period for the remains of a stack after SIGTERM; then they are killed.
GRACE_S = 2.0
CANNOT_START = 127


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


def _start(argv: tuple[str, ...], limits: LimitWatch | None) -> int:
    child = os.fork()
    if child:
        return child
    try:
        if limits is not None:
            limits.take_on()
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        os.execvp(argv[0], argv)
    except OSError as error:
        print(f"cannot start {argv[0]!r}: {error.strerror}", file=sys.stderr, flush=True)
    os._exit(CANNOT_START)


def _wait(parent: int, child: int, limits: LimitWatch | None) -> int | None:
    """Wait for the end of the child and return its status; None if the parent ends first."""
    signals = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT}
    while os.getppid() == parent:
        # SIGINT and SIGTERM go to the whole group: the child handles them, this process only watches its parent.
        if limits is None:
            signal.sigwait(signals)
        else:
            signal.sigtimedwait(signals, WATCH_S)
            limits.enforce()
        ended = reap()
        if child in ended:
            if limits is not None:
                limits.end()
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


def main(parent: int, limits: str, *argv: str) -> None:
    """Run a command to its end, or to a limit.

    ``parent``: process id of the suite. ``limits``: text of
    :meth:`~mt_nodes.base.process_limits.ProcessLimits.as_json`; empty for none. ``argv``: program and arguments.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT})
    # A shell that runs this in the background ignores SIGINT, and the command would inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    watched = LimitWatch(limits) if limits else None
    if watched is not None:
        watched.go_first()
    status = _wait(parent, _start(argv, watched), watched)
    end_descendants()
    if watched is not None:
        watched.release()
    sys.exit(_exit_code(status))
