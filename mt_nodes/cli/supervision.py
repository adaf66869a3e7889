# SPDX-License-Identifier: Apache-2.0
"""``mt`` as two processes: a child does the work, and the parent accepts only an exit code that the command returned.

Code in C that runs in the process of ``mt``, a plugin's for example, may end it with any exit code, 0 included, before
there is a verdict. So the command hands its exit code to the parent as the last thing it does; a child that ends
without that has no verdict. Seen from outside, the parent is the command: it forwards signals to the child, the child
never outlives it, and it ends as the child does.

What a limit of address space (``ulimit -v``, ``prlimit --as``) does to a command, seen from its parent.

Python raises MemoryError. Libraries in C do other things: some crash, and OpenBLAS interrupts its process or, when it
gets no buffer, tries again for ever (``blas_memory_alloc``, 32 MiB; while NumPy and SciPy are loaded, too). None of
this is an end with a reason, so the parent of a limited command gives it one: a line and exit code 4.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import gc
import mmap
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from mt_nodes.base.errors import ExitCode, InfrastructureError
from mt_nodes.base.garbage import end_process
from mt_nodes.base.process_tree import descendants_of, read_file, reap
from mt_nodes.base.subreaper import PR_SET_PDEATHSIG, end_by_signal

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
    stat = read_file(f"/proc/{pid}/stat").rpartition(")")[2].split()
    status = read_file(f"/proc/{pid}/status").splitlines()
    waits = next(line for line in status if line.startswith("voluntary_ctxt_switches"))
    minor_faults, size = stat[7], stat[20]
    return _Effort((minor_faults, size, waits), int(stat[11]), int(stat[12])), limit - int(size)


_FORWARDED = frozenset(
    {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
    | {signal.SIGTSTP, signal.SIGCONT}
)
_AWAITED = _FORWARDED | {signal.SIGCHLD}
#: A signal to the whole process group interrupts the child twice at once; a person presses Ctrl-C more slowly.
_SAME_INTERRUPT_S = 0.3
#: An interruption that Python dropped comes again after this.
_AGAIN_S = 0.01
#: How often a command with a limit of address space is looked at.
_WATCH_S = 1.0


def supervised(command: Callable[[], int], exit_code: Callable[[int], int] = int) -> int:
    """Run a command in a child process, which ends with its exit code, and this process as the child does.

    Returns only where there is no child: the exit code of that.

    ``exit_code``: what this process ends with instead of an exit code.

    To be called in a process with one thread: the child gets no other.
    """
    _flush()  # both processes would write what is in a buffer now
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, the exit status of a child is lost
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    parent, returned = os.getpid(), mmap.mmap(-1, 2)
    gc.freeze()  # garbage collection would copy shared pages
    try:
        child = os.fork()
    except OSError as error:
        print(f"mt: cannot start a process: {error.strerror}", file=sys.stderr)
        return exit_code(int(ExitCode.INFRASTRUCTURE))
    if child:
        limit = address_space_limit()
        came: set[int] = set()
        status = _wait(child, None if limit is None else SpinWatch(child, limit), came)
        os._exit(exit_code(_exit_code(status, returned, limit, came)))  # the child runs the exit handlers
    _end_with(parent)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return end_process(_work(command, returned))


def _work(command: Callable[[], int], returned: mmap.mmap) -> int:
    """Run the command and hand its exit code to the parent; processes forked by a plugin hand over none."""
    own = os.getpid()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        interrupt = _Interrupt()
        signal.signal(signal.SIGINT, interrupt)
        sys.unraisablehook = interrupt.dropped
    try:
        code = command()
    except SystemExit as exited:  # of the parser, which has printed why
        code = exited.code if isinstance(exited.code, int) else int(exited.code is not None)
    if os.getpid() == own:
        returned[:] = bytes((True, code & 0xFF))
    return code


def _end_with(parent: int) -> None:
    """Have this process killed when its parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the call
        os.kill(os.getpid(), signal.SIGKILL)


def _wait(child: int, watch: SpinWatch | None, came: set[int]) -> int | str:
    """Forward signals until the child has ended; return its status, or why it had to be killed.

    ``came``: the signals that came are added to it.
    """
    while True:
        info = signal.sigwaitinfo(_AWAITED) if watch is None else signal.sigtimedwait(_AWAITED, _WATCH_S)
        if info is None:
            if watch is not None and (spins := watch.found()):
                os.kill(child, signal.SIGKILL)  # its descendants end with it
                os.waitpid(child, 0)
                return spins
        elif info.si_signo != signal.SIGCHLD:
            came.add(info.si_signo)
            _forward(child, info)
        elif child in (ended := reap()):  # process 1 of a container inherits orphans, too
            return ended[child]


def _forward(child: int, info: signal.struct_siginfo) -> None:
    """Send a signal on, and stop where it asks for that.

    The kernel has sent its own signals, such as those of Ctrl-C or Ctrl-Z at the terminal, to the child as well.
    """
    if info.si_code <= 0:  # SI_USER and the like: of a process
        os.kill(child, info.si_signo)
    if info.si_signo == signal.SIGTSTP:
        signal.raise_signal(signal.SIGTSTP)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})  # here we stand still
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})


def _exit_code(status: int | str, returned: mmap.mmap, limit: int | None, came: set[int]) -> int:
    """Return the exit code for the status of the child, or for why it had to be killed.

    ``limit``: of its address space in bytes. ``came``: signals that came from outside.
    """
    done, verdict = returned[:2]
    if isinstance(status, str):
        return _ran_short(status)
    if os.WIFSIGNALED(status):
        short = "" if limit is None else how_it_ran_short(os.WTERMSIG(status), limit)
        if short and done and verdict:  # it has said why
            return verdict
        return _ran_short(short) if short else end_by_signal(os.WTERMSIG(status))
    code = os.WEXITSTATUS(status)
    if limit is not None and done and verdict == ExitCode.INTERRUPTED and not came:
        return _ran_short(how_it_ran_short(signal.SIGINT, limit))
    if done:
        return verdict or code  # Python itself ends with 120 where the last of the output cannot be written
    if limit is not None and code:  # OpenBLAS gives up with exit(1)
        return _ran_short(_advice(f"the process, or a library in it, ended with exit code {code}", limit))
    with contextlib.suppress(OSError):
        print(
            f"mt: the process ended with exit code {code} before the command was done, so there is no verdict: look "
            "for calls of exit() or _exit() in your plugins and the libraries that they load; what the run judged "
            "until then is in its results directory",
            file=sys.stderr,
        )
    return int(ExitCode.INFRASTRUCTURE)


def _ran_short(why: str) -> int:
    with contextlib.suppress(OSError):
        print(f"mt: {why}", file=sys.stderr, flush=True)
    return int(ExitCode.INFRASTRUCTURE)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # there is none, or it is closed
            stream.flush()


class _Interrupt:
    """Handles SIGINT as Python does, but takes two at once for one, and loses none.

    Python drops an exception that is raised in a destructor or a callback of a weak reference, of which each import has
    some, and reports it to ``sys.unraisablehook``.
    """

    def __init__(self) -> None:
        self._raised_s = -_SAME_INTERRUPT_S
        self._hook = sys.unraisablehook

    def __call__(self, number: int, frame: object) -> None:
        now_s = time.monotonic()
        if now_s - self._raised_s > _SAME_INTERRUPT_S:
            self._raised_s = now_s
            raise KeyboardInterrupt

    def dropped(self, what: sys.UnraisableHookArgs) -> None:
        """Interrupt again, soon, if that is what was dropped."""
        if not issubclass(what.exc_type, KeyboardInterrupt):
            self._hook(what)
            return
        self._raised_s = -_SAME_INTERRUPT_S
        # Raised in here it would be dropped, too. No ``Thread``: this may be inside one that is being made.
        _thread.start_new_thread(_interrupt_soon, ())


def _interrupt_soon() -> None:
    time.sleep(_AGAIN_S)
    os.kill(os.getpid(), signal.SIGINT)


@contextlib.contextmanager
def refuse_exit() -> Iterator[None]:
    """Treat ``sys.exit`` in the block as an error: a plugin that exits says nothing of a run.

    Raises InfrastructureError: code in the block called it.
    """
    try:
        yield
    except SystemExit as error:
        raise InfrastructureError(
            f"a plugin, or a library that it uses, called sys.exit({error.code!r}) before the command was done"
        ) from error


def stdout_is_closed() -> bool:
    """Return whether nobody reads standard output any more; if so, discard further output."""
    try:
        stdout = sys.stdout.fileno()
    except (OSError, ValueError):  # not a file of the system
        return False
    poll = select.poll()
    poll.register(stdout, 0)
    if not any(state & select.POLLERR for _, state in poll.poll(0)):
        return False
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stdout)
    os.close(null)
    return True
