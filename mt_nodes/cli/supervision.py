# SPDX-License-Identifier: Apache-2.0
"""``mt`` as two processes: a child does the work, and a parent believes only an exit code that the command returned.

Code in C that runs in the process of ``mt``, a plugin's for example, may end it with any exit code, 0 included, before
there is a verdict. So the command leaves its exit code with the parent as the last thing it does; a child that ends
without has come to no verdict. To everybody else the parent is the command: signals sent to it reach the child, the
child never outlives it, and it ends as the child does.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import mmap
import os
import signal
import sys
import time
from collections.abc import Callable

from mt_nodes.base.errors import ExitCode
from mt_nodes.base.subreaper import PR_SET_PDEATHSIG, end_by_signal, reap

_FORWARDED = frozenset(
    {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
    | {signal.SIGTSTP, signal.SIGCONT}
)
_AWAITED = _FORWARDED | {signal.SIGCHLD}
#: Who signals the whole group and not only us interrupts the child twice at once; a person presses Ctrl-C slower.
_SAME_INTERRUPT_S = 0.3


def supervised(command: Callable[[], int]) -> int:
    """Run a command in a child process, and return its exit code there; this process ends here as the child does.

    To be called in a process of one thread: the child gets no other.
    """
    _flush()  # what is in a buffer now would be written by both
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, nobody learns how a child ended
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    parent, returned = os.getpid(), mmap.mmap(-1, 2)
    gc.freeze()  # looking for garbage would copy, page by page, what both share
    try:
        child = os.fork()
    except OSError as error:
        print(f"mt: cannot start a process: {error.strerror}", file=sys.stderr)
        return int(ExitCode.INFRASTRUCTURE)
    if child:
        os._exit(_exit_code(_wait(child), returned))  # what is to be done at exit is done by the child
    _end_with(parent)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return _work(command, returned)


def _work(command: Callable[[], int], returned: mmap.mmap) -> int:
    """Run the command and leave its exit code with the parent; processes forked by a plugin leave none."""
    own = os.getpid()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _Interrupt())
    try:
        code = command()
    except SystemExit as left:  # of the parser, which has said why
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    if os.getpid() == own:
        returned[:] = bytes((True, code & 0xFF))
    return code


def _end_with(parent: int) -> None:
    """Have this process killed when its parent ends, as whoever kills that expects."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before we asked
        os.kill(os.getpid(), signal.SIGKILL)


def _wait(child: int) -> int:
    """Forward signals until the child has ended; return its status."""
    while True:
        info = signal.sigwaitinfo(_AWAITED)
        if info.si_signo != signal.SIGCHLD:
            _forward(child, info)
        elif child in (ended := reap()):  # as process 1 of a container we get orphans, too
            return ended[child]


def _forward(child: int, info: signal.struct_siginfo) -> None:
    """Send a signal on, and stop where it asks for that.

    What the kernel sends, such as Ctrl-C or Ctrl-Z at the terminal, it has sent to the child as well.
    """
    if info.si_code <= 0:  # SI_USER and the like: of a process
        os.kill(child, info.si_signo)
    if info.si_signo == signal.SIGTSTP:
        signal.raise_signal(signal.SIGTSTP)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})  # here we stand still
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})


def _exit_code(status: int, returned: mmap.mmap) -> int:
    """Return what to exit with after a child of this status."""
    if os.WIFSIGNALED(status):
        return end_by_signal(os.WTERMSIG(status))
    code = os.WEXITSTATUS(status)
    done, verdict = returned[:2]
    if done:
        return verdict or code  # Python itself ends with 120 where the last of the output cannot be written
    with contextlib.suppress(OSError):
        print(
            f"mt: its process ended with exit code {code} before the command had come to its end, so there is no "
            "verdict: look for what calls exit() or _exit() in your plugins and in the libraries that they load; what "
            "a run judged until then is in its results directory",
            file=sys.stderr,
        )
    return int(ExitCode.INFRASTRUCTURE)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # there is none, or it is closed
            stream.flush()


class _Interrupt:
    """Handles SIGINT as Python does, and takes two that come at once for one."""

    def __init__(self) -> None:
        self._raised_s = -_SAME_INTERRUPT_S

    def __call__(self, number: int, frame: object) -> None:
        now_s = time.monotonic()
        if now_s - self._raised_s > _SAME_INTERRUPT_S:
            self._raised_s = now_s
            raise KeyboardInterrupt
